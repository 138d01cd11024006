"""Scalar operations that leave an operand as it is, or are a simpler one: nothing is written.

    %y = arith.mulf %x, %one : f32                %y is %x
    %d = arith.addf %a, %minus_b : f32            a - b

Templates are written for any parameters, and differentiation for any function, so that bodies
multiply by a weight of 1, count positions from 0 in steps of 1, or add what was negated. Each case
here gives the same bits (of NaN, NaN): `x + 0.0` is not among them, as -0.0 + 0.0 is 0.0.
"""

from __future__ import annotations

from math import copysign

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from tapestry.algebra.dtypes import is_integer
from tapestry.algebra.scalars import exact_value
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of
from tapestry.passes.triton.tiles.builder import TileBuilder, constant_value

_SHIFTS = (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)
_QUOTIENTS = (arith.DivSIOp, arith.DivUIOp, arith.FloorDivSIOp)


def simpler(tiles: TileBuilder, op: Operation, operands: list[SSAValue]) -> SSAValue | None:
    """What a scalar operation makes of its operands, where that needs less than the operation."""
    match op:
        case arith.MulfOp() | arith.MuliOp():
            return _without(operands, 1)
        case arith.DivfOp() if _is(operands[1], 1):
            return operands[0]
        case arith.AddfOp():
            return _without(operands, -0.0) or _difference(tiles, *operands)
        case arith.SubfOp():
            return operands[0] if _is(operands[1], 0.0) else _sum(tiles, *operands)
        case arith.AddiOp() | arith.OrIOp() | arith.XOrIOp():
            return _without(operands, 0)
        case arith.AndIOp():
            return _without(operands, 1 if op.result.type == i1 else -1)
        case arith.SubiOp() if _is(operands[1], 0):
            return operands[0]
        case _ if isinstance(op, _SHIFTS) and _is(operands[1], 0):
            return operands[0]
        case _ if isinstance(op, _QUOTIENTS) and _is(operands[1], 1) and op.results[0].type != i1:
            return operands[0]
        case arith.SelectOp() if operands[1] is operands[2]:
            return operands[1]
        case arith.SelectOp() if (known := constant_value(operands[0])) is not None:
            return operands[1] if known else operands[2]
        case arith.CmpfOp():
            return _decided(tiles, op.predicate.value.data, *operands)
        case _:
            return None


def _is(value: SSAValue, number: float) -> bool:
    """Whether a value is known to be a number, of zeros that with its sign."""
    known = constant_value(value)
    if known is None or known != number:
        return False
    return is_integer(element_of(value)) or copysign(1, known) == copysign(1, number)


def _without(operands: list[SSAValue], neutral: float) -> SSAValue | None:
    """The operand beside one that changes nothing."""
    a, b = operands
    if _is(b, neutral):
        return a
    return b if _is(a, neutral) else None


_EQUALITIES = {1: False, 8: False, 6: True, 13: True}
"""Predicates of equality by what they say of numbers that differ."""


def _decided(tiles: TileBuilder, predicate: int, a: SSAValue, b: SSAValue) -> SSAValue | None:
    """Whether a converted integer equals a number that is outside of its bounds: never.

    Legal because conversions to floats keep the order, and the bound is compared converted.
    """
    owner, known = a.owner, constant_value(b)
    if predicate not in _EQUALITIES or known is None or not isinstance(owner, triton.CastOp):
        return None
    bounds = tiles.bounds.get(owner.source)
    if bounds is None or owner.unsigned is not None or not is_integer(element_of(owner.source)):
        return None
    low, high = (exact_value(bound, element_of(a)) for bound in bounds)
    apart = bool(known < low or known > high)
    return tiles.constant(_EQUALITIES[predicate], i1) if apart else None


def _difference(tiles: TileBuilder, a: SSAValue, b: SSAValue) -> SSAValue | None:
    """`a + -b` as `a - b`."""
    for term, other in ((a, b), (b, a)):
        if isinstance(other.owner, arith.NegfOp):
            return tiles.value(arith.SubfOp(*tiles.pair(term, other.owner.operand)))
    return None


def _sum(tiles: TileBuilder, a: SSAValue, b: SSAValue) -> SSAValue | None:
    """`a - -b` as `a + b`."""
    if not isinstance(b.owner, arith.NegfOp):
        return None
    return tiles.value(arith.AddfOp(*tiles.pair(a, b.owner.operand)))
