"""Contractions as matrix products that are decided before there is an array.

product = matrix_product(contraction, index, kept_dims, np.matmul)
product(left, right)          # an axis per kept dimension
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from tapestry.algebra.contraction import Contraction
from tapestry.runtime.arrays.matrices import as_matrix, unfolded
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.library import Multiply
from tapestry.runtime.prepared.script import Script
from tapestry.runtime.prepared.views import View, product_of_views
from tapestry.zspace import Range

Product: TypeAlias = Callable[[Array, Array], Array]


def matrix_product(
    contraction: Contraction, index: Range, kept: Sequence[int], by: Multiply
) -> Product:
    """The sum of products of two factors, which have an axis per dimension of `index`.

    Along a kept dimension that neither factor moves along, the result has extent 1.
    """
    return partial(product_of_views, *_arranged(contraction, index, kept), by)


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
    apart = (*(index.shape[dim] for dim in order), *(1 for _ in missing))
    axes = [*order, *missing]
    back = tuple(axes.index(dim) for dim in kept)
    moved = back != tuple(sorted(back))
    sides = (contraction.rows, contraction.columns)
    merged = bool(missing) or len(contraction.batch) > 1 or any(len(side) != 1 for side in sides)
    return left, right, partial(unfolded, apart if merged else None, back if moved else None)


def matrix_side(
    index: Range, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> View:
    """A factor as a matrix, or a stack of them; each side is several dimensions merged.

    It is in the dtype that it is multiplied in.
    """
    order = [*batch, *rows, *columns]
    dropped = [dim for dim in range(index.rank) if dim not in order]
    extents = (*(index.shape[dim] for dim in order), *(1 for _ in dropped))
    sides = tuple(len(side) for side in ((batch, rows, columns) if batch else (rows, columns)))
    plain = extents[: len(order)] if all(side == 1 for side in sides) else None
    return partial(as_matrix, (*order, *dropped), extents, sides, plain)
