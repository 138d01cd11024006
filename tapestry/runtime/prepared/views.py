"""Reads and writes through projections that are decided before there is an array.

    >>> columns = Projection.of([[0, 1]], inputs=2)
    >>> read = reader(columns, Range.of((3,)), Range.of((2, 3)))
    >>> read(np.arange(3)).shape
    (1, 3)

Most projections move each dimension of a tensor along a dimension of their own: that is a slice and
a transposition. The others (windows, diagonals) are choices of strides.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tapestry.runtime.access import cells
from tapestry.runtime.executor import Array
from tapestry.zspace import Projection, Range

View = Callable[[Array], Array]
"""An array as another one on the same memory."""


def reader(projection: Projection, box: Range, index: Range) -> View:
    """What `cells` gives over `index`, of arrays that store `box`."""
    plan = None if index.is_empty else _slices(projection, box, index)
    if plan is None:
        return lambda array: cells(array, box, projection, index)
    at, order, spread = plan
    if not any(isinstance(one, int) or one != slice(None) for one in at):
        at = ()
    if list(order) == sorted(order):
        order = ()
    if None not in spread:
        spread = ()

    def read(array: Array) -> Array:
        if at:
            array = array[at]
        if order:
            array = array.transpose(order)
        return array[spread] if spread else array

    return read


def writer(projection: Projection, box: Range, index: Range) -> View | None:
    """The tensor over `box` that values over `index` make, None where it must be written cell by
    cell: the inverse of a reader that takes every cell once, and in its own dimension.
    """
    terms = projection.map.terms
    dims = [row[0][1] for row in terms if len(row) == 1 and row[0][0] == 1]
    fixed = [axis for axis, row in enumerate(terms) if len(row) == 0]
    if len(dims) + len(fixed) != len(terms) or len(set(dims)) != len(dims) or index.is_empty:
        return None
    if projection.apply_range(index) != box:
        return None
    left_out = [dim for dim in range(index.rank) if dim not in dims]
    first = tuple(0 if dim in left_out else slice(None) for dim in range(index.rank))
    kept = sorted(dims)
    whole = tuple(index.shape[dim] for dim in kept)
    order = tuple(kept.index(dim) for dim in dims)
    moved = order != tuple(range(len(order)))
    spread = tuple(None if axis in fixed else slice(None) for axis in range(len(terms)))

    def write(values: Array) -> Array:
        if left_out and values.ndim:
            values = values[first]
        if values.shape != whole:
            values = np.broadcast_to(values, whole)
        if moved:
            values = values.transpose(order)
        return values[spread] if fixed else values

    return write


def _slices(
    projection: Projection, box: Range, index: Range
) -> tuple[tuple[int | slice, ...], tuple[int, ...], tuple[slice | None, ...]] | None:
    """The slices of a tensor, the order of their axes, and where axes of extent 1 stand between."""
    start = projection.map.apply(index.start)
    at: list[int | slice] = []
    dims: list[int] = []
    for terms, first, low, extent in zip(
        projection.map.terms, start, box.start, box.shape, strict=True
    ):
        first -= low
        if len(terms) == 0:
            at.append(first)
            continue
        factor, dim = terms[0]
        if len(terms) > 1 or dim in dims:
            return None
        dims.append(dim)
        last = first + factor * (index.shape[dim] - 1)
        whole = factor == 1 and first == 0 and last == extent - 1
        end = last + (1 if factor > 0 else -1)
        at.append(slice(None) if whole else slice(first, None if end < 0 else end, factor))
    moving = sorted(dims)
    order = tuple(dims.index(dim) for dim in moving)
    spread = tuple(slice(None) if dim in dims else None for dim in range(index.rank))
    return tuple(at), order, spread
