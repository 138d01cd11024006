"""A reshape folded into the operation that reads it, by the common factorization of both shapes.

Reading `reshape : [6, 4] -> [24]` along an index dimension `d0` over [0, 24) splits it into
(e0, e1) over [0, 6) x [0, 4), which reads the source at (e0, e1); whatever else used `d0` uses
`4 * e0 + e1`.
Reading `reshape : [24] -> [6, 4]` at (d0, d1) needs no split: it reads the source at `4 * d0 + d1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from xdsl.pattern_rewriter import PatternRewriter

from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.passes.loom._bodies import reindex
from tapestry.passes.loom._rebuild import Read, reads_of, rebuild, writes_of
from tapestry.zspace import AffineMap, Projection, Range


@dataclass(frozen=True)
class Factor:
    """A piece of the common factorization: an extent, and its stride inside a dimension.

    It is the digits of the row-major position whose weight is `weight` and more, up to
    `weight * extent`.
    """

    extent: int
    weight: int


def common_factors(first: Sequence[int], second: Sequence[int]) -> tuple[Factor, ...] | None:
    """The coarsest factorization that refines both shapes, slowest factor first; None without one.

    >>> [f.extent for f in common_factors((2, 6), (4, 3))]
    [2, 2, 3]
    >>> common_factors((2, 3), (3, 2)) is None
    True
    """
    weights = sorted(
        {prod(shape[d:]) for shape in (first, second) for d in range(len(shape) + 1)}, reverse=True
    )
    factors: list[Factor] = []
    for high, low in pairwise(weights):
        if low == 0 or high % low:
            return None
        factors.append(Factor(high // low, low))
    return tuple(factors)


@dataclass(frozen=True)
class Refinement:
    """One index dimension split into several: `old = start + sum(stride * new)`."""

    dim: int
    extents: tuple[int, ...]

    def map(self, index: Range) -> AffineMap:
        """Old coordinates from new ones."""
        rank = index.rank + len(self.extents) - 1
        matrix: list[list[int]] = []
        for d in range(index.rank):
            row = [0] * rank
            if d == self.dim:
                for j in range(len(self.extents)):
                    row[d + j] = prod(self.extents[j + 1 :])
            else:
                row[d if d < self.dim else d + len(self.extents) - 1] = 1
            matrix.append(row)
        offset = [index.start[d] if d == self.dim else 0 for d in range(index.rank)]
        return AffineMap.of(matrix, offset, inputs=rank)

    def range(self, index: Range) -> Range:
        """The refined index space."""
        d = self.dim
        start = (*index.start[:d], *[0] * len(self.extents), *index.start[d + 1 :])
        end = (*index.end[:d], *self.extents, *index.end[d + 1 :])
        return Range(start, end)


def fold_reshape(op: loom.OperationOp, rewriter: PatternRewriter) -> None:
    """Fold the first reshape that `op` reads and that can be folded, splitting at most one dim."""
    ins, extras = reads_of(op)
    for reads, dims in ((ins, tuple(range(op.index.rank))), (extras, op.kept_dims)):
        for place, (value, projection) in enumerate(reads):
            reshape = value.owner
            if not isinstance(reshape, loom.ReshapeOp):
                continue
            space = Range(
                tuple(op.index.start[d] for d in dims), tuple(op.index.end[d] for d in dims)
            )
            found = _through(reshape, projection, space)
            if isinstance(found, Projection):
                reads[place] = (reshape.source, found)
                rebuild(op, rewriter, ins=ins, extras=extras)
                return
            if isinstance(found, Refinement) and op.partition is None:
                split = Refinement(dims[found.dim], found.extents)
                if split.dim == op.scan_dim:
                    # A scan runs along one dimension: its states would have no order along two.
                    continue
                refine(op, split, rewriter)
                return


def _through(
    reshape: loom.ReshapeOp, projection: Projection, space: Range
) -> Projection | Refinement | None:
    """The projection onto the reshape's source, or the split that is needed first, or neither."""
    source, result = tensor_type(reshape.source).box, tensor_type(reshape.result).box
    factors = common_factors(source.shape, result.shape)
    if factors is None or not projection.is_unit:
        return None
    matrix: list[list[int]] = []
    offset: list[int] = []
    for dim, start in enumerate(source.start):
        row = [0] * space.rank
        constant = start
        low = prod(source.shape[dim + 1 :])
        for part in _digits(factors, low, low * source.shape[dim]):
            read = _read_digit(part, result, projection, space)
            if not isinstance(read, tuple):
                return read
            coefficients, shift = read
            stride = part.weight // low
            row = [r + stride * c for r, c in zip(row, coefficients, strict=True)]
            constant += stride * shift
        matrix.append(row)
        offset.append(constant)
    return Projection.of(matrix, offset, inputs=space.rank)


