"""Contractions as matrix products that are decided before there is an array.

product = matrix_product(contraction, index, kept_dims, np.matmul)
product(left, right)          # an axis per kept dimension
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import TypeAlias

from tapestry.algebra.contraction import Contraction
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.runtime.arrays.matrices import as_matrix, unfolded
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.library import Multiply
from tapestry.runtime.prepared.script import Script
from tapestry.runtime.prepared.views import View, product_of_views
from tapestry.zspace import Projection, Range
from tapestry.zspace.shape import strides

Product: TypeAlias = Callable[[Array, Array], Array]

_PRODUCTS = 64
"""Products for each cell that is copied from which a library saves as much as that takes."""


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


def lie_apart(op: loom.OperationOp, contraction: Contraction) -> bool:
    """Whether as much is copied to be matrices as what a library multiplies faster than loops do.

    Dimensions of one side are one where each goes on where the next one ends: as they lie row by
    row, and as no channels are between images and their pixels.
    """
    inner, rows, columns = contraction.inner, contraction.rows, contraction.columns
    sides = [(contraction.left, (rows, inner)), (contraction.right, (inner, columns))]
    copied = 0
    for value, groups in sides:
        if value not in op.wrap_block.args:
            return False
        number = op.wrap_block.args.index(value)
        lies = _steps(op.in_maps[number], tensor_type(op.ins[number]).box)
        if not all(_follow(group, lies, op.index) for group in groups):
            copied += prod(op.index.shape[dim] for dim in _moved(op.in_maps[number]))
    for projection, out in zip(op.out_maps, op.outs, strict=True):
        lies = _steps(projection, tensor_type(out).box)
        place = {dim: n for n, dim in enumerate(op.kept_dims)}
        kept = op.kept_range(op.index)
        own = [[place[dim] for dim in group] for group in (rows, columns)]
        if not all(_follow(group, lies, kept) for group in own):
            copied += kept.size
    return op.index.size < _PRODUCTS * copied


def _steps(projection: Projection, box: Range) -> list[int]:
    """By how many cells of a tensor that lies row by row each dimension moves."""
    along = strides(box.shape)
    return [
        sum(row[dim] * step for row, step in zip(projection.map.matrix, along, strict=True))
        for dim in range(projection.map.inputs)
    ]


def _moved(projection: Projection) -> list[int]:
    matrix = projection.map.matrix
    return [dim for dim in range(projection.map.inputs) if any(row[dim] for row in matrix)]


def _follow(dims: Sequence[int], steps: Sequence[int], index: Range) -> bool:
    """Whether each dimension goes on where the next one ends."""
    moving = [dim for dim in dims if index.shape[dim] > 1]
    return all(steps[far] == steps[near] * index.shape[near] for far, near in pairwise(moving))


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
