"""Contractions as matrix products that are decided before there is an array.

product = matrix_product(contraction, index, kept_dims, np.matmul)
product(left, right)          # an axis per kept dimension
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from tapestry.algebra.contraction import Contraction
from tapestry.algebra.reductions import Reduction
from tapestry.algebra.scalars import widened
from tapestry.runtime.contracting import merged_sides
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.library import Multiply
from tapestry.runtime.prepared.script import Script
from tapestry.runtime.prepared.views import View
from tapestry.zspace import Range

_MANY = 1 << 12
"""Cells from which a product is faster than NumPy's sum."""

_FLOATS = (np.dtype("f4"), np.dtype("f8"))

Product: TypeAlias = Callable[[Array, Array], Array]


def matrix_product(
    contraction: Contraction, index: Range, kept: Sequence[int], by: Multiply
) -> Product:
    """The sum of products of two factors, which have an axis per dimension of `index`.

    Along a kept dimension that neither factor moves along, the result has extent 1.
    """
    left, right, turned = _arranged(contraction, index, kept)
    return lambda a, b: turned(by(left(a), right(b)))


def record_product(
    script: Script,
    contraction: Contraction,
    index: Range,
    kept: Sequence[int],
    by: Multiply,
    a: int,
    b: int,
) -> int:
    """The slot of such a sum, of factors in two slots."""
    left, right, turned = _arranged(contraction, index, kept)
    sides = script.view(left, a), script.view(right, b)
    return script.view(turned, script.call(by, sides, new=True))


def _arranged(
    contraction: Contraction, index: Range, kept: Sequence[int]
) -> tuple[View, View, View]:
    """What makes matrices of the factors, and of the product what is asked for."""
    order = [*contraction.batch, *contraction.rows, *contraction.columns]
    left = matrix_side(index, contraction.batch, contraction.rows, contraction.inner)
    right = matrix_side(index, contraction.batch, contraction.inner, contraction.columns)
    missing = [dim for dim in kept if dim not in order]
    apart = [index.shape[dim] for dim in order] + [1] * len(missing)
    axes = [*order, *missing]
    back = [axes.index(dim) for dim in kept]
    moved = back != sorted(back)
    sides = (contraction.rows, contraction.columns)
    merged = bool(missing) or len(contraction.batch) > 1 or any(len(side) != 1 for side in sides)

    def turned(product: Array) -> Array:
        if merged:
            product = product.reshape(apart)
        return product.transpose(back) if moved else product

    return lambda a: left(widened(a)), lambda b: right(widened(b)), turned


def column_sums(
    reduction: Reduction, values: Array, folded: Sequence[int], by: Multiply
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


def matrix_side(
    index: Range, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> View:
    """A factor as a matrix, or a stack of them; each side is several dimensions merged."""
    order = [*batch, *rows, *columns]
    dropped = [dim for dim in range(index.rank) if dim not in order]
    arranged = [*order, *dropped]
    extents = tuple([index.shape[dim] for dim in order] + [1] * len(dropped))
    sides = [len(side) for side in ((batch, rows, columns) if batch else (rows, columns))]
    plain = extents[: len(order)] if all(side == 1 for side in sides) else None

    def arrange(factor: Array) -> Array:
        turned = factor.transpose(arranged)
        if turned.shape != extents:
            turned = np.broadcast_to(turned, extents)
        if plain is not None:
            return turned.reshape(plain)  # without axes of extent 1: a view
        return merged_sides(turned, sides)

    return arrange
