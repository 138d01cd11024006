"""An operation as a function of whole arrays.

A map is its body; a fold by one reduction of NumPy's is its body and that; a contraction is a
matrix product; then comes unwrap. Everything else, and what is too large to be held at once, has no
function here: the numpy executor runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from tapestry.algebra.contraction import Contraction, find_contraction
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.literals import number_in
from tapestry.algebra.monoids import accumulating_monoid_of
from tapestry.algebra.reductions import find_reduction
from tapestry.algebra.scalars import widened
from tapestry.dialects import loom
from tapestry.dialects.loom import Fill, tensor_type
from tapestry.runtime.arithmetic import cell_constant
from tapestry.runtime.blocks import BlockCells
from tapestry.runtime.executor import Array
from tapestry.runtime.gathering import clipped_cells
from tapestry.runtime.prepared.bodies import Body, prepared_body
from tapestry.runtime.prepared.views import View, reader, writer
from tapestry.zspace import Projection, Range

Run: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""The outputs of an operation from the arrays of its operands."""

_Read: TypeAlias = Callable[[Array], Any]
_Fold: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]

CELLS = 1 << 22
"""Cells of an index space that are computed at once."""

_BLOCK = 1 << 16
"""Cells of a map that are computed at once, so that what is in between stays in cache."""


def prepared_operation(op: loom.OperationOp) -> Run | None:
    """What an operation does, whole; None where it is the executor's to run."""
    if op.partition is not None or op.scan_dim is not None or op.inside is not None:
        return None
    kept = op.kept_range(op.index)
    if op.index.is_empty or kept.is_empty:
        return None
    writers = [
        writer(projection, tensor_type(out).box, kept)
        for projection, out in zip(op.out_maps, op.outs, strict=True)
    ]
    fold = _fold(op)
    if fold is None or None in writers:
        return None
    unwrap = _unwrap(op, kept)
    if op.unwrap_block is not None and unwrap is None:
        return None
    split = len(op.ins)
    dtypes = [numpy_dtype(tensor_type(out).element_type) for out in op.outs]
    state_dtypes = [numpy_dtype(kind) for kind in op.state_types]
    stores: list[View] = [one for one in writers if one is not None]

    def run(operands: Sequence[Array]) -> list[Array]:
        values = fold(operands[:split])
        if unwrap is not None:
            values = [
                value if value.dtype == dtype else value.astype(dtype)
                for value, dtype in zip(values, state_dtypes, strict=True)
            ]
            values = unwrap(values, operands[split:])
        return [
            store(value if value.dtype == dtype else value.astype(dtype))
            for store, value, dtype in zip(stores, values, dtypes, strict=True)
        ]

    return run


def _fold(op: loom.OperationOp) -> _Fold | None:
    """The folded state over the map dimensions."""
    monoid = accumulating_monoid_of(op)
    if monoid is None:
        return _map(op)
    contraction = find_contraction(op, monoid)
    if contraction is not None:
        return _product(op, contraction)
    reduction = find_reduction(monoid.primitive, monoid.state[0])
    body = _body(op)
    if reduction is None or body is None or op.index.size > CELLS:
        return None
    reads, wide = _reads(op, op.index), numpy_dtype(monoid.state[0])
    folded, shape, extents = (
        op.fold_dims,
        op.index.shape,
        {d: op.index.shape[d] for d in op.fold_dims},
    )

    def fold(ins: Sequence[Array]) -> list[Array]:
        (values,) = body([read(array) for read, array in zip(reads, ins, strict=True)])
        if any(values.shape[dim] != extent for dim, extent in extents.items()):
            over = tuple(
                extents.get(dim, have) for dim, have in enumerate(values.shape or (1,) * len(shape))
            )
            values = np.broadcast_to(values, over)
        return [reduction.fold(values.astype(wide, copy=False), folded)]

    return fold


