"""What each scalar operation of a body becomes on tiles.

16-bit floats compute in float32 and round each result. That gives the same numbers (float32 has
more than twice their digits) and spares both Triton's interpreter, whose bfloat16 arithmetic is
wrong, and functions that GPUs only have for float32. Integers are signed and wrap; Triton's `//`
and `%` truncate like C, as `arith.divsi` and `arith.remsi` do.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log10
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from tapestry.algebra.scalars import compute, has_meaning
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import loom, triton
from tapestry.dialects.triton import element_of
from tapestry.locations import location_of
from tapestry.passes.triton.tiles import TileBuilder, constant_value

_Write = Callable[..., SSAValue]


def is_half(element: Attribute) -> bool:
    """Whether `element` is a 16-bit float."""
    return isinstance(element, Float16Type | BFloat16Type)


def write_scalar(tiles: TileBuilder, op: Operation, operands: list[SSAValue]) -> SSAValue:
    """Write one scalar operation on tiles; InvalidProgramError when Triton has no way to say it."""
    kind, result = type(op), op.results[0].type
    known = [constant_value(operand) for operand in operands]
    if operands and has_meaning(op):
        numbers = [number for number in known if number is not None]
        if len(numbers) == len(operands):
            return tiles.constant(compute(op, numbers).item(), result)
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
            return _compare_integers(tiles, op.predicate.value.data, *operands)
        case _ if _CASTS.get(kind) is _zero_extended and element_of(operands[0]) == i64:
            raise InvalidProgramError(
                f"{op.name} of an unsigned 64-bit integer cannot be lowered to Triton",
                location=location_of(op),
            )
        case _ if kind in _CASTS:
            return _CASTS[kind](tiles, operands[0], result)
        case _ if isinstance(result, AnyFloat) and kind in _FLOAT:
            wide = f32 if is_half(result) else result
            computed = _FLOAT[kind](tiles, *(tiles.cast(operand, wide) for operand in operands))
            return tiles.cast(computed, result)
        case _ if result == i1 and kind in _TRUTH:
            return _TRUTH[kind](tiles, *operands)
        case _ if isinstance(result, IntegerType) and result != i1 and kind in _INTEGER:
            return _INTEGER[kind](tiles, *operands)
        case _:
            raise InvalidProgramError(
                f"{op.name} on {result} cannot be lowered to Triton", location=location_of(op)
            )


def _plain(op: Callable[..., Operation]) -> _Write:
    """An operation that tiles have as it is."""

    def write(tiles: TileBuilder, *operands: SSAValue) -> SSAValue:
        return tiles.value(op(*tiles.join(*operands)))

    return write


_add, _multiply, _divide = _plain(arith.AddfOp), _plain(arith.MulfOp), _plain(arith.DivfOp)
_negate, _magnitude = _plain(arith.NegfOp), _plain(math.AbsFOp)
_and, _or, _xor = _plain(arith.AndIOp), _plain(arith.OrIOp), _plain(arith.XOrIOp)


def _zero(tiles: TileBuilder, like: SSAValue) -> SSAValue:
    return tiles.constant(0, element_of(like))


def _not(tiles: TileBuilder, x: SSAValue) -> SSAValue:
    return _xor(tiles, x, tiles.constant(1, i1))


def _log10(tiles: TileBuilder, x: SSAValue) -> SSAValue:
    return _multiply(tiles, tiles.value(math.Log2Op(x)), tiles.constant(log10(2), element_of(x)))


def _tangent(tiles: TileBuilder, x: SSAValue) -> SSAValue:
    return _divide(tiles, tiles.value(math.SinOp(x)), tiles.value(math.CosOp(x)))


def _fused(tiles: TileBuilder, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
    return _add(tiles, _multiply(tiles, a, b), c)


def _signed_like(tiles: TileBuilder, size: SSAValue, sign: SSAValue) -> SSAValue:
    """`size` (not negative) with the sign of `sign`."""
    negative = tiles.compare("<", sign, _zero(tiles, sign))
    return tiles.where(negative, _negate(tiles, size), size)


def _copy_sign(tiles: TileBuilder, size: SSAValue, sign: SSAValue) -> SSAValue:
    return _signed_like(tiles, _magnitude(tiles, size), sign)


def _truncate(tiles: TileBuilder, x: SSAValue) -> SSAValue:
    return _signed_like(tiles, tiles.value(math.FloorOp(_magnitude(tiles, x))), x)


def _round_half_away(tiles: TileBuilder, x: SSAValue) -> SSAValue:
    half = tiles.constant(0.5, element_of(x))
    return _signed_like(
        tiles, tiles.value(math.FloorOp(_add(tiles, _magnitude(tiles, x), half))), x
    )


def _power(tiles: TileBuilder, base: SSAValue, exponent: SSAValue) -> SSAValue:
    """Squares and cubes are products; other powers are left to a helper of the printed module."""
    owner = exponent.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr):
        if owner.value.value.data == 2.0:
            return _multiply(tiles, base, base)
        if owner.value.value.data == 3.0:
            return _multiply(tiles, _multiply(tiles, base, base), base)
    return tiles.value(math.PowFOp(*tiles.pair(base, exponent)))


_FLOAT: dict[type[Operation], _Write] = {
    arith.AddfOp: _add,
    arith.SubfOp: _plain(arith.SubfOp),
    arith.MulfOp: _multiply,
    arith.DivfOp: _divide,
    arith.NegfOp: _negate,
    arith.MaximumfOp: _plain(arith.MaximumfOp),
    arith.MinimumfOp: _plain(arith.MinimumfOp),
    arith.MaxnumfOp: _plain(arith.MaxnumfOp),
    arith.MinnumfOp: _plain(arith.MinnumfOp),
    math.AbsFOp: _magnitude,
    math.CeilOp: _plain(math.CeilOp),
    math.CopySignOp: _copy_sign,
    math.CosOp: _plain(math.CosOp),
    math.ErfOp: _plain(math.ErfOp),
    math.ExpOp: _plain(math.ExpOp),
    math.Exp2Op: _plain(math.Exp2Op),
    math.ExpM1Op: _plain(math.ExpM1Op),
    math.FloorOp: _plain(math.FloorOp),
    math.FmaOp: _fused,
    math.LogOp: _plain(math.LogOp),
    math.Log10Op: _log10,
    math.Log1pOp: _plain(math.Log1pOp),
    math.Log2Op: _plain(math.Log2Op),
    math.PowFOp: _power,
    math.RoundEvenOp: _plain(math.RoundEvenOp),
    math.RoundOp: _round_half_away,
    math.RsqrtOp: _plain(math.RsqrtOp),
    math.SinOp: _plain(math.SinOp),
    math.SqrtOp: _plain(math.SqrtOp),
    math.TanOp: _tangent,
    math.TanhOp: _plain(math.TanhOp),
    math.TruncOp: _truncate,
}


def _divide_down(tiles: TileBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    inexact, negative = _division(tiles, a, b)
    wrong = tiles.cast(_and(tiles, inexact, negative), element_of(a))
    return tiles.subtract(tiles.quotient(a, b), wrong)


def _divide_up(tiles: TileBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    inexact, negative = _division(tiles, a, b)
    wrong = tiles.cast(_and(tiles, inexact, _not(tiles, negative)), element_of(a))
    return tiles.add(tiles.quotient(a, b), wrong)


def _division(tiles: TileBuilder, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Where a division leaves a remainder, and where its exact result is negative."""
    zero = _zero(tiles, a)
    inexact = tiles.compare("!=", tiles.remainder(a, b), zero)
    negative = _xor(tiles, tiles.compare("<", a, zero), tiles.compare("<", b, zero))
    return inexact, negative