def _digits(factors: Sequence[Factor], low: int, high: int) -> list[Factor]:
    """The factors between two weights."""
    return [f for f in factors if low <= f.weight and f.weight * f.extent <= high and f.extent > 1]


def _read_digit(
    factor: Factor, result: Range, projection: Projection, space: Range
) -> tuple[tuple[int, ...], int] | Refinement | None:
    """A digit of the position in the result, as an affine function of the index space."""
    for dim, start in enumerate(result.start):
        extent = result.shape[dim]
        low = prod(result.shape[dim + 1 :])
        if not (low <= factor.weight and factor.weight * factor.extent <= low * extent):
            continue
        row, shift = projection.map.matrix[dim], projection.map.offset[dim] - start
        if factor.extent == extent:
            return row, shift
        lower = factor.weight // low
        digit = mixed_radix_digit(row, shift, space, lower, factor.extent)
        if digit is not None:
            return digit
        moved = projection.map.unit_row(dim)
        if moved is None or space.start[moved] + shift != 0 or space.shape[moved] != extent:
            return None
        upper = extent // (lower * factor.extent)
        return Refinement(moved, tuple(n for n in (upper, factor.extent, lower) if n > 1))
    return None


def mixed_radix_digit(
    row: Sequence[int], shift: int, space: Range, weight: int, extent: int
) -> tuple[tuple[int, ...], int] | None:
    """`(row . point + shift) // weight % extent` as an affine function over a range, if it is one.

    It is one when the row writes the value digit by digit: the terms below `weight` sum to less
    than it, those from `weight` on to less than `weight * extent`, and the rest are multiples of
    that.

    >>> mixed_radix_digit((12, 4, 1), 0, Range((0, 0, 0), (2, 3, 4)), 4, 3)
    ((0, 1, 0), 0)
    """
    if shift + sum(c * low for c, low in zip(row, space.start, strict=True)) != 0:
        return None
    coefficients = [0] * len(row)
    below = inside = offset = 0
    for d, (c, low, n) in enumerate(zip(row, space.start, space.shape, strict=True)):
        if c < 0:
            return None
        if c % (weight * extent) == 0:
            continue
        if c % weight == 0:
            coefficients[d] = c // weight
            inside += c // weight * max(n - 1, 0)
            offset -= c // weight * low
        else:
            below += c * max(n - 1, 0)
    fits = below < weight and inside < extent
    return (tuple(coefficients), offset) if fits else None


def refine(op: loom.OperationOp, refinement: Refinement, rewriter: PatternRewriter) -> None:
    """Split one index dimension of an operation; everything that used it uses its digits."""
    ins, extras = reads_of(op)
    d, count = refinement.dim, len(refinement.extents)
    full = refinement.map(op.index)
    repeated: list[loom.Iterator] = [op.kinds[d]] * count
    kinds = (*op.kinds[:d], *repeated, *op.kinds[d + 1 :])
    reindex(op.wrap_block, full, range(full.inputs), rewriter)
    kept_part = full
    if op.monoid_name is not None:
        new_kept = tuple(new for new, kind in enumerate(kinds) if kind != "fold")
        kept_part = full.select_outputs(op.kept_dims).select_inputs(new_kept)
        if op.unwrap_block is not None:
            reindex(op.unwrap_block, full.select_inputs(new_kept), new_kept, rewriter)
    rebuild(
        op,
        rewriter,
        index=refinement.range(op.index),
        kinds=kinds,
        ins=[_composed(read, full) for read in ins],
        extras=[_composed(read, kept_part) for read in extras],
        outs=[(p.compose(kept_part), kind) for p, kind in writes_of(op)],
    )


def _composed(read: Read, inner: AffineMap) -> Read:
    value, projection = read
    return value, projection.compose(inner)
