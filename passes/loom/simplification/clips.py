"""Reads that may leave their tensor: what folding something into them must not change.

    %v = loom.view %x : (d0) -> (d0 + 2)
           : !loom.tensor<[0] : [8], f32> -> !loom.tensor<[0] : [4], f32>
    ins(%v : (d0) -> (d0 - 1) clip 0.0 : f32)

The cell before `%v` is 0.0, but `%x` has a cell there: reading `%x` instead would show what the
view hides. A clipped read goes through a view where each side that it leaves the view by is a side
that the source ends on as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.dialects import loom
from tapestry.dialects.loom import Read, tensor_type
from tapestry.passes.loom.rebuilding.operations import rebuild
from tapestry.zspace import AffineMap, Range


class RemoveIdleClip(RewritePattern):
    """An input that never leaves its tensor needs no fill.

    Legal when the projection of the whole index space lies inside the tensor.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op.in_clips is None and op.extra_clips is None:
            return
        ins = _without_idle(op.in_reads, op.index)
        extras = _without_idle(op.extra_reads, op.kept_range(op.index))
        if ins != op.in_reads or extras != op.extra_reads:
            rebuild(op, rewriter, ins=ins, extras=extras)


def _without_idle(reads: Sequence[Read], index: Range) -> list[Read]:
    return [read._replace(fill=None) if _stays_inside(read, index) else read for read in reads]


def _stays_inside(read: Read, index: Range) -> bool:
    return tensor_type(read.value).box.contains_range(read.projection.apply_range(index))


def through_view(read: Read, view: loom.ViewOp, index: Range) -> Read | None:
    """The same cells, read from the source of the view that `read` reads; None when they differ.

    Blocks are read from the view: their indices count its cells, not those of the source.
    """
    if not read.projection.is_unit:
        return None
    if read.fill is not None and not index.is_empty:
        ends = tensor_type(view.result).box, tensor_type(view.source).box
        if not ends_together(view.projection.data.map, *ends, read.projection.apply_range(index)):
            return None
    return Read(view.source, view.projection.data.compose(read.projection.map), read.fill)


def ends_together(view: AffineMap, inner: Range, outer: Range, reached: Range) -> bool:
    """Whether `view` maps what `reached` has outside `inner` outside `outer`.

    It does when for each side of `inner` that is left there is a row of that dimension alone whose
    next cell lies outside `outer`: the row is monotone, so all further ones do.
    """
    for dim in range(inner.rank):
        below, above = inner.start[dim] - 1, inner.end[dim]
        if reached.start[dim] <= below and not _leaves(view, dim, below, -1, outer):
            return False
        if reached.end[dim] > above and not _leaves(view, dim, above, 1, outer):
            return False
    return True


def _leaves(view: AffineMap, dim: int, cell: int, step: int, outer: Range) -> bool:
    """Whether cells from `cell` on, along `dim` in the direction `step`, are outside `outer`."""
    for row, (coefficients, offset) in enumerate(zip(view.matrix, view.offset, strict=True)):
        slope = coefficients[dim]
        if slope == 0 or any(c for d, c in enumerate(coefficients) if d != dim):
            continue
        at = slope * cell + offset
        if at >= outer.end[row] if slope * step > 0 else at < outer.start[row]:
            return True
    return False