def _map(op: loom.OperationOp) -> _Fold | None:
    """What wrap yields, in blocks along the first dimension where it is long."""
    rows = op.index.shape[0] if op.index.rank else 1
    step = max(1, _BLOCK * rows // max(1, op.index.size))
    if step >= rows or op.index.size <= 2 * _BLOCK:
        body = _body(op)
        if body is None:
            return None
        reads = _reads(op, op.index)
        return lambda ins: body([read(array) for read, array in zip(reads, ins, strict=True)])
    parts: list[tuple[slice, Body, list[_Read]]] = []
    for part in op.index.split(0, step):
        body = prepared_body(op.wrap_block, part, range(part.rank))
        if body is None:
            return None
        at = slice(part.start[0] - op.index.start[0], part.end[0] - op.index.start[0])
        parts.append((at, body, _reads(op, part)))
    dtypes = [numpy_dtype(kind) for kind in op.state_types]
    shape = op.index.shape

    def in_blocks(ins: Sequence[Array]) -> list[Array]:
        outs = [np.empty(shape, dtype) for dtype in dtypes]
        for at, body, reads in parts:
            values = body([read(array) for read, array in zip(reads, ins, strict=True)])
            for out, value in zip(outs, values, strict=True):
                out[at] = value
        return outs

    return in_blocks


def _product(op: loom.OperationOp, contraction: Contraction) -> _Fold | None:
    """A matrix product of two factors that wrap multiplies."""
    index = op.index
    order = [*contraction.batch, *contraction.rows, *contraction.columns]
    inner = _cells(index, contraction.inner)
    sides = [
        _cells(index, contraction.batch) * _cells(index, d)
        for d in (contraction.rows, contraction.columns)
    ]
    factors = _body(op, (contraction.left, contraction.right))
    if factors is None or inner * max(sides) > CELLS:
        return None
    reads = _reads(op, index)
    left = _matrix(index, contraction.batch, contraction.rows, contraction.inner)
    right = _matrix(index, contraction.batch, contraction.inner, contraction.columns)
    missing = [dim for dim in op.kept_dims if dim not in order]
    apart = [index.shape[dim] for dim in order] + [1] * len(missing)
    axes = [*order, *missing]
    back = [axes.index(dim) for dim in op.kept_dims]
    moved = back != sorted(back)

    def fold(ins: Sequence[Array]) -> list[Array]:
        a, b = factors([read(array) for read, array in zip(reads, ins, strict=True)])
        product = np.matmul(left(widened(a)), right(widened(b))).reshape(apart)
        return [product.transpose(back) if moved else product]

    return fold


def _matrix(
    index: Range, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> View:
    """A factor as a matrix, or a stack of them; each side is several dimensions merged."""
    order = [*batch, *rows, *columns]
    dropped = tuple(dim for dim in range(index.rank) if dim not in order)
    arranged = [*order, *dropped]
    shape = [_cells(index, dims) for dims in ([batch] if batch else []) + [rows, columns]]
    extents = [index.shape[dim] for dim in order] + [1] * len(dropped)

    def arrange(factor: Array) -> Array:
        # A factor that one of its dimensions was broadcast along is repeated here.
        turned = factor.transpose(arranged)
        if list(turned.shape) != extents:
            turned = np.broadcast_to(turned, extents)
        return turned.reshape(shape)

    return arrange


def _unwrap(op: loom.OperationOp, kept: Range) -> Callable[..., list[Array]] | None:
    if op.unwrap_block is None:
        return None
    body = prepared_body(op.unwrap_block, kept, op.kept_dims)
    if body is None:
        return None
    reads = [
        _read(tensor_type(extra).box, projection, fill, kept)
        for extra, projection, fill in zip(op.extras, op.extra_maps, op.extra_fills, strict=True)
    ]

    def unwrap(state: Sequence[Array], extras: Sequence[Array]) -> list[Array]:
        read = [read(array) for read, array in zip(reads, extras, strict=True)]
        return body([*state, *read])

    return unwrap


def _body(op: loom.OperationOp, wanted: Sequence[SSAValue] | None = None) -> Body | None:
    return prepared_body(op.wrap_block, op.index, range(op.index.rank), wanted)


def _reads(op: loom.OperationOp, index: Range) -> list[_Read]:
    triples = zip(op.ins, op.in_maps, op.in_fills, strict=True)
    return [_read(tensor_type(value).box, p, fill, index) for value, p, fill in triples]


def _read(box: Range, projection: Projection, fill: Fill | None, index: Range) -> _Read:
    """What a body takes of a tensor over `box`."""
    outside: Array | None = None
    if fill is not None:
        number = number_in(fill)
        assert number is not None
        outside = _bits(cell_constant(number, fill.type))
    if not projection.is_unit:
        return lambda array: BlockCells(_bits(array), box, projection, index, outside)
    if outside is None or box.contains_range(projection.apply_range(index)):
        view = reader(projection, box, index)
        return lambda array: view(_bits(array))
    return lambda array: clipped_cells(_bits(array), box, projection, index, outside)


def _bits(cells: Array) -> Array:
    """Cells as bodies hold them: the bits of unsigned ones."""
    return cells.view(f"i{cells.itemsize}") if cells.dtype.kind == "u" else cells


def _cells(box: Range, dims: Sequence[int]) -> int:
    return prod(box.shape[dim] for dim in dims)
