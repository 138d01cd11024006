"""Cells as bits: `bitcast_convert`, between cells of one width and of several.

tensor<4x2xui32>  to  tensor<4xui64>        the last dimension's cells, the low bits first
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from tapestry.importers.bodies import Body, cell_type
from tapestry.importers.stablehlo.movement import concatenate, reshape, window
from tapestry.importers.stablehlo.pointwise import pointwise
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Spec, Value


def bitcast(program: Program, x: Value, dtype: str) -> Value:
    """The bits of cells as another type of their width."""
    kind = cell_type(dtype)

    def build(body: Body, cells: Sequence[SSAValue]) -> SSAValue:
        (cell,) = cells
        return cell if cell.type == kind else body.add(arith.BitcastOp(cell, kind))

    return (
        x
        if x.spec.dtype == dtype
        else pointwise(program, "bitcast", [x], x.spec.of(dtype=dtype), build)
    )


def _bitcast_convert(program: Program, op: Op) -> Value:
    (x,), (result,) = op.operands, op.results
    have, want = x.spec.width, result.width
    if {have, want} & {1} and have != want:
        raise program.error(f"{op.name} from {x.spec} to {result}: truth values have no bits")
    if have == want:
        return bitcast(program, x, result.dtype)
    bits = bitcast(program, x, f"ui{have}")
    made = _joined(program, bits, want) if have < want else _parted(program, bits, want)
    return bitcast(program, made, result.dtype)


def _joined(program: Program, x: Value, width: int) -> Value:
    """The cells along the last dimension as the bits of one."""
    *shape, count = x.spec.shape
    narrow, kind = x.spec.width, IntegerType(width)
    parts: list[Value] = []
    for place in range(count):
        start = [0] * len(shape) + [place]
        parts.append(reshape(program, window(program, x, start, [*shape, 1]), shape))

    def build(body: Body, cells: Sequence[SSAValue]) -> SSAValue:
        total: SSAValue | None = None
        for place, cell in enumerate(cells):
            wide = body.add(arith.ExtUIOp(cell, kind))
            if place:
                wide = body.add(arith.ShLIOp(wide, body.number(place * narrow, kind)))
            total = wide if total is None else body.add(arith.OrIOp(total, wide))
        assert total is not None
        return total

    return pointwise(program, "bitcast", parts, Spec(tuple(shape), f"ui{width}"), build)


def _parted(program: Program, x: Value, width: int) -> Value:
    """The bits of each cell as cells along a new last dimension."""
    wide, kind = IntegerType(x.spec.width), IntegerType(width)
    spec = x.spec.of(dtype=f"ui{width}")
    parts: list[Value] = []
    for place in range(x.spec.width // width):

        def build(body: Body, cells: Sequence[SSAValue], place: int = place) -> SSAValue:
            moved = body.add(arith.ShRUIOp(cells[0], body.number(place * width, wide)))
            return body.add(arith.TruncIOp(moved, kind))

        part = pointwise(program, "bitcast", [x], spec, build)
        parts.append(reshape(program, part, [*spec.shape, 1]))
    return concatenate(program, parts, spec.rank)


TRANSLATIONS: dict[str, Translation] = {"stablehlo.bitcast_convert": _bitcast_convert}
