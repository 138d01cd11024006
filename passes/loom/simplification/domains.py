"""Domains made small: folds over the box of the points inside, without rows that hold all over it.

    %y = loom.operation @tail over <[0, 0] : [4, 16]> [map, fold] by @add ...
           domain(-d1 + 12 >= 0, d0 + d1 >= 0) ...

becomes

    %y = loom.operation @tail over <[0, 0] : [4, 13]> [map, fold] by @add ...
"""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.dialects import loom
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.rebuilding.operations import rebuild
from tapestry.zspace import Partition, Range


class FoldInsideOnly(RewritePattern):
    """Fold over the box of the points inside the domain, empty when there are none; drop its rows
    that hold at every point left.

    Legal because points outside contribute the zero, so that folding them or not is the same, and
    because what is written depends on the kept dimensions, which stay. A partition that is a grid
    is cut down along the fold; with any other one, and in a group, only rows are dropped.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op.inside is None:
            return
        index, partition = op.index, op.partition
        if (partition is None or partition.is_grid) and not in_group(op):
            index = _folded_inside(op)
        if partition is not None and index != op.index:
            partition = _cut_down(partition, index)
        rest = op.inside.within(index)
        if index != op.index or rest != op.inside:
            rebuild(op, rewriter, index=index, partition=partition, inside=rest)


def _folded_inside(op: loom.OperationOp) -> Range:
    """The index space with its fold dimensions cut down to the points inside the domain."""
    assert op.inside is not None
    bounds, start = op.inside.bounds(op.index), op.index.start
    if bounds is None:
        return op.index.with_sides({dim: (start[dim], start[dim]) for dim in op.fold_dims})
    return op.index.with_sides({dim: bounds.sides[dim] for dim in op.fold_dims})


def _cut_down(partition: Partition, index: Range) -> Partition:
    """The grid on a smaller index space; a dimension without points has one part."""
    assert partition.cuts is not None
    sides = zip(partition.cuts, index.start, index.end, strict=True)
    return Partition.grid(
        (low, *(cut for cut in cuts if low < cut < high), high) for cuts, low, high in sides
    )
