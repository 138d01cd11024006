"""One map-fold on arrays: cells in, folded state, unwrapped values out.

The pieces that both array executors are made of. A `Tensor` is an array that knows which cells it
holds; `Block` values are computed over a box of the index space with one axis per dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tapestry.algebra.literals import number_in
from tapestry.algebra.monoids import Monoid, monoid_of
from tapestry.dialects import loom
from tapestry.dialects.loom import Fill, TensorType
from tapestry.runtime.arrays.access import cells, coordinates
from tapestry.runtime.arrays.arithmetic import cell_constant, cell_dtype
from tapestry.runtime.arrays.blocks import BlockCells
from tapestry.runtime.arrays.domains import inside_mask
from tapestry.runtime.arrays.gathering import clipped_cells
from tapestry.runtime.arrays.scalar import evaluate
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.cells import bits
from tapestry.zspace import Domain, Projection, Range


@dataclass(frozen=True, eq=False)
class Tensor:
    """An array and the range of cells it stores; `data.shape == box.shape`."""

    box: Range
    data: Array


def new_tensor(kind: TensorType) -> Tensor:
    """A tensor of a type, its cells not set yet."""
    return Tensor(kind.box, np.empty(kind.box.shape, cell_dtype(kind.element_type)))


def _read(
    tensors: Sequence[Tensor],
    projections: Sequence[Projection],
    fills: Sequence[Fill | None],
    box: Range,
    inside: Domain | None = None,
) -> list[Array | BlockCells]:
    """What a body takes of some tensors over a box, as far as the points are inside a domain."""
    found: list[Array | BlockCells] = []
    for tensor, projection, fill in zip(tensors, projections, fills, strict=True):
        outside = None
        if fill is not None:
            number = number_in(fill)
            assert number is not None
            outside = bits(cell_constant(number, fill.type))
        data = bits(tensor.data)
        if not projection.is_unit:
            needed = inside_mask(inside, box)
            found.append(BlockCells(data, tensor.box, projection, box, outside, needed))
        elif outside is None:
            found.append(cells(data, tensor.box, projection, box))
        else:
            found.append(clipped_cells(data, tensor.box, projection, box, outside))
    return found


def input_cells(
    op: loom.BlockSignature, box: Range, ins: Sequence[Tensor]
) -> list[Array | BlockCells]:
    """The inputs' cells, or blocks, over a box of the index space."""
    return _read(ins, op.in_maps, op.in_fills, box, op.inside)


def wrapped(op: loom.BlockSignature, box: Range, ins: Sequence[Tensor]) -> list[Array]:
    """What wrap yields over a box of the index space; axes may have extent 1.

    Points outside the operation's domain have the zero of its monoid.
    """
    values = evaluate(op.wrap_block, input_cells(op, box, ins), coordinates(box))
    if op.inside is None:
        return values
    monoid = monoid_of(op)
    return values if monoid is None else zero_outside(op.inside, box, monoid, values)


def zero_state(monoid: Monoid, shape: Sequence[int]) -> list[Array]:
    """The state of an empty fold, of a shape."""
    parts = zip(monoid.zero, monoid.state, strict=True)
    return [
        np.full(tuple(shape), cell_constant(zero, kind), cell_dtype(kind)) for zero, kind in parts
    ]


def merged(monoid: Monoid, first: Sequence[Array], second: Sequence[Array]) -> list[Array]:
    """Two states merged, cell by cell."""

    def no_coordinate(dim: int) -> Array:
        raise AssertionError(f"a merge has no coordinate along dimension {dim}")

    return evaluate(monoid.merge, [*first, *second], no_coordinate)


def stored(op: loom.BlockSignature, state: Sequence[Array]) -> list[Array]:
    """A state in its own types: executors may fold in wider ones."""
    pairs = zip(state, op.state_types, strict=True)
    return [part.astype(cell_dtype(kind), copy=False) for part, kind in pairs]


def finished(
    op: loom.BlockSignature, box: Range, state: Sequence[Array], extras: Sequence[Tensor]
) -> list[Array]:
    """The outputs' values over a box of the map dimensions, from the folded state there."""
    state = stored(op, state)
    unwrap = op.unwrap_block
    if unwrap is None:
        return state
    read = _read(extras, op.extra_maps, op.extra_fills, box)
    along = coordinates(box)
    position = {dim: axis for axis, dim in enumerate(op.kept_dims)}
    return evaluate(unwrap, [*state, *read], lambda dim: along(position[dim]))


def write(
    op: loom.BlockSignature, box: Range, values: Sequence[Array], outs: Sequence[Tensor]
) -> None:
    """Store values over a box of the map dimensions into the outputs."""
    for value, projection, out in zip(values, op.out_maps, outs, strict=True):
        if not box.is_empty:
            # The view names each cell once. An axis that the projection does not move along has
            # extent 1 in it: the value is the same all along, and the first one is written.
            view = cells(out.data, out.box, projection, box)
            over = np.broadcast_shapes(value.shape, view.shape)
            pairs = zip(view.shape, over, strict=True)
            first = tuple(slice(1) if one < many else slice(None) for one, many in pairs)
            view[...] = np.broadcast_to(value, over)[first]


def boxes_within(box: Range, limit: int) -> list[Range]:
    """`box` cut into boxes of at most `limit` cells, in row-major order.

    Leading dimensions are cut to single coordinates before a later one is cut at all, so the
    boxes, read one after another, visit the points in row-major order.
    """
    if box.size <= limit or box.rank == 0:
        return [box]
    inner = 1
    dim = box.rank - 1
    while dim > 0 and inner * box.shape[dim] <= limit:
        inner *= box.shape[dim]
        dim -= 1
    chunk = max(1, limit // inner)
    boxes = [box]
    for outer in range(dim):
        boxes = [part for whole in boxes for part in whole.split(outer, 1)]
    return [part for whole in boxes for part in whole.split(dim, chunk)]


def zero_outside(
    domain: Domain | None, box: Range, monoid: Monoid, values: Sequence[Array]
) -> list[Array]:
    """The parts of a state over `box`, where points outside have the monoid's zero."""
    mask = inside_mask(domain, box)
    if mask is None:
        return list(values)
    parts = zip(values, monoid.zero, monoid.state, strict=True)
    return [np.where(mask, value, cell_constant(zero, kind)) for value, zero, kind in parts]
