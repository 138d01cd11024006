"""Folds over windows as one loop, in which each kept point folds all of its window.

    fold = looped_fold(max_pool, monoid, points, loops)      # None where loops do not pay
    (state,) = fold(views)                                   # those of `unrolled`, point by point

So nothing between two points of a window is written. What wrap yields of every point, and how those
are merged, in order, is one body.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, SSAValue

from tapestry.algebra.monoids import Monoid
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.runtime.prepared.bodies import looped_body
from tapestry.runtime.prepared.loops.looped_bodies import LoopedBody
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.zspace import Range

_MOST = 32
"""Arrays that a loop reads at most: all points of a window have their own view."""

_PASSES = 24
"""How many times as long NumPy takes for an operation on views of windows as on runs of memory."""


def looped_fold(
    op: loom.OperationOp, monoid: Monoid, points: Sequence[Range], loops: Loops | None
) -> LoopedBody | None:
    """The state of a fold whose windows have some points, from an array per point and input.

    None where its body is not for loops, or too little to compute.
    """
    if loops is None or len(points) * len(op.ins) > _MOST:
        return None
    block = _of_all(op, monoid, points)
    if block is None:
        return None
    kept = op.index.at_start(op.fold_dims)  # views have an axis for each dimension
    dims = range(kept.rank)
    return looped_body(block, kept, dims, loom.yielded(block), loops, cells=_PASSES * kept.size)


def _of_all(op: loom.OperationOp, monoid: Monoid, points: Sequence[Range]) -> Block | None:
    """The body that yields the state; its arguments are the cells of each point, one by one.

    None where cells are folded in another type.
    """
    if any(value.type != kind for value, kind in _states(op, monoid)):
        return None
    kinds = [tensor_type(operand).element_type for operand in op.ins]
    block = Block(arg_types=kinds * len(points))
    state: list[SSAValue] = []
    kept: dict[int, loom.IndexOp] = {}
    for number, point in enumerate(points):
        own = block.args[number * len(kinds) : (number + 1) * len(kinds)]
        values = dict[SSAValue, SSAValue](zip(op.wrap_block.args, own, strict=True))
        for one in op.wrap_block.ops:
            if isinstance(one, loom.YieldOp):
                continue
            if isinstance(one, loom.IndexOp):
                place: arith.ConstantOp | loom.IndexOp | None = kept.get(one.dimension)
                if one.dimension in op.fold_dims:
                    place = arith.ConstantOp(IntegerAttr(point.start[one.dimension], i64))
                    block.add_op(place)
                elif place is None:
                    place = kept[one.dimension] = loom.IndexOp(one.dimension)
                    block.add_op(place)
                values[one.result] = place.result
                continue
            copy = one.clone(values)
            block.add_op(copy)
        made = [values[value] for value in loom.yielded(op.wrap_block)]
        state = _merged(block, monoid, [*state, *made]) if state else made
    block.add_op(loom.YieldOp(*state))
    return block


def _states(op: loom.OperationOp, monoid: Monoid) -> list[tuple[SSAValue, object]]:
    return list(zip(loom.yielded(op.wrap_block), monoid.state, strict=True))


def _merged(block: Block, monoid: Monoid, states: Sequence[SSAValue]) -> list[SSAValue]:
    """Two states merged at the end of a block."""
    values = dict[SSAValue, SSAValue](zip(monoid.merge.args, states, strict=True))
    for one in monoid.merge.ops:
        if not isinstance(one, loom.YieldOp):
            block.add_op(one.clone(values))
    return [values[value] for value in loom.yielded(monoid.merge)]
