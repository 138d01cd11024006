"""A computed side of a product in float16, whatever its range: row by row in units of its own.

    size = tl.max(tl.abs(ds), axis=1)
    unit_2 = tl.maximum(unit, size * 2**-14)                    # carried, as `acc` is
    acc = acc * (unit / unit_2)[:, None]
    acc = tl.dot((ds / unit_2[:, None]).to(tl.float16), k, acc)
    ...
    acc * unit[:, None]                                         # the finished sum

A row is what stays of the side along the folded axis, and so a row or a column of the sum. Its
greatest cell so far becomes at most 2^14, and nothing overflows; what is too small for float16
then is below 2^-38 of that cell. An infinite cell stays infinite, and NaN stays NaN; beside an
infinite cell of the other side, one that small is zero, and their product NaN.
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f16, f32
from xdsl.ir import Block, Region, SSAValue

from tapestry.dialects import triton
from tapestry.passes.triton.tiles.builder import TileBuilder

_ROOM = 2.0**-14
"""A unit, of the greatest cell that it is for: float16 ends below 2^16."""

LEAST = 2.0**-126
"""The unit of a row without cells: the least normal number, whose reciprocal is finite."""

_MOST = 2.0**113
"""The unit of the greatest cells that are finite, and of those that are not."""


def in_units(
    tiles: TileBuilder, side: SSAValue, axis: int, before: SSAValue | None, name: str
) -> tuple[SSAValue, SSAValue, SSAValue | None]:
    """A float32 side as float16, its units, and what a sum in the units `before` is multiplied by.

    `axis` is the side's dimension that is folded; `name` is the sum's.
    """
    room, most = tiles.constant(_ROOM, f32), tiles.constant(_MOST, f32)
    least = tiles.constant(LEAST, f32) if before is None else before
    found = tiles.once(arith.MulfOp, *tiles.pair(_size(tiles, side, axis, name), room))
    found = tiles.once(arith.MaxnumfOp, *tiles.pair(found, least), hint=f"{name}_found")
    unit = tiles.once(arith.MinnumfOp, *tiles.pair(found, most), hint=f"{name}_unit")
    one = tiles.constant(1.0, f32)
    per_unit = tiles.once(arith.DivfOp, *tiles.pair(one, unit), hint=f"per_{name}_unit")
    scaled = tiles.once(arith.MulfOp, *tiles.pair(side, tiles.expand(per_unit, 1 - axis, 2)))
    scaled.name_hint = f"{name}_side"
    # Exactly 1 where the unit is what it was: sums are moved often.
    moved = None if before is None else tiles.once(arith.DivfOp, before, unit)
    return tiles.cast(scaled, f16), unit, moved


def _size(tiles: TileBuilder, side: SSAValue, axis: int, name: str) -> SSAValue:
    """The greatest size of a cell along an axis; NaN is none."""
    body = Block(arg_types=(f32, f32))
    a, b = body.args
    a.name_hint, b.name_hint = "a", "b"
    greater = arith.MaxnumfOp(a, b)
    body.add_ops([greater, triton.YieldOp(greater.result)])
    sizes = tiles.once(math.AbsFOp, side)
    op = triton.ReduceOp("maxnum", [sizes], axis, Region(body))
    tiles.append(op)
    (found,) = op.outs
    found.name_hint = f"{name}_size"
    return found
