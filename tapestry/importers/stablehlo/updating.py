"""Writing a box at a computed place: `dynamic_update_slice`.

    result[p] = update[p - start] inside the box, and x[p] elsewhere

At a known place, as in every trip of a loop with a counter, nothing is computed: see
`movement.write`.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from tapestry.dialects import loom
from tapestry.importers.bodies import Body, cell_type
from tapestry.importers.operations import map_operation
from tapestry.importers.stablehlo.indexing import clamped, fixed
from tapestry.importers.stablehlo.movement import write
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Value
from tapestry.zspace import Projection


def _dynamic_update_slice(program: Program, op: Op) -> Value:
    x, update, *starts = op.operands
    places = fixed(starts, x.spec.shape, update.spec.shape)
    if places is not None:
        return write(x, update, places, program)
    rank, cell = x.spec.rank, cell_type(x.spec.dtype)
    computed = [start for start in starts if start.known is None]
    each, one = Projection.identity(rank), Projection.of([], inputs=rank)
    shape = list(update.spec.shape)
    box = Projection.of([(0,) * rank] * rank, None, shape, inputs=rank)
    block = cell if box.is_unit else loom.BlockType.of(shape, cell)
    body = Body([cell, *(cell_type(start.spec.dtype) for start in computed), block])
    indices = iter(body.arguments[1:-1])
    conditions: list[SSAValue] = []
    inner: list[SSAValue] = []
    for dim, (start, n, size) in enumerate(zip(starts, x.spec.shape, shape, strict=True)):
        if start.known is None:
            first = clamped(body, next(indices), n - size, unsigned=start.spec.is_unsigned)
        else:
            first = body.number(min(max(int(start.known), 0), n - size), i64)
        place = body.add(arith.SubiOp(body.index(dim), first))
        inner.append(place)
        conditions.append(body.add(arith.CmpiOp(place, body.number(size, i64), "ult")))
    new = body.arguments[-1]
    if isinstance(block, loom.BlockType):
        new = body.add(loom.ReadOp(new, inner, body.number(0, cell)))
    found = body.add(arith.SelectOp(body.all_of(conditions), new, body.arguments[0]))
    reads = [
        (program.tensor(x), each),
        *((program.tensor(start), one) for start in computed),
        (program.tensor(update), box),
    ]
    made = map_operation("dynamic_update_slice", program.kind(x.spec), reads, body.region(found))
    return program.insert(made)[0]


TRANSLATIONS: dict[str, Translation] = {
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
}
