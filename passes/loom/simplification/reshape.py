"""Reshapes folded into what reads or writes them, by the common factorization of both shapes.

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
from tapestry.dialects.loom import Read, tensor_type
from tapestry.passes.loom.rebuilding.digits import Split, may_split, refine, split_partition
from tapestry.passes.loom.rebuilding.operations import reads_of, rebuild, writes_of
from tapestry.zspace import Projection, Range


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
class Fold:
    """How to access a reshaped tensor's other side: split the index space, then project so."""

    splits: tuple[Split, ...]
    projection: Projection


def fold_into_reader(op: loom.OperationOp, rewriter: PatternRewriter) -> None:
    """Fold the first reshape that `op` reads and that can be folded."""
    if not any(isinstance(value.owner, loom.ReshapeOp) for value in op.operands):
        return
    ins, extras = reads_of(op)
    every = tuple(range(op.index.rank))
    for reads, dims in ((ins, every), (extras, op.kept_dims)):
        for place, read in enumerate(reads):
            reshape, projection = read.value.owner, read.projection
            if not isinstance(reshape, loom.ReshapeOp) or not read.is_plain:
                continue
            have, want = tensor_type(reshape.result).box, tensor_type(reshape.source).box
            fold = through_reshape(op, have, want, projection, dims)
            if fold is None:
                continue
            new = refine(op, fold.splits, rewriter) if fold.splits else op
            new_ins, new_extras = reads_of(new)
            if reads is ins:
                new_ins[place] = Read(reshape.source, fold.projection)
            else:
                seen = fold.projection.select_inputs(new.kept_dims)
                new_extras[place] = Read(reshape.source, seen)
            rebuild(new, rewriter, ins=new_ins, extras=new_extras)
            return


def through_reshape(
    op: loom.OperationOp, have: Range, want: Range, projection: Projection, dims: Sequence[int]
) -> Fold | None:
    """How `op` reads `want`, of the same cells in row-major order, where it reads `have` so.

    `projection` is from the index dimensions `dims`.
    """
    return _plan(op, have, want, _over_all(projection, dims, op.index.rank))


def fold_into_writer(op: loom.ReshapeOp, rewriter: PatternRewriter) -> None:
    """Let the operation that alone computes what `op` reshapes write the reshaped tensor."""
    writer = op.source.owner
    if not isinstance(writer, loom.OperationOp) or not op.source.has_one_use():
        return
    have, want = tensor_type(op.source).box, tensor_type(op.result).box
    place = [out is op.source for out in writer.outs].index(True)
    projection = _over_all(writer.out_maps[place], writer.kept_dims, writer.index.rank)
    fold = _plan(writer, have, want, projection)
    if fold is None or (writer.partition is not None and fold.splits):
        return
    if writer.partition is not None:
        outs = list(writer.out_maps)
        outs[place] = fold.projection.select_inputs(writer.kept_dims)
        if writer.sharding_problems(writer.partition, outs):
            return
    new = refine(writer, fold.splits, rewriter) if fold.splits else writer
    writes = writes_of(new)
    writes[place] = (fold.projection.select_inputs(new.kept_dims), tensor_type(op.result))
    written = rebuild(new, rewriter, outs=writes).outs[place]
    written.name_hint = op.result.name_hint
    rewriter.replace(op, [], [written])


def fold_into_view(op: loom.ViewOp, rewriter: PatternRewriter) -> None:
    """View a reshape's source, where that is affine."""
    reshape = op.source.owner
    if not isinstance(reshape, loom.ReshapeOp):
        return
    have, want = tensor_type(reshape.result).box, tensor_type(reshape.source).box
    found = _through(have, want, op.projection.data, tensor_type(op.result).box)
    if isinstance(found, Projection):
        view = loom.ViewOp(reshape.source, found, tensor_type(op.result))
        view.location = op.location
        rewriter.replace(op, view)


def _over_all(projection: Projection, dims: Sequence[int], rank: int) -> Projection:
    """A projection from some dimensions of an index space as one from all of them."""
    return projection.insert_inputs([d for d in range(rank) if d not in dims])


def _plan(op: loom.OperationOp, have: Range, want: Range, projection: Projection) -> Fold | None:
    """How `op`, which accesses `have` through a projection, accesses `want` instead, if it can."""
    splits: list[Split] = []
    space = op.index
    dims = list(range(space.rank))
    while True:
        found = _through(have, want, projection, space)
        if isinstance(found, Projection):
            fits = op.partition is None or split_partition(op, splits) is not None
            return Fold(tuple(splits), found) if fits else None
        if found is None or not may_split(op, dims[found.dim]):
            return None
        splits.append(found)
        projection = projection.compose(found.map(space))
        space = found.range(space)
        dims.insert(found.dim, dims[found.dim])


