"""What the calls of a tape read of the whole arrays, part by part.

    source = cells_read(0, read, tensor_box, index)
    whole = source.whole([x, w])            # once per call: a view with an axis per dimension
    source.at(whole, part)                  # for each part: the slice that it reads

A source whose projection stays inside the tensor is a slice of one view. What is clipped is copied
part by part; blocks and coordinates are made for each part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapestry.algebra.bodies import moving_dims
from tapestry.algebra.literals import number_in
from tapestry.dialects.loom import Fill
from tapestry.runtime.access import coordinates
from tapestry.runtime.arithmetic import cell_constant
from tapestry.runtime.blocks import BlockCells
from tapestry.runtime.domains import inside_mask
from tapestry.runtime.executor import Array
from tapestry.runtime.gathering import clipped_cells
from tapestry.runtime.prepared.views import reader
from tapestry.zspace import Domain, Projection, Range


@dataclass(frozen=True)
class Source:
    """`whole` is of the operands of a call; `at` is of that and a part of the index space."""

    whole: Callable[[Sequence[Array]], Any]
    at: Callable[[Any, Range], Any]


def slicer(dims: frozenset[int], index: Range) -> Callable[[Array, Range], Array]:
    """The part of an array that has an axis per dimension of `index`, of extent 1 off `dims`."""
    moving = [(dim, index.start[dim]) for dim in sorted(dims) if index.shape[dim] > 1]
    every = [slice(None)] * index.rank

    def at(whole: Array, part: Range) -> Array:
        where = every.copy()
        for dim, low in moving:
            where[dim] = slice(part.start[dim] - low, part.end[dim] - low)
        return whole[(*where, ...)]  # a view also where there is no dimension to slice

    return at


def cells_read(
    operand: int,
    projection: Projection,
    fill: Fill | None,
    box: Range,
    index: Range,
    inside: Domain | None,
) -> Source:
    """What a body takes of an operand, which stores `box`, at the points that are inside."""
    outside: Array | None = None
    if fill is not None:
        number = number_in(fill)
        assert number is not None
        outside = bits(cell_constant(number, fill.type))
    if not projection.is_unit:
        return Source(
            lambda operands: bits(operands[operand]),
            lambda data, part: BlockCells(
                data, box, projection, part, outside, inside_mask(inside, part)
            ),
        )
    if outside is not None and not box.contains_range(projection.apply_range(index)):
        return Source(
            lambda operands: bits(operands[operand]),
            lambda data, part: clipped_cells(data, box, projection, part, outside),
        )
    view = reader(projection, box, index)
    at = slicer(moving_dims(projection), index)
    return Source(lambda operands: view(bits(operands[operand])), at)


def coordinate(dim: int, shift: int) -> Source:
    """The coordinates along a dimension, `shift` added."""

    def at(_: None, part: Range) -> Array:
        return coordinates(part)(dim) + np.int64(shift)

    return Source(lambda _: None, at)


def mask(inside: Domain) -> Source:
    """Which points are inside."""

    def at(_: None, part: Range) -> Array:
        found = inside_mask(inside, part)
        return np.ones((1,) * part.rank, np.bool_) if found is None else found

    return Source(lambda _: None, at)


def bits(cells: Array) -> Array:
    """Cells as bodies hold them: the bits of unsigned ones."""
    return cells.view(f"i{cells.itemsize}") if cells.dtype.kind == "u" else cells