_INTEGER: dict[type[Operation], _Write] = {
    arith.AddiOp: _plain(arith.AddiOp),
    arith.SubiOp: _plain(arith.SubiOp),
    arith.MuliOp: _plain(arith.MuliOp),
    arith.DivSIOp: _plain(arith.DivSIOp),
    arith.RemSIOp: _plain(arith.RemSIOp),
    arith.FloorDivSIOp: _divide_down,
    arith.CeilDivSIOp: _divide_up,
    arith.MaxSIOp: _plain(arith.MaxSIOp),
    arith.MinSIOp: _plain(arith.MinSIOp),
    arith.AndIOp: _and,
    arith.OrIOp: _or,
    arith.XOrIOp: _xor,
    math.AbsIOp: _plain(math.AbsIOp),
}

_TRUTH: dict[type[Operation], _Write] = {
    arith.AddiOp: _xor,
    arith.SubiOp: _xor,
    arith.MuliOp: _and,
    arith.AndIOp: _and,
    arith.OrIOp: _or,
    arith.XOrIOp: _xor,
}


def _through_f32(tiles: TileBuilder, x: SSAValue, result: Attribute) -> SSAValue:
    """A conversion; 16-bit floats meet integers by way of float32."""
    source = element_of(x)
    halves = is_half(source) or is_half(result)
    if halves and IntegerType in (type(source), type(result)):
        x = tiles.cast(x, f32)
    return tiles.cast(x, result)


