"""What depends on coordinates alone is computed where it is read.

    %n = loom.operation @arange over <[0] : [8]> [map] outs((d0) -> (d0))
           wrap () { %i = loom.index 0 : i64  loom.yield %i : i64 } ...
    %y = loom.operation @later over <[0, 0] : [8, 8]> [map, map]
           ins(%n : (d0, d1) -> (d0), %n : (d0, d1) -> (d1)) ... wrap (%i: i64, %j: i64) {...}

becomes

    %y = loom.operation @later over <[0, 0] : [8, 8]> [map, map] ...
           wrap () { %i = loom.index 0 : i64   %j = loom.index 1 : i64 ... }

Ranges of numbers, and masks that frameworks compute of them, are then known where they are used,
and not stored: several layers of a network may use one.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from tapestry.dialects import loom
from tapestry.dialects.loom import Read
from tapestry.passes.loom._bodies import body_size, coordinate_ops, in_group, inlined
from tapestry.passes.loom._rebuild import reads_of, rebuild
from tapestry.zspace import AffineMap, Range
from tapestry.zspace.origins import origin

_SIZE = 32
"""How many scalar operations are rather repeated than stored: a mask is a dozen."""


class ComputeFromCoordinates(RewritePattern):
    """An operation that reads what a map computes of coordinates alone computes it in its body.

    Legal where the point that computes a cell is an affine function of the point that reads it, for
    cells read one by one inside the tensor; the map reads nothing and is small. A map that is split
    was asked to be, and stays.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if in_group(op):
            return
        ins, extras = reads_of(op)
        every = tuple(range(op.index.rank))
        if self._written(op, op.wrap_block, ins, 0, every, op.index, rewriter):
            return
        if op.unwrap_block is not None:
            states = len(op.unwrap_block.args) - len(extras)
            kept = op.kept_range(op.index)
            self._written(op, op.unwrap_block, extras, states, op.kept_dims, kept, rewriter)

    def _written(
        self,
        op: loom.OperationOp,
        body: Block,
        reads: list[Read],
        first: int,
        dims: Sequence[int],
        index: Range,
        rewriter: PatternRewriter,
    ) -> bool:
        """Write the first read that can be into a body; its argument `first + i` is read `i`."""
        for place, read in enumerate(reads):
            points = _points(op, read, index)
            if points is None:
                continue
            assert isinstance(read.value.owner, loom.OperationOp)
            computed = Block()
            (value,) = inlined(read.value.owner.wrap_block, [], computed)
            argument = body.args[first + place]
            argument.replace_all_uses_with(value)
            body.erase_arg(argument)
            moved = list(computed.ops)
            for inner in moved:
                inner.detach()
            rewriter.insert(moved, InsertPoint.at_start(body))
            for inner in moved:
                if isinstance(inner, loom.IndexOp):
                    rewriter.replace(inner, coordinate_ops(points, inner.dimension, dims))
            rest = [*reads[:place], *reads[place + 1 :]]
            if body is op.wrap_block:
                rebuild(op, rewriter, ins=rest)
            else:
                rebuild(op, rewriter, extras=rest)
            return True
        return False


def _points(op: loom.OperationOp, read: Read, index: Range) -> AffineMap | None:
    """The point that computes what each point of an operation reads, if it reads nothing itself."""
    producer = read.value.owner
    if not isinstance(producer, loom.OperationOp) or producer.parent is not op.parent:
        return None
    if producer.monoid_name is not None or producer.operands or len(producer.outs) != 1:
        return None
    if producer.partition is not None or body_size(producer) > _SIZE or not read.is_plain:
        return None
    return origin(producer.out_maps[0].map, producer.index, read.projection.map, index)
