"""The cells that a read selects when some are outside the tensor, or where they are is computed.

>>> window = Projection.of([[1, 1]], offset=[-1])     # a window of 3 around each of 4 cells
>>> clipped_cells(np.arange(1, 5), Range.of((4,)), window, Range.of((4, 3)), np.asarray(0))
array([[0, 1, 2],
       [1, 2, 3],
       [2, 3, 4],
       [3, 4, 0]])
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tapestry.runtime.arrays.access import cells, coordinates, moving_shape
from tapestry.runtime.arrays.taking import taken
from tapestry.runtime.executor import Array
from tapestry.zspace import AffineMap, Projection, Range


def clipped_cells(
    array: Array, box: Range, projection: Projection, index: Range, fill: Array
) -> Array:
    """`cells`, with `fill` at the points of `index` that read outside `box`.

    `fill` has the dtype of `array` and no axes. What is copied is never larger than the result,
    whatever the strides.
    """
    if index.is_empty:
        return np.empty(moving_shape(projection, index), array.dtype)
    selected = projection.apply_range(index)
    if box.contains_range(selected):
        return cells(array, box, projection, index)
    if selected.size > prod(moving_shape(projection, index)):
        return gather(array, box, positions(projection.map, index), fill)
    padded = np.full(selected.shape, fill, array.dtype)
    inside = box.intersection(selected)
    if inside is not None:
        padded[inside.slices(selected)] = array[inside.slices(box)]
    return cells(padded, selected, projection, index)


def positions(mapping: AffineMap, index: Range) -> list[Array]:
    """Per tensor dimension, the coordinate that each point of `index` maps to, as it varies."""
    along = coordinates(index)
    found: list[Array] = []
    for row, offset in zip(mapping.terms, mapping.offset, strict=True):
        total = np.full((1,) * index.rank, offset, np.int64)
        for factor, dim in row:
            total = total + factor * along(dim)
        found.append(total)
    return found


def gather(array: Array, box: Range, at: Sequence[Array], fill: Array) -> Array:
    """The cells of `array` (which stores `box`) at given coordinates, `fill` where there is none.

    `at` has an array per dimension, at least one; they broadcast against each other. The result may
    be a view of `array`.
    """
    if box.is_empty:
        shape = np.broadcast_shapes(*(coordinate.shape for coordinate in at))
        return np.full(shape, fill, array.dtype)
    inside: Array = np.asarray(True)
    nearest: list[Array] = []
    for coordinate, low, high in zip(at, box.start, box.end, strict=True):
        inside = inside & (low <= coordinate) & (coordinate < high)
        nearest.append(np.clip(coordinate, low, high - 1) - low)
    rank = max(one.ndim for one in nearest)
    found = taken(array, [one.reshape((1,) * (rank - one.ndim) + one.shape) for one in nearest])
    return np.asarray(found) if inside.all() else np.where(inside, found, fill)