def _through(
    have: Range, want: Range, projection: Projection, space: Range
) -> Projection | Split | None:
    """The projection onto the other side of a reshape, or the split that is needed first, if any.

    `projection` accesses `have`; cells of `want` are the same ones in row-major order.
    """
    if not projection.is_unit:
        return None
    if space.is_empty:
        return Projection.of([[0] * space.rank] * want.rank, want.start, inputs=space.rank)
    factors = common_factors(want.shape, have.shape)
    if factors is None:
        return None
    matrix: list[list[int]] = []
    offset: list[int] = []
    for dim, start in enumerate(want.start):
        row = [0] * space.rank
        constant = start
        low = prod(want.shape[dim + 1 :])
        for factor in _digits(factors, low, low * want.shape[dim]):
            digit = _digit(factor, have, projection, space)
            if not isinstance(digit, tuple):
                return digit
            coefficients, shift = digit
            stride = factor.weight // low
            row = [r + stride * c for r, c in zip(row, coefficients, strict=True)]
            constant += stride * shift
        matrix.append(row)
        offset.append(constant)
    return Projection.of(matrix, offset, inputs=space.rank)


def _digits(factors: Sequence[Factor], low: int, high: int) -> list[Factor]:
    """The factors between two weights."""
    return [f for f in factors if low <= f.weight and f.weight * f.extent <= high and f.extent > 1]


def _digit(
    factor: Factor, have: Range, projection: Projection, space: Range
) -> tuple[tuple[int, ...], int] | Split | None:
    """A digit of the position in `have`, as an affine function of the index space."""
    for dim, start in enumerate(have.start):
        extent = have.shape[dim]
        low = prod(have.shape[dim + 1 :])
        if not (low <= factor.weight and factor.weight * factor.extent <= low * extent):
            continue
        row, shift = projection.map.matrix[dim], projection.map.offset[dim] - start
        if factor.extent == extent:
            return row, shift
        weight = factor.weight // low
        digit = mixed_radix_digit(row, shift, space, weight, factor.extent)
        return digit or _split_at(row, space, (weight, weight * factor.extent))
    return None


def _split_at(row: Sequence[int], space: Range, bounds: Sequence[int]) -> Split | None:
    """A split of an index dimension that steps across a multiple of some bound, if one helps."""
    for bound in bounds:
        for dim, (c, extent) in enumerate(zip(row, space.shape, strict=True)):
            inner = 0 if c == 0 or bound % c else bound // abs(c)
            if 1 < inner < extent and extent % inner == 0:
                return Split(dim, inner)
    return None


def mixed_radix_digit(
    row: Sequence[int], shift: int, space: Range, weight: int, extent: int
) -> tuple[tuple[int, ...], int] | None:
    """`(row . point + shift) // weight % extent` as an affine function over a range, if it is one.

    It is one when the row writes the value digit by digit: split every coefficient, and the value
    at the range's start, into a part below `weight`, a part from there to `weight * extent`, and
    the rest; then the first parts must sum to less than `weight`, the second ones to less than
    `extent`, and neither to less than 0.

    >>> mixed_radix_digit((12, 4, 1), 0, Range((0, 0, 0), (2, 3, 4)), 4, 3)
    ((0, 1, 0), 0)
    >>> mixed_radix_digit((-4, 1), 8, Range((0, 0), (3, 4)), 4, 3)
    ((-1, 0), 2)
    """
    first = shift + sum(c * low for c, low in zip(row, space.start, strict=True))
    inside, below = divmod(first % (weight * extent), weight)
    digit_range, below_range = [inside, inside], [below, below]
    coefficients: list[int] = []
    for c, n in zip(row, space.shape, strict=True):
        sign = 1 if c > 0 else -1
        of_digit, of_below = (sign * part for part in divmod(abs(c) % (weight * extent), weight))
        coefficients.append(of_digit)
        for reach, coefficient in ((digit_range, of_digit), (below_range, of_below)):
            reach[int(coefficient > 0)] += coefficient * (n - 1)
    if below_range[0] < 0 or below_range[1] >= weight:
        return None
    if digit_range[0] < 0 or digit_range[1] >= extent:
        return None
    moved = sum(c * low for c, low in zip(coefficients, space.start, strict=True))
    return tuple(coefficients), inside - moved
