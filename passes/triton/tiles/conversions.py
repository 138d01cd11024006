"""Conversions on tiles: what `arith`'s casts become.

Floats of 8 and 16 bits meet other types by way of float32. Floats become integers by truncation;
what is out of range becomes the nearest integer there is, and NaN 0, which no cast of a GPU
promises:

    %i = arith.fptosi %x : f32 to i8     tl.where(x >= 128.0, 127, tl.where(x < -128.0, -128, ...))
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from tapestry.algebra.dtypes import integer_width, is_half, is_narrow
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of
from tapestry.passes.triton.tiles.builder import TileBuilder
from tapestry.passes.triton.tiles.integers import (
    lowest_bit,
    sign_extended,
    zero_extended,
)


def _through_f32(tiles: TileBuilder, x: SSAValue, result: Attribute) -> SSAValue:
    """A conversion to a float; those of 8 and 16 bits are reached by way of float32."""
    if is_narrow(element_of(x)) or is_narrow(result):
        x = tiles.cast(x, f32)
    return tiles.cast(x, result)


def _from_signed(tiles: TileBuilder, x: SSAValue, result: Attribute) -> SSAValue:
    whole = sign_extended(tiles, x, i32) if element_of(x) == i1 else x
    return _through_f32(tiles, whole, result)


def _from_unsigned(tiles: TileBuilder, x: SSAValue, result: Attribute) -> SSAValue:
    source = element_of(x)
    if source == i1:
        return _through_f32(tiles, x, result)
    wide = f32 if is_half(result) else result
    return tiles.cast(tiles.value(triton.CastOp(x, wide, unsigned=True)), result)


def _truncated(tiles: TileBuilder, x: SSAValue, result: Attribute) -> SSAValue:
    return lowest_bit(tiles, x) if result == i1 else tiles.cast(x, result)


def _saturated(*, signed: bool) -> Callable[[TileBuilder, SSAValue, Attribute], SSAValue]:
    """A float as an integer: its whole part, or the nearest bound, or 0 for NaN."""

    def write(tiles: TileBuilder, x: SSAValue, result: Attribute) -> SSAValue:
        width = integer_width(result)
        low = -(1 << (width - 1)) if signed else 0
        high = (1 << (width - 1 if signed else width)) - 1
        # The type that the bounds fit in; 64 unsigned bits have a conversion of their own.
        wide = i32 if width < 32 or (signed and width == 32) else i64
        if is_half(element_of(x)):
            x = tiles.cast(x, f32)
        element = element_of(x)
        floor, top = tiles.constant(low, element), tiles.constant(high + 1, element)
        over, under = tiles.compare(">=", x, top), tiles.compare("<", x, floor)
        inside = tiles.value(
            arith.AndIOp(*tiles.pair(tiles.compare(">=", x, floor), tiles.compare("<", x, top)))
        )
        number = tiles.where(inside, x, tiles.constant(0, element))
        if width == 64 and not signed:
            whole = tiles.value(triton.CastOp(number, i64, unsigned=True))
        else:
            whole = tiles.cast(number, wide)
        whole = tiles.where(under, tiles.constant(low, wide), whole)
        whole = tiles.where(over, tiles.constant(high, wide), whole)
        return _truncated(tiles, whole, result)

    return write


def _reinterpreted(tiles: TileBuilder, x: SSAValue, result: Attribute) -> SSAValue:
    if element_of(x) == result:
        return x
    return tiles.value(triton.BitcastOp(x, result))


CONVERSIONS: dict[type[Operation], Callable[[TileBuilder, SSAValue, Attribute], SSAValue]] = {
    arith.ExtFOp: _through_f32,
    arith.TruncFOp: _through_f32,
    arith.SIToFPOp: _from_signed,
    arith.UIToFPOp: _from_unsigned,
    arith.FPToSIOp: _saturated(signed=True),
    arith.FPToUIOp: _saturated(signed=False),
    arith.TruncIOp: _truncated,
    arith.ExtSIOp: sign_extended,
    arith.ExtUIOp: zero_extended,
    arith.BitcastOp: _reinterpreted,
}
