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

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Block, Region
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from tapestry.dialects import loom
from tapestry.dialects.loom import Read, tensor_type
from tapestry.passes.loom.rebuilding.bodies import body_size, coordinate_ops, in_group, inlined
from tapestry.passes.loom.rebuilding.operations import reads_of, rebuild
from tapestry.zspace import AffineMap, Projection, Range
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


class ComputeSequence(RewritePattern):
    """A constant whose integers are an affine function of their place is computed of it.

    Always legal: the cells are the same. Done where operations read it, which then compute it
    themselves (`ComputeFromCoordinates`): a range of numbers that was written down, say.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ConstantOp, rewriter: PatternRewriter) -> None:
        kind = tensor_type(op.result)
        read = any(isinstance(use.operation, loom.OperationOp) for use in op.result.uses)
        if not read or op.splat is not None or kind.element_type not in (i32, i64):
            return
        mapping = _affine_cells(op)
        if mapping is None:
            return
        rank = kind.box.rank
        steps = coordinate_ops(mapping, 0, range(rank))
        if kind.element_type != i64:
            steps.append(arith.TruncIOp(steps[-1].results[0], i32))
        body = Block([*steps, loom.YieldOp(steps[-1].results[0])])
        every = Projection.identity(rank)
        computed = loom.OperationOp(
            "sequence", kind.box, ("map",) * rank, None, [], [(every, kind)], Region(body)
        )
        computed.location = op.location
        computed.outs[0].name_hint = op.result.name_hint
        rewriter.replace(op, computed)


_FEW = 4
"""Of how many integers it is worth saying that they are a sequence."""


def _affine_cells(op: loom.ConstantOp) -> AffineMap | None:
    """What a constant's cells are of their coordinates, if that is an affine function."""
    cells, kind = op.cells, tensor_type(op.result)
    if cells is None or cells.size < _FEW:
        return None
    first = int(cells.flat[0])
    factors: list[int] = []
    wanted = np.full((), first, np.int64)
    for dim, extent in enumerate(cells.shape):
        second = [0] * cells.ndim
        second[dim] = min(1, extent - 1)
        factors.append(int(cells[tuple(second)]) - first)
        along = [1] * cells.ndim
        along[dim] = extent
        wanted = wanted + factors[-1] * np.arange(extent, dtype=np.int64).reshape(along)
    if not np.array_equal(wanted, cells):
        return None
    start = sum(f * low for f, low in zip(factors, kind.box.start, strict=True))
    return AffineMap.of([factors], [first - start], kind.box.rank)
