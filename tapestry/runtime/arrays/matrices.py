"""Arrays as matrices, and the sums that products of these are.

    matrix = as_matrix((0, 2, 1), (64, 8, 3), (1, 2), None, factor)     # of shape (64, 24)

What is known before there is an array comes first, so that `partial` makes functions of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from tapestry.algebra.computing import widened
from tapestry.algebra.reducing import Reduction
from tapestry.runtime.executor import Array

_MANY = 1 << 12
"""Cells from which a product is faster than NumPy's sum."""

_FLOATS = (np.dtype("f4"), np.dtype("f8"))


def as_matrix(
    axes: tuple[int, ...],
    extents: tuple[int, ...],
    sides: tuple[int, ...],
    plain: tuple[int, ...] | None,
    factor: Array,
) -> Array:
    """A factor all over some extents, as a matrix or a stack of them.

    Its `axes` are in order those of the `sides`, so many of each, and others of extent 1. Where
    there is one for each side, the shape is `plain`.
    """
    ordered = ordered_matrix(axes, extents, sides, plain, factor)
    return ordered.of(ordered.cells)


def ordered_matrix(
    axes: tuple[int, ...],
    extents: tuple[int, ...],
    sides: tuple[int, ...],
    plain: tuple[int, ...] | None,
    factor: Array,
) -> Ordered:
    """The same as cells in order, before they are copied."""
    turned = widened(factor).transpose(axes)
    if turned.shape != extents:
        turned = np.broadcast_to(turned, extents)
    if plain is not None:
        return Ordered(turned, plain)  # without axes of extent 1: a view
    return ordered_sides(turned, sides)


def unfolded(
    extents: tuple[int, ...] | None, order: tuple[int, ...] | None, product: Array
) -> Array:
    """A product with an axis per dimension, if they were merged, in another order."""
    if extents is not None:
        product = product.reshape(extents)
    return product if order is None else product.transpose(order)


def guarded_product(on: int, a: Array, b: Array, mask: Array, out: Array | None = None) -> Array:
    """The product of a factor that is zero where a mask is not, and another one.

    It is in `out`, if that is given, unless the other factor has numbers that are not finite.
    """
    other = (a, b)[1 - on]
    if other.dtype.kind in "iub" or bool(np.isfinite(other).all()):
        return np.matmul(a, b, out=out)
    if on == 1:
        return _by_rows(b.mT, a.mT, mask.mT).mT
    return _by_rows(a, b, mask)


def _by_rows(a: Array, b: Array, mask: Array) -> Array:
    """Each row of `a` times `b`, of the points that count for it."""
    made = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    for row in np.ndindex(a.shape[:-1]):
        counts = mask[row]
        made[row] = a[row][counts] @ b[row[:-1]][counts]
    return made


def column_sums(
    reduction: Reduction, values: Array, folded: Sequence[int], by: Callable[[Array, Array], Array]
) -> Array | None:
    """The sums of a matrix's columns as a product with ones, which NumPy adds up row by row.

    None where it is another fold, or where what is folded lies together in memory: NumPy adds
    that up pair by pair, with smaller errors.
    """
    if reduction.ufunc is not np.add or values.dtype not in _FLOATS or values.size < _MANY:
        return None
    axes = [axis for axis, extent in enumerate(values.shape) if extent > 1]
    if len(axes) != 2 or sum(axis in folded for axis in axes) != 1:
        return None
    (along,) = (axis for axis in axes if axis in folded)
    (across,) = (axis for axis in axes if axis not in folded)
    if values.strides[across] != values.itemsize:
        return None
    rows, columns = values.shape[along], values.shape[across]
    matrix = values.transpose(along, across, *(a for a in range(values.ndim) if a not in axes))
    ones = _ones(rows, values.dtype)
    kept = [extent for axis, extent in enumerate(values.shape) if axis not in folded]
    return by(ones, matrix.reshape(rows, columns)).reshape(kept)


@lru_cache(64)
def _ones(count: int, dtype: np.dtype[Any]) -> Array:
    return np.ones((1, count), dtype)


@dataclass(frozen=True)
class Ordered:
    """Cells in order, as a view of some array, and the shape that they have one after another.

    The last two axes of that are `turned` then.
    """

    cells: Array
    shape: Sequence[int]
    turned: bool = False

    def of(self, cells: Array) -> Array:
        """The array, of these cells or of a copy of them."""
        made = cells.reshape(self.shape)
        return made.swapaxes(-1, -2) if self.turned else made


def merged_sides(factor: Array, counts: Sequence[int]) -> Array:
    """A factor with so many leading axes merged into one, then so many, and so on.

    The last two are sides of a matrix, which are merged in the order that copies longer runs: of
    overlapping windows a row of cells at a time, where the other way goes kernel by kernel.
    """
    ordered = ordered_sides(factor, counts)
    return ordered.of(ordered.cells)


def ordered_sides(factor: Array, counts: Sequence[int]) -> Ordered:
    """The same as cells in order, before they are copied."""
    lead = counts[:-2]
    first, middle, last = sum(lead), sum(counts[:-1]), sum(counts)
    sides = [range(first, middle), range(middle, last)]
    turned = _run(factor, sides[0]) > _run(factor, sides[1])
    if turned:
        sides.reverse()
    axes = [*range(first), *sides[0], *sides[1], *range(last, factor.ndim)]
    bounds = [sum(lead[:n]) for n in range(len(lead) + 1)]
    sizes = [prod(factor.shape[low:high]) for low, high in pairwise(bounds)]
    sizes += [prod(factor.shape[axis] for axis in side) for side in sides]
    return Ordered(factor.transpose(axes), sizes, turned)


def _run(factor: Array, axes: Sequence[int]) -> int:
    """How many cells that follow one another in memory the last of some axes goes along."""
    for axis in reversed(axes):
        if factor.shape[axis] > 1:
            return factor.shape[axis] if factor.strides[axis] == factor.itemsize else 1
    return 1
