"""The cells that a projection selects, as a NumPy view.

An affine projection of single cells is a choice of strides, so reading through one copies nothing:
the view has one axis per index dimension, of extent 1 where the projection does not depend on it.

    >>> columns = Projection.of([[0, 1]], inputs=2)
    >>> cells(np.arange(3), Range.of((3,)), columns, Range.of((2, 3))).shape
    (1, 3)
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
from numpy.lib.stride_tricks import as_strided

from tapestry.runtime.executor import Array
from tapestry.zspace import Projection, Range


def cells(array: Array, box: Range, projection: Projection, index: Range) -> Array:
    """The view of `array` (which stores `box`) over the points of `index`.

    What the projection selects over `index` must lie inside `box`: the verifier makes sure of it,
    and this would read foreign memory otherwise. An empty `index` gives an empty view.
    """
    matrix = projection.map.matrix
    shape = moving_shape(projection, index)
    if index.is_empty:
        return np.empty(shape, array.dtype)
    first = _first_cell(box, projection, index)
    # The Ellipsis keeps a view where there is no dimension to slice.
    corner = array[(*(slice(n, None) for n in first), ...)]
    steps = tuple(
        sum(row[d] * stride for row, stride in zip(matrix, array.strides, strict=True))
        for d in range(index.rank)
    )
    if not hasattr(ml_dtypes, array.dtype.name):
        return as_strided(corner, shape, steps)
    # NumPy cannot name every type of ml_dtypes, so their cells are strided as bytes.
    raw = corner.view(f"V{array.itemsize}")
    return as_strided(raw, shape, steps).view(array.dtype)


def moving_shape(projection: Projection, index: Range) -> tuple[int, ...]:
    """The extents of `index`, 1 along dimensions that the projection does not move along."""
    moving = {dim for terms in projection.map.terms for _, dim in terms}
    return tuple(n if d in moving else min(n, 1) for d, n in enumerate(index.shape))


def coordinates(box: Range) -> Callable[[int], Array]:
    """The coordinates of a box along each of its dimensions, shaped to broadcast over it."""

    def along(dim: int) -> Array:
        shape = [1] * box.rank
        shape[dim] = box.shape[dim]
        return np.arange(box.start[dim], box.end[dim], dtype=np.int64).reshape(shape)

    return along


def _first_cell(box: Range, projection: Projection, index: Range) -> tuple[int, ...]:
    """Where the first point of `index` reads, counted from the start of `box`."""
    cell = projection.map.apply(index.start)
    return tuple(at - start for at, start in zip(cell, box.start, strict=True))


def whole(array: Array, index: Range) -> Array:
    """`array` with every extent-1 axis that `cells` left repeated to the extent of `index`."""
    return np.broadcast_to(array, index.shape)
