"""Places that a state keeps, of 64 bits: those along fewer points are kept in 32.

    (greatest, its position) by the greater value, then the smaller position

A monoid that only compares a part and chooses it gives the same for all numbers in the same order.
So what enters as a coordinate stays one of 32 bits until it leaves, and threads exchange half as
much.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from tapestry.algebra.monoids import Monoid
from tapestry.dialects import loom
from tapestry.passes.triton.kernels.mapfold import MapFold
from tapestry.passes.triton.tiles.folds import FoldState

_MOST = (1 << 31) - 1
_UNSIGNED = 6
"""Predicates of `arith.cmpi` from here on take integers for unsigned."""


def with_narrow_places(fold: MapFold, state: FoldState) -> FoldState:
    """The state with coordinates in 32 bits, where it is never stored as it is.

    Legal where some point is folded, so that no zero is left, and coordinates are smaller than the
    greatest number of 32 bits, which stands for that of 64 in the zero.
    """
    if fold.inside is not None or fold.index.is_empty:
        return state
    zeros, elements = list(state.monoid.real_zero), list(state.elements)
    for part, entered in enumerate(loom.yielded(fold.wrap)):
        zero = _narrow_zero(zeros[part])
        narrow = elements[part] == i64 and _is_place(fold, entered)
        if zero is not None and narrow and _is_only_chosen(state.monoid, part):
            zeros[part], elements[part] = zero, i32
    return FoldState(replace(state.monoid, zero=tuple(zeros)), tuple(elements))


def _narrow_zero(zero: float) -> float | None:
    """The number of 32 bits that stands for a zero: the last stays the last."""
    if zero == (1 << 63) - 1:
        return _MOST
    return zero if 0 <= zero < _MOST else None


def _is_place(fold: MapFold, value: SSAValue) -> bool:
    """Whether a value is a coordinate that has fewer than 32 bits."""
    if not isinstance(value.owner, loom.IndexOp):
        return False
    dim = value.owner.dimension
    return fold.index.start[dim] >= 0 and fold.index.start[dim] + fold.index.shape[dim] < _MOST


def _is_only_chosen(monoid: Monoid, part: int) -> bool:
    """Whether a merge does nothing with a part but compare it with itself, and choose."""
    count = len(monoid.state)
    own: set[SSAValue] = {monoid.merge.args[part], monoid.merge.args[count + part]}
    for op in monoid.merge.ops:
        uses = [operand in own for operand in op.operands]
        match op:
            case _ if not any(uses):
                pass
            case arith.CmpiOp() if all(uses) and op.predicate.value.data < _UNSIGNED:
                pass
            case arith.SelectOp() if uses == [False, True, True]:
                own.add(op.result)
            case loom.YieldOp() if [n for n, used in enumerate(uses) if used] == [part]:
                pass
            case _:
                return False
    return True
