"""What each scalar operation of a body becomes on tiles.

16-bit floats compute in float32 and round each result, as they do everywhere; that also spares
Triton's interpreter, whose bfloat16 arithmetic is wrong, and functions that GPUs only have for
float32. Integers are in `integers.py`, conversions in `conversions.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log10

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IntegerAttr,
    f32,
    i1,
)
from xdsl.ir import Operation, SSAValue

from tapestry.algebra.dtypes import is_half
from tapestry.algebra.scalars import compute, has_meaning
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import loom, triton
from tapestry.dialects.triton import element_of
from tapestry.locations import location_of
from tapestry.passes.triton.tiles.builder import TileBuilder, constant_value
from tapestry.passes.triton.tiles.conversions import CONVERSIONS
from tapestry.passes.triton.tiles.identities import simpler
from tapestry.passes.triton.tiles.integers import INTEGERS, compare_integers, write_integer


def write_scalar(tiles: TileBuilder, op: Operation, operands: list[SSAValue]) -> SSAValue:
    """Write one scalar operation on tiles; InvalidProgramError when Triton has no way to say it."""
    kind, result = type(op), op.results[0].type
    known = [constant_value(operand) for operand in operands]
    if operands and has_meaning(op):
        numbers = [number for number in known if number is not None]
        if len(numbers) == len(operands):
            return tiles.constant(compute(op, numbers).item(), result)
    same = simpler(tiles, op, operands)
    if same is not None:
        return same
    match op:
        case arith.ConstantOp():
            assert isinstance(op.value, IntegerAttr | FloatAttr)
            return tiles.constant(op.value.value.data, result)
        case loom.RandomOp():
            seed, counter = tiles.join(*operands)
            return tiles.value(triton.PhiloxOp(seed, counter, op.position))
        case arith.SelectOp():
            return tiles.where(*operands)
        case arith.CmpfOp():
            return _compare_floats(tiles, op.predicate.value.data, *operands)
        case arith.CmpiOp():
            return compare_integers(tiles, op.predicate.value.data, *operands)
        case _ if kind in CONVERSIONS:
            return CONVERSIONS[kind](tiles, operands[0], result)
        case _ if has_meaning(op) and isinstance(result, AnyFloat):
            return _write_float(tiles, op, operands)
        case _ if kind in INTEGERS:
            return write_integer(tiles, op, operands)
        case _:
            raise InvalidProgramError(
                f"{op.name} on {result} cannot be lowered to Triton", location=location_of(op)
            )


def _multiplied(tiles: TileBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    return tiles.once(arith.MulfOp, *tiles.pair(a, b))


def _log10(tiles: TileBuilder, x: SSAValue) -> SSAValue:
    return _multiplied(tiles, tiles.value(math.Log2Op(x)), tiles.constant(log10(2), element_of(x)))


def _tangent(tiles: TileBuilder, x: SSAValue) -> SSAValue:
    return tiles.value(arith.DivfOp(tiles.value(math.SinOp(x)), tiles.value(math.CosOp(x))))


_MOST_FACTORS = 4
"""The greatest whole power that is written as products."""


def _power(tiles: TileBuilder, base: SSAValue, exponent: SSAValue) -> SSAValue:
    """Small whole powers are products, those of a half square roots; others are a call.

    Legal for every base. Of zeros and infinities a whole power is that product, signs included, and
    one below zero that of the reciprocals, which neither overflows nor underflows before the power
    does. A root differs from the power of a half at -0.0, of which the power is 0.0, and at
    -infinity, of which it is infinity. Each operation rounds, so a power is within `_MOST_FACTORS`
    units in the last place.
    """
    known = constant_value(exponent)
    times = None if known is None else float(known)
    if times is None or abs(times) > _MOST_FACTORS or not (2 * times).is_integer():
        return tiles.value(math.PowFOp(*tiles.pair(base, exponent)))
    if abs(times) == 0.5:
        power = _root(tiles, base)
        return power if times > 0 else _reciprocal(tiles, power)
    if not times.is_integer():
        return tiles.value(math.PowFOp(*tiles.pair(base, exponent)))
    factor = base if times >= 0 else _reciprocal(tiles, base)
    return _whole_power(tiles, factor, int(abs(times)))


def _whole_power(tiles: TileBuilder, base: SSAValue, times: int) -> SSAValue:
    """`base * base * ..`, of so many factors."""
    if times < 2:
        return base if times else tiles.constant(1.0, element_of(base))
    half = _whole_power(tiles, base, times // 2)
    square = _multiplied(tiles, half, half)
    return _multiplied(tiles, square, base) if times % 2 else square


def _root(tiles: TileBuilder, x: SSAValue) -> SSAValue:
    """x to the power of a half: 0.0 for -0.0, infinity for -infinity."""
    kind = element_of(x)
    zero, least = tiles.constant(0.0, kind), tiles.constant(-inf, kind)
    positive = tiles.value(arith.AddfOp(*tiles.pair(tiles.value(math.SqrtOp(x)), zero)))
    return tiles.where(tiles.compare("==", x, least), tiles.constant(inf, kind), positive)


def _reciprocal(tiles: TileBuilder, x: SSAValue) -> SSAValue:
    return tiles.value(arith.DivfOp(*tiles.pair(tiles.constant(1.0, element_of(x)), x)))


_FLOAT: dict[type[Operation], Callable[..., SSAValue]] = {
    math.Log10Op: _log10,
    math.PowFOp: _power,
    math.TanOp: _tangent,
}
"""Float operations that tiles do not have as they are."""


def _write_float(tiles: TileBuilder, op: Operation, operands: list[SSAValue]) -> SSAValue:
    """A float operation; on 16-bit floats in float32, rounded."""
    result = op.results[0].type
    wide = f32 if is_half(result) else result
    apart = [tiles.cast(operand, wide) for operand in operands]
    special = _FLOAT.get(type(op))
    if special is not None:
        return tiles.cast(special(tiles, *apart), result)
    values = tiles.join(*apart)
    computed = type(op).create(
        operands=values, result_types=[values[0].type], properties=op.properties.copy()
    )
    return tiles.cast(tiles.value(computed), result)


_ORDERED = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
_UNORDERED = {9: "<=", 10: "<", 11: ">=", 12: ">"}
"""Predicates that hold on NaN are those that do not, negated."""


def _compare_floats(tiles: TileBuilder, predicate: int, a: SSAValue, b: SSAValue) -> SSAValue:
    if is_half(element_of(a)):
        a, b = tiles.cast(a, f32), tiles.cast(b, f32)
    if predicate in _ORDERED:
        return tiles.compare(_ORDERED[predicate], a, b)
    if predicate in _UNORDERED:
        return tiles.negated(tiles.compare(_UNORDERED[predicate], a, b))
    match predicate:
        case 0 | 15:
            return tiles.constant(predicate == 15, i1)
        case 6 | 8:
            apart = tiles.either(tiles.compare("<", a, b), tiles.compare(">", a, b))
            return apart if predicate == 6 else tiles.negated(apart)
        case _:
            # `x != x` is how Triton asks whether x is NaN.
            nan = tiles.compare("!=", a, a)
            if b is not a:
                nan = tiles.either(nan, tiles.compare("!=", b, b))
            return nan if predicate == 14 else tiles.negated(nan)
