"""Integers of 64 bits that fit into 32: a body's coordinates, and what is computed of them.

    %d = arith.subi %j, %i : index                tl.where(n - m <= 0, 0.0, float("-inf"))
    %c = arith.cmpi sle, %d, %zero : index        and not n.to(tl.int64) - m.to(tl.int64)

A GPU has no 64-bit arithmetic: an addition is two instructions, a product four. A body's indices
have 64 bits, and coordinates are converted to them. So what is converted is remembered with the
bounds that are known of it (`TileBuilder.bounds`), and sums, differences and products of such
values are computed before the conversion, which often nothing needs then.

Bounds hold in lanes that are points: in others nothing is asked for.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Operation, SSAValue

from tapestry.dialects import triton
from tapestry.dialects.triton import element_of
from tapestry.passes.triton.tiles.builder import Bounds, TileBuilder

_LEAST, _MOST = -(1 << 31), (1 << 31) - 1

_DIVISIONS = (arith.DivSIOp, arith.FloorDivSIOp, arith.RemSIOp)


def narrowed(tiles: TileBuilder, value: SSAValue) -> SSAValue | None:
    """The 32-bit integer whose sign extension a 64-bit one is, where there is one."""
    match value.owner:
        case arith.ConstantOp(value=IntegerAttr() as attribute) if element_of(value) == i64:
            number = attribute.value.data
            return tiles.constant(number, i32) if _LEAST <= number <= _MOST else None
        case triton.CastOp(source=source) if element_of(value) == i64:
            return source if element_of(source) == i32 else None
        case triton.ExpandDimsOp(source=source, axis=axis):
            found = narrowed(tiles, source)
            return None if found is None else _expanded(tiles, found, axis.value.data)
        case _:
            return None


def _expanded(tiles: TileBuilder, found: SSAValue, axis: int) -> SSAValue:
    """A narrow tile with the axis that the wide one was given; bounds stay."""
    made = tiles.value(triton.ExpandDimsOp(found, axis), found.name_hint)
    tiles.bounds[made] = bounds_of(tiles, found)
    return made


def bounds_of(tiles: TileBuilder, value: SSAValue) -> Bounds:
    """The least and the greatest that a 32-bit integer is known to be."""
    match value.owner:
        case arith.ConstantOp(value=IntegerAttr() as attribute):
            return attribute.value.data, attribute.value.data
        case _:
            return tiles.bounds.get(value, (_LEAST, _MOST))


def known_bounds(tiles: TileBuilder, value: SSAValue) -> Bounds | None:
    """The bounds of a 64-bit integer that fits into 32."""
    found = narrowed(tiles, value)
    return None if found is None else bounds_of(tiles, found)


def bounds_after(op: Operation, a: Bounds, b: Bounds) -> Bounds | None:
    """The bounds of what an operation makes of two integers; None where it is not known.

    >>> from xdsl.dialects.test import TestOp
    >>> m, n = TestOp(result_types=[i64, i64]).results
    >>> bounds_after(arith.SubiOp(m, n), (0, 7), (0, 99))
    (-99, 7)
    >>> bounds_after(arith.RemSIOp(m, n), (0, 99), (8, 8))
    (0, 7)
    """
    match op:
        case arith.AddiOp():
            return a[0] + b[0], a[1] + b[1]
        case arith.SubiOp():
            return a[0] - b[1], a[1] - b[0]
        case arith.MuliOp():
            products = [x * y for x in a for y in b]
            return min(products), max(products)
        case arith.MaxSIOp():
            return max(a[0], b[0]), max(a[1], b[1])
        case arith.MinSIOp():
            return min(a[0], b[0]), min(a[1], b[1])
        case _ if isinstance(op, _DIVISIONS) and a[0] >= 0 and b[0] == b[1] > 0:
            if isinstance(op, arith.RemSIOp):
                return 0, min(a[1], b[0] - 1)
            return a[0] // b[0], a[1] // b[0]
        case _:
            return None


def narrow_operands(
    tiles: TileBuilder, op: Operation, operands: list[SSAValue]
) -> tuple[list[SSAValue], Bounds] | None:
    """What a 64-bit operation may be computed of in 32, and the bounds of its result.

    Legal where both operands are extended from 32 bits and the result, by their bounds, fits.
    """
    if op.results[0].type != i64 or len(operands) != 2:
        return None
    found = [one for operand in operands if (one := narrowed(tiles, operand)) is not None]
    if len(found) != len(operands):
        return None
    bounds = bounds_after(op, *(bounds_of(tiles, one) for one in found))
    if bounds is None or not _fit(bounds):
        return None
    return found, bounds


def shifted(tiles: TileBuilder, value: SSAValue, by: int) -> SSAValue:
    """A 64-bit integer that is so much more."""
    if by == 0:
        return value
    found, bounds = narrowed(tiles, value), known_bounds(tiles, value)
    if found is None or bounds is None or not _fit((bounds[0] + by, bounds[1] + by)):
        return tiles.add(value, tiles.constant(by, i64))
    made = tiles.add(found, tiles.constant(by, i32))
    tiles.bounds[made] = bounds[0] + by, bounds[1] + by
    return tiles.cast(made, i64)


def _fit(bounds: Bounds) -> bool:
    return bounds[0] >= _LEAST and bounds[1] <= _MOST
