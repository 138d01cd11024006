"""Cells at computed places: `gather` and `dynamic_slice`.

"stablehlo.gather"(%table, %ids) <{offset_dims = [1], collapsed_slice_dims = [0], ...}>

    loom.operation @gather over <... [map, map]>
        ins(%ids : (d0, d1) -> (d0, 0), %table : (d0, d1) -> (0, d1) :> [50, 1])
        wrap (%id: i32, %rows: !loom.block<[50, 1], f32>) { ... loom.read %rows[%place, %zero] ... }

A dimension that is indexed is read as a box, at the place that is computed and clamped as StableHLO
says. An index that is a coordinate, as in `x[jnp.arange(n), i]`, needs no box, and a start that is
known is a slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from tapestry.dialects import loom
from tapestry.importers.bodies import Body, cell_type
from tapestry.importers.operations import map_operation
from tapestry.importers.stablehlo.affine import affine_of
from tapestry.importers.stablehlo.attributes import integers
from tapestry.importers.stablehlo.bindings import stablehlo_dialect
from tapestry.importers.stablehlo.movement import reshape, window
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Affine, Spec, Value
from tapestry.zspace import Projection


@dataclass(frozen=True)
class Along:
    """Where one dimension of the operand is read: an affine row, moved by an index where there is
    one. `size` cells from there on are what the operation selects.
    """

    row: tuple[int, ...]
    offset: int
    index: Value | None = None
    index_rows: tuple[tuple[int, ...], ...] = ()
    size: int = 1


def lookup(program: Program, label: str, x: Value, along: Sequence[Along], result: Spec) -> Value:
    """The tensor of cells of `x`, each found dimension by dimension."""
    rank = result.rank
    ins: list[tuple[SSAValue, Projection]] = []
    kinds: list[Attribute] = []
    for dim in along:
        if dim.index is not None:
            ins.append((program.tensor(dim.index), Projection.of(dim.index_rows, inputs=rank)))
            kinds.append(cell_type(dim.index.spec.dtype))
    boxes = [dim.index is not None and n > 1 for dim, n in zip(along, x.spec.shape, strict=True)]
    cell = cell_type(x.spec.dtype)
    matrix = [(0,) * rank if box else dim.row for dim, box in zip(along, boxes, strict=True)]
    offset = [0 if box else dim.offset for dim, box in zip(along, boxes, strict=True)]
    shape = [n if box else 1 for n, box in zip(x.spec.shape, boxes, strict=True)]
    ins.append((program.tensor(x), Projection.of(matrix, offset, shape, inputs=rank)))
    kinds.append(loom.BlockType.of(shape, cell) if any(boxes) else cell)
    body = Body(kinds)
    indices = iter(body.arguments[:-1])
    places: list[SSAValue] = []
    for dim, box, n in zip(along, boxes, x.spec.shape, strict=True):
        index = next(indices) if dim.index is not None else None
        if index is None or dim.index is None or not box:
            places.append(body.number(0, i64))
            continue
        start = clamped(body, index, n - dim.size, unsigned=dim.index.spec.is_unsigned)
        places.append(body.affine(dim.row, dim.offset, start))
    found = body.arguments[-1]
    if any(boxes):
        found = body.add(loom.ReadOp(found, places))
    op = map_operation(label, program.kind(result), ins, body.region(found))
    return program.insert(op)[0]


def clamped(body: Body, index: SSAValue, most: int, *, unsigned: bool) -> SSAValue:
    """An index as an i64, from 0 to `most`."""
    wide = body.widened(index, unsigned=unsigned)
    low = body.add(arith.MaxSIOp(wide, body.number(0, i64)))
    return body.add(arith.MinSIOp(low, body.number(most, i64)))


def unit(rank: int, dim: int) -> tuple[int, ...]:
    """The row that is one coordinate."""
    return tuple(int(d == dim) for d in range(rank))


def column(program: Program, indices: Value, place: int, vector: int) -> Value:
    """The `place`-th index of every vector of indices along dimension `vector`, without it."""
    if vector == indices.spec.rank:
        return indices
    shape = [n for dim, n in enumerate(indices.spec.shape) if dim != vector]
    if indices.joined is not None and indices.joined[0] == vector:
        for part in indices.joined[1]:
            if place < part.spec.shape[vector]:
                return column(program, part, place, vector)
            place -= part.spec.shape[vector]
    function = affine_of(indices)
    if function is not None:
        kept = [c for dim, c in enumerate(function.coefficients) if dim != vector]
        moved_by = function.coefficients[vector] * place
        return Value(
            indices.spec.of(shape=tuple(shape)),
            affine=Affine(tuple(kept), function.constant + moved_by),
        )
    start = [place if dim == vector else 0 for dim in range(indices.spec.rank)]
    size = [1 if dim == vector else n for dim, n in enumerate(indices.spec.shape)]
    return reshape(program, window(program, indices, start, size), shape)


def _gather(program: Program, op: Op) -> Value:
    x, indices = op.operands
    (result,) = op.results
    numbers = stablehlo_dialect().GatherDimensionNumbers(op.attributes["dimension_numbers"])
    sizes = integers(op.attributes["slice_sizes"])
    vector = int(numbers.index_vector_dim)
    offset_dims = list(numbers.offset_dims)
    batch_dims: list[int] = [dim for dim in range(result.rank) if dim not in offset_dims]
    left_out = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [dim for dim in range(x.spec.rank) if dim not in left_out]
    offsets = dict(zip(kept, offset_dims, strict=True))
    index_rows = tuple(unit(result.rank, dim) for dim in batch_dims)
    along: list[Along] = []
    for dim, size in enumerate(sizes):
        row = unit(result.rank, offsets[dim]) if dim in offsets else (0,) * result.rank
        if dim in numbers.operand_batching_dims:
            number = list(numbers.operand_batching_dims).index(dim)
            of = int(numbers.start_indices_batching_dims[number])
            place = of if of < vector else of - 1
            along.append(Along(unit(result.rank, batch_dims[place]), 0))
        elif dim in numbers.start_index_map:
            number = list(numbers.start_index_map).index(dim)
            index = column(program, indices, number, vector)
            along.append(indexed(row, index, index_rows, x.spec.shape[dim], size))
        else:
            along.append(Along(row, 0, size=size))
    return lookup(program, "gather", x, along, result)


def indexed(
    row: tuple[int, ...],
    index: Value,
    index_rows: tuple[tuple[int, ...], ...],
    extent: int,
    size: int,
) -> Along:
    """How a dimension is read at an index: without one where the index is affine and inside."""
    function = affine_of(index)
    if function is not None:
        low, high = function.bounds(index.spec.shape)
        if low == high:
            low = high = min(max(low, 0), extent - size)
            function = Affine(function.coefficients, low)
        if low >= 0 and high <= extent - size:
            total = list(row)
            for coefficient, other in zip(function.coefficients, index_rows, strict=True):
                total = [a + coefficient * b for a, b in zip(total, other, strict=True)]
            return Along(tuple(total), function.constant, size=size)
    return Along(row, 0, index, index_rows, size)


def _dynamic_slice(program: Program, op: Op) -> Value:
    x, *starts = op.operands
    (result,) = op.results
    places = fixed(starts, x.spec.shape, result.shape)
    if places is not None:
        return window(program, x, places, result.shape)
    along = [
        indexed(unit(result.rank, dim), start, (), n, size)
        for dim, (start, n, size) in enumerate(zip(starts, x.spec.shape, result.shape, strict=True))
    ]
    return lookup(program, "dynamic_slice", x, along, result)


def fixed(
    starts: Sequence[Value], extents: Sequence[int], sizes: Sequence[int]
) -> list[int] | None:
    """Where a box starts, moved inside; None unless all starts are known."""
    known = [None if start.known is None else int(start.known) for start in starts]
    if any(start is None for start in known):
        return None
    return [
        min(max(start or 0, 0), n - size)
        for start, n, size in zip(known, extents, sizes, strict=True)
    ]


TRANSLATIONS: dict[str, Translation] = {
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.gather": _gather,
}
