"""Index dimensions split into the digits that what they read is written by.

    %k = loom.operation @scale over <[0, 0] : [2, 3]> [map, map] ... outs((d0, d1) -> (3 * d0 + d1))
    %y = loom.operation @f over <[0] : [6]> [map] ins(%k : (d0) -> (d0)) ...

becomes

    %y = loom.operation @f over <[0, 0] : [2, 3]> [map, map] ins(%k : (d0, d1) -> (3 * d0 + d1)) ...

so that `@scale` can be computed where it is read: heads of keys that serve several heads of queries
each are written so, once they are scaled. So are scores of pixels, by row and column: maxima and
sums that are taken by the same digits are a group with them.
"""

from __future__ import annotations

from math import prod

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.rebuilding.digits import refine
from tapestry.passes.loom.rebuilding.operations import reads_of
from tapestry.passes.loom.simplification.reshape import through_reshape
from tapestry.zspace import Range


class SplitLikeProducer(RewritePattern):
    """A reader's dimensions are split into the digits by which what it reads is written.

    Legal when each row that is written by is the position among its digits, whose cells a
    reshape could as well have brought into a row: then it splits as reading that reshape would
    (`FoldReshapeIntoReader`). Done for what only operations read: a map then fuses, or all of them
    have its digits, so that they can be derived as one fold, or be a group.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if in_group(op):
            return
        ins, extras = reads_of(op)
        for place, read in enumerate([*ins, *extras]):
            producer = read.value.owner
            if not isinstance(producer, loom.OperationOp):
                continue
            if producer.parent is not op.parent or in_group(producer) or not read.is_plain:
                continue
            stored = any(not isinstance(u.operation, loom.OperationOp) for u in read.value.uses)
            digits = None if stored else written_digits(producer)
            if digits is None:
                continue
            dims = tuple(range(op.index.rank)) if place < len(ins) else op.kept_dims
            found = through_reshape(op, tensor_type(read.value).box, digits, read.projection, dims)
            if found is not None and found.splits:
                refine(op, found.splits, rewriter)
                return


def written_digits(op: loom.OperationOp) -> Range | None:
    """The digits, in the order of the cells, by which an operation writes its output.

    None where it writes several tensors, or some row otherwise, or each by one dimension.
    """
    if len(op.outs) != 1:
        return None
    box, (projection,) = tensor_type(op.outs[0]).box, op.out_maps
    kept = op.kept_range(op.index)
    extents: list[int] = []
    several = False
    for row, size in enumerate(box.shape):
        terms = [(c, kept.shape[dim]) for c, dim in projection.map.terms[row]]
        own = [(c, extent) for c, extent in sorted(terms, reverse=True) if extent > 1]
        for place, (factor, _) in enumerate(own):
            if factor != prod(extent for _, extent in own[place + 1 :]):
                return None
        if prod(extent for _, extent in own) != size:
            return None
        several |= len(own) > 1
        extents += [extent for _, extent in own] or [size]
    return Range.of(tuple(extents)) if several else None
