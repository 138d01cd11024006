"""Contractions on arrays: a fold that is a matrix product, given to BLAS.

    out[i, j] = FOLD(add) over k of left(i, k) * right(k, j)          np.matmul(left, right)

A domain of which every row misses the rows, the columns or the inner dimensions is a mask on one
factor or on the result. A factor times a masked zero is not zero where the factor is not finite;
`contract` then declines, and the fold is done point by point.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tapestry.algebra.computing import widened
from tapestry.algebra.contraction import Contraction
from tapestry.dialects import loom
from tapestry.runtime.arrays.access import coordinates
from tapestry.runtime.arrays.domains import inside_mask
from tapestry.runtime.arrays.mapfold import Tensor, boxes_within, input_cells
from tapestry.runtime.arrays.matrices import merged_sides
from tapestry.runtime.arrays.scalar import evaluate
from tapestry.runtime.executor import Array
from tapestry.zspace import Domain, Range


def contract(
    op: loom.BlockSignature,
    contraction: Contraction,
    box: Range,
    ins: Sequence[Tensor],
    limit: int,
) -> Array | None:
    """The folded state over a box as a batched matrix product; None where it must be folded.

    At most `limit` cells of a factor are held at once.
    """
    masks = _masks(op.inside, contraction, box)
    if masks is None:
        return None
    on_left, on_right, on_result = masks
    kept_box, fold_box = op.kept_range(box), op.fold_range(box)
    order = [*contraction.batch, *contraction.rows, *contraction.columns]
    kept = max(_cells(box, contraction.rows), _cells(box, contraction.columns))
    total: Array | None = None
    for part in boxes_within(fold_box, max(1, limit // kept)):
        within = op.whole_range(kept_box, part)
        read = input_cells(op, within, ins)
        factors = (contraction.left, contraction.right)
        left, right = evaluate(op.wrap_block, read, coordinates(within), factors)
        if not (_finite_beside(on_left, within, right) and _finite_beside(on_right, within, left)):
            return None
        left, right = _zero(on_left, within, left), _zero(on_right, within, right)
        product = _product(contraction, within, widened(left), widened(right))
        total = product if total is None else np.add(total, product)
    assert total is not None
    # A map dimension that neither factor moves along repeats the result.
    missing = [d for d in op.kept_dims if d not in order]
    axes = [*order, *missing]
    apart = total.reshape([box.shape[d] for d in order] + [1] * len(missing))
    arranged = apart.transpose([axes.index(d) for d in op.kept_dims])
    mask = inside_mask(on_result, box)
    if mask is not None:
        # Its rows miss the fold dimensions, whose axes have extent 1.
        arranged = np.where(mask.squeeze(op.fold_dims), arranged, arranged.dtype.type(0))
    return np.broadcast_to(arranged, kept_box.shape)


def _masks(
    domain: Domain | None, contraction: Contraction, box: Range
) -> tuple[Domain | None, Domain | None, Domain | None] | None:
    """The rows that mask the left factor, the right one, the result; None if one masks neither."""
    rest = None if domain is None else domain.within(box)
    if rest is None:
        return None, None, None
    inner = frozenset(contraction.inner)
    left = inner.union(contraction.batch, contraction.rows)
    right = inner.union(contraction.batch, contraction.columns)
    numbers: tuple[list[int], list[int], list[int]] = ([], [], [])
    for number, dims in enumerate(rest.moving()):
        if dims.isdisjoint(inner):
            numbers[2].append(number)
        elif dims <= left:
            numbers[0].append(number)
        elif dims <= right:
            numbers[1].append(number)
        else:
            return None
    return rest.only(numbers[0]), rest.only(numbers[1]), rest.only(numbers[2])


def _finite_beside(domain: Domain | None, box: Range, factor: Array) -> bool:
    """Whether a factor times a zero, where the other one is masked, is a zero."""
    masked = domain is not None and not domain.covers(box)
    return not masked or factor.dtype.kind in "iub" or bool(np.isfinite(factor).all())


def _zero(domain: Domain | None, box: Range, factor: Array) -> Array:
    """A factor, zero at points outside."""
    mask = inside_mask(domain, box)
    return factor if mask is None else np.where(mask, factor, factor.dtype.type(0))


def _cells(box: Range, dims: Sequence[int]) -> int:
    """Cells of a box along some of its dimensions."""
    return prod(box.shape[d] for d in dims)


def _product(contraction: Contraction, box: Range, left: Array, right: Array) -> Array:
    """The matrix product over a box; axes of the result are batch, rows, columns."""
    batch, inner = contraction.batch, contraction.inner
    a = _matrix(left, box, batch, contraction.rows, inner)
    b = _matrix(right, box, batch, inner, contraction.columns)
    with np.errstate(all="ignore"):
        return np.matmul(a, b)


def _matrix(
    factor: Array, box: Range, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> Array:
    """A factor as an array of shape (batch, rows, columns), each several dimensions merged."""
    order = [*batch, *rows, *columns]
    dropped = [d for d in range(box.rank) if d not in order]
    arranged = factor.transpose(*order, *dropped)
    return merged_sides(arranged, [len(batch), len(rows), len(columns)])
