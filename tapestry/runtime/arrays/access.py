"""The cells that a projection selects, as a NumPy view.

An affine projection of single cells is a choice of strides, so reading through one copies nothing:
the view has one axis per index dimension, of extent 1 where the projection does not depend on it.

    >>> columns = Projection.of([[0, 1]], inputs=2)
    >>> cells(np.arange(3), Range.of((3,)), columns, Range.of((2, 3))).shape
    (1, 3)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import mul
from typing import Any

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
    return viewer(box, projection, index)(array)


def viewer(box: Range, projection: Projection, index: Range) -> Callable[[Array], Array]:
    """`cells` of arrays that store `box`."""
    shape = moving_shape(projection, index)
    if index.is_empty:
        return partial(_without_cells, shape)
    first = projection.map.apply(index.start)
    starts = (at - start for at, start in zip(first, box.start, strict=True))
    # The Ellipsis keeps a view where there is no dimension to slice.
    corner = (*(slice(n, None) for n in starts), ...)
    moves = tuple(zip(*projection.map.matrix, strict=True)) or ((),) * index.rank
    return partial(_strided, corner, shape, moves)


def _strided(
    corner: tuple[Any, ...],
    shape: tuple[int, ...],
    moves: tuple[tuple[int, ...], ...],
    array: Array,
) -> Array:
    """A view from a corner on; along each dimension it moves so many cells along each axis."""
    strides = array.strides
    steps = [sum(map(mul, own, strides)) for own in moves]
    if not hasattr(ml_dtypes, array.dtype.name):
        return as_strided(array[corner], shape, steps)
    # NumPy cannot name every type of ml_dtypes, so their cells are strided as bytes.
    raw = array[corner].view(f"V{array.itemsize}")
    return as_strided(raw, shape, steps).view(array.dtype)


def _without_cells(shape: tuple[int, ...], array: Array) -> Array:
    return np.empty(shape, array.dtype)


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


def whole(array: Array, index: Range) -> Array:
    """`array` with every extent-1 axis that `cells` left repeated to the extent of `index`."""
    return np.broadcast_to(array, index.shape)
