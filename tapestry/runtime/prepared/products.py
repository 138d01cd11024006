"""Contractions as matrix products that are decided before there is an array.

product = matrix_product(contraction, index, kept_dims, np.matmul)
product(left, right)          # an axis per kept dimension

What multiplies matrices is the host's to say: a process that has threads of its own for it, as one
that runs PyTorch, should not have those of another library beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

import numpy as np

from tapestry.algebra.contraction import Contraction
from tapestry.algebra.scalars import widened
from tapestry.runtime.contracting import merged_sides
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.views import View
from tapestry.zspace import Range

Product: TypeAlias = Callable[[Array, Array], Array]

Multiply: TypeAlias = Callable[[Array, Array], Array]
"""A matrix product, or one of each pair of two stacks of matrices."""


def matrix_product(
    contraction: Contraction, index: Range, kept: Sequence[int], by: Multiply
) -> Product:
    """The sum of products of two factors, which have an axis per dimension of `index`.

    Along a kept dimension that neither factor moves along, the result has extent 1.
    """
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

    def multiply(a: Array, b: Array) -> Array:
        product = by(left(widened(a)), right(widened(b)))
        if merged:
            product = product.reshape(apart)
        return product.transpose(back) if moved else product

    return multiply


def largest_factor(contraction: Contraction, index: Range) -> int:
    """Cells of the larger factor, or of the result."""
    batch, rows, columns, inner = (
        prod(index.shape[dim] for dim in dims)
        for dims in (contraction.batch, contraction.rows, contraction.columns, contraction.inner)
    )
    return batch * max(rows * inner, inner * columns, rows * columns)


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