def _sign_extended(tiles: TileBuilder, x: SSAValue, result: Attribute) -> SSAValue:
    """A conversion of a signed integer; a true i1 is -1."""
    if element_of(x) != i1:
        return _through_f32(tiles, x, result)
    wide = _through_f32(tiles, x, result)
    if isinstance(result, IntegerType):
        return tiles.subtract(_zero(tiles, wide), wide)
    return _negate(tiles, wide)


def _zero_extended(tiles: TileBuilder, x: SSAValue, result: Attribute) -> SSAValue:
    """A conversion of an unsigned integer, up to 32 bits."""
    source = element_of(x)
    width = cast(IntegerType, source).width.data
    if width == 1:
        return _through_f32(tiles, x, result)
    low = tiles.constant((1 << width) - 1, i64)
    return _through_f32(tiles, _and(tiles, tiles.cast(x, i64), low), result)


def _narrowed(tiles: TileBuilder, x: SSAValue, result: Attribute) -> SSAValue:
    """The low bits of an integer, or of the whole part of a float."""
    if result != i1:
        return _through_f32(tiles, x, result)
    whole = x if isinstance(element_of(x), IntegerType) else _through_f32(tiles, x, i32)
    low = _and(tiles, whole, tiles.constant(1, element_of(whole)))
    return tiles.compare("!=", low, _zero(tiles, low))


_CASTS: dict[type[Operation], _Write] = {
    arith.ExtFOp: _through_f32,
    arith.TruncFOp: _through_f32,
    arith.SIToFPOp: _sign_extended,
    arith.UIToFPOp: _zero_extended,
    arith.FPToSIOp: _narrowed,
    arith.TruncIOp: _narrowed,
    arith.ExtSIOp: _sign_extended,
    arith.ExtUIOp: _zero_extended,
}

_ORDERED = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
_UNORDERED = {9: "<=", 10: "<", 11: ">=", 12: ">"}
"""Predicates that hold on NaN are those that do not, negated."""


def _compare_floats(tiles: TileBuilder, predicate: int, a: SSAValue, b: SSAValue) -> SSAValue:
    if is_half(element_of(a)):
        a, b = tiles.cast(a, f32), tiles.cast(b, f32)
    if predicate in _ORDERED:
        return tiles.compare(_ORDERED[predicate], a, b)
    if predicate in _UNORDERED:
        return _not(tiles, tiles.compare(_UNORDERED[predicate], a, b))
    match predicate:
        case 0 | 15:
            return tiles.constant(predicate == 15, i1)
        case 6 | 8:
            apart = _or(tiles, tiles.compare("<", a, b), tiles.compare(">", a, b))
            return apart if predicate == 6 else _not(tiles, apart)
        case _:
            # `x != x` is how Triton asks whether x is NaN.
            nan = tiles.compare("!=", a, a)
            if b is not a:
                nan = _or(tiles, nan, tiles.compare("!=", b, b))
            return nan if predicate == 14 else _not(tiles, nan)


_INTEGER_ORDER = ("==", "!=", "<", "<=", ">", ">=")


def _compare_integers(tiles: TileBuilder, predicate: int, a: SSAValue, b: SSAValue) -> SSAValue:
    element = element_of(a)
    unsigned = predicate >= 6
    predicate -= 4 if unsigned else 0
    if element == i1:
        a, b = tiles.cast(a, i32), tiles.cast(b, i32)
        if not unsigned and predicate >= 2:
            # A signed truth value is 0 or -1.
            a, b = b, a
    elif unsigned:
        # Flipping the sign bit turns the unsigned order into the signed one.
        sign = tiles.constant(-(1 << (cast(IntegerType, element).width.data - 1)), element)
        a, b = _xor(tiles, a, sign), _xor(tiles, b, sign)
    return tiles.compare(_INTEGER_ORDER[predicate], a, b)
