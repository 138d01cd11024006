"""Cells at computed places: read, and written.

Several tensors of indices become one: the indexed dimensions are brought to the front and merged,
and the places in them counted in row-major order. An index that counts, as that of the batch in
`x[arange(n)[:, None], ids]`, is a coordinate of the result: the others are looked up beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import lifted, shaped
from tapestry.importers.torch.operators._inside import counts, inside
from tapestry.importers.torch.registry import Context, Number, Operand, Unsupported, lowering

Indices = Sequence[SSAValue | None]


@lowering("aten.embedding.default")
def embedding(
    ctx: Context,
    table: SSAValue,
    ids: SSAValue,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> SSAValue:
    return ctx.apply("index", table, ids)  # which refuses numbers of rows that are not there


@lowering("aten.embedding_dense_backward.default")
def embedding_backward(
    ctx: Context,
    gradient: SSAValue,
    ids: SSAValue,
    num_weights: int,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
) -> SSAValue:
    if scale_grad_by_freq:
        gradient = _by_frequency(ctx, gradient, ids, num_weights)
    return ctx.apply(
        "embedding_dense_backward", gradient, ids, rows=num_weights, padding=padding_idx
    )


def _by_frequency(ctx: Context, gradient: SSAValue, ids: SSAValue, rows: int) -> SSAValue:
    """Gradients divided by how often their row is looked up."""
    flat = shaped(ctx, ids, [prod(ctx.shape(ids))])
    none = ctx.constant(0, ctx.dtype(gradient), [rows])
    ones = ctx.constant(1, ctx.dtype(gradient), ctx.shape(flat))
    counts = ctx.apply("index_add", none, flat, ones, axis=0)
    each = ctx.apply("take", counts, ids, axis=0)
    return ctx.apply("div", gradient, shaped(ctx, each, [*ctx.shape(ids), 1]))


@lowering("aten.index_select.default")
def index_select(ctx: Context, x: SSAValue, dim: int, index: SSAValue) -> SSAValue:
    made = ctx.apply("index_select", lifted(ctx, x), lifted(ctx, index), axis=dim)
    return shaped(ctx, made, ctx.result.shape)


@lowering("aten.gather.default")
def gather(
    ctx: Context, x: SSAValue, dim: int, index: SSAValue, sparse_grad: bool = False
) -> SSAValue:
    made = ctx.apply("gather", lifted(ctx, x), lifted(ctx, index), axis=dim)
    return shaped(ctx, made, ctx.result.shape)


@lowering("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index_(ctx: Context, x: SSAValue, indices: Indices) -> SSAValue:
    beside = _taken_beside(ctx, x, indices)
    if beside is not None:
        return beside
    pairs = _taken_in_pairs(ctx, x, indices)
    if pairs is not None:
        return pairs
    places = _Places.of(ctx, x, indices)
    if len(places.axes) == 1:
        return ctx.apply("take", x, places.index, axis=places.axes[0])
    rows = ctx.apply("take", places.merged(ctx, x), places.index, axis=0)
    return places.arranged(ctx, rows)


def _taken_in_pairs(ctx: Context, x: SSAValue, indices: Indices) -> SSAValue | None:
    """Cells where two indices, of neighbouring axes, have dimensions of their own; else None.

    As rows and columns of images have that are resized: whole rows are read, and not cell by cell.
    """
    given = {axis: index for axis, index in enumerate(indices) if index is not None}
    if len(given) != 2 or any(ctx.dtype(index) == "i1" for index in given.values()):
        return None
    (axis, first), (after, second) = given.items()
    long = [
        [dim - ctx.rank(index) for dim, extent in enumerate(ctx.shape(index)) if extent > 1]
        for index in (first, second)
    ]
    apart = all(long) and max(long[0]) < min(long[1])
    if after != axis + 1 or not apart or 0 in ctx.shape(first) or 0 in ctx.shape(second):
        return None
    flat = (shaped(ctx, index, [prod(ctx.shape(index))]) for index in (first, second))
    made = ctx.apply("take_pairs", x, *flat, axis=axis)
    return shaped(ctx, made, ctx.result.shape)


def _taken_beside(ctx: Context, x: SSAValue, indices: Indices) -> SSAValue | None:
    """Cells where some indices are coordinates of the result, and others are not; else None."""
    given = {axis: index for axis, index in enumerate(indices) if index is not None}
    if any(ctx.dtype(index) == "i1" for index in given.values()):
        return None
    shape = np.broadcast_shapes(*(ctx.shape(index) for index in given.values()))
    sizes = ctx.shape(x)
    along: dict[int, int] = {}
    for axis, index in given.items():
        dim = _counted_along(ctx, index, sizes[axis])
        if dim is not None and len(shape) + dim not in along.values():
            along[axis] = len(shape) + dim
    sought = [axis for axis in given if axis not in along]
    if not along or not sought or not prod(shape):
        return None
    index = _merged_index(ctx, [(given[axis], sizes[axis]) for axis in sought])
    index = shaped(ctx, index, [1] * (len(shape) - ctx.rank(index)) + list(ctx.shape(index)))
    rest = [axis for axis in range(len(sizes)) if axis not in given]
    free = [dim for dim in range(len(shape)) if dim not in along.values()]
    own = [shape[d] if d in free else n for d, n in enumerate(ctx.shape(index))]
    if list(ctx.shape(index)) != own:
        index = ctx.apply("broadcast_to", index, shape=own)
    first = tuple(along.values())
    beside = [own[d] for d in first]
    count = prod(shape[d] for d in free)
    index = shaped(ctx, _permuted(ctx, index, (*first, *free)), [*beside, count, *[1] * len(rest)])
    before, after = [sizes[axis] for axis in along], [sizes[axis] for axis in rest]
    turned = _permuted(ctx, x, (*along, *sought, *rest))
    rows = shaped(ctx, turned, [*before, prod(sizes[axis] for axis in sought), *after])
    made = ctx.apply("take_along_axis", rows, index, axis=len(first))
    made = shaped(ctx, made, [*before, *(shape[d] for d in free), *after])
    order = [(*first, *free).index(dim) for dim in range(len(shape))]
    axes = list(given)
    at = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0
    others = list(range(len(shape), len(shape) + len(rest)))
    return _permuted(ctx, made, (*others[:at], *order, *others[at:]))


def _counted_along(ctx: Context, index: SSAValue, size: int) -> int | None:
    """The only dimension that an index has, from the end, if along it the index counts to a size.

    Counted that way, it is the same in what indices broadcast to.
    """
    long = [dim for dim, extent in enumerate(ctx.shape(index)) if extent > 1]
    if len(long) != 1 or ctx.shape(index)[long[0]] != size or not counts(index, size):
        return None
    return long[0] - ctx.rank(index)


@lowering("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(
    ctx: Context, x: SSAValue, indices: Indices, values: SSAValue, accumulate: bool = False
) -> SSAValue:
    if accumulate and ctx.dtype(x) == "i1":
        # The sum of truth values is whether one of them holds: it is not zero.
        return index_put(ctx, ctx.cast(x, "i64"), indices, ctx.cast(values, "i64"), accumulate)
    source = ctx.cast(values, ctx.dtype(x))
    masks = [index for index in indices if index is not None and ctx.dtype(index) == "i1"]
    if masks:
        return _put_where(ctx, x, indices, source, accumulate=accumulate)
    places = _Places.of(ctx, x, indices)
    merged = places.merged(ctx, x)
    spread = ctx.apply("broadcast_to", source, shape=list(places.selected(ctx, x)))
    rows = shaped(
        ctx, places.disarranged(ctx, spread), [prod(places.shape), *ctx.shape(merged)[1:]]
    )
    flat = shaped(ctx, places.index, [prod(places.shape)])
    if len(places.axes) == 1:
        flat = inside(ctx, flat, ctx.shape(merged)[0], back=True)
    if accumulate:
        written = ctx.apply("index_add", merged, flat, rows, axis=0)
    else:
        written = ctx.apply("index_put", merged, flat, rows)
    return places.restored(ctx, written, x)


@lowering("aten.index_add.default")
def index_add(
    ctx: Context, x: SSAValue, dim: int, index: SSAValue, source: SSAValue, *, alpha: Number = 1
) -> SSAValue:
    if ctx.dtype(x) == "i1":
        wide = ctx.cast(x, "i64"), ctx.cast(source, "i64")
        return index_add(ctx, wide[0], dim, index, wide[1], alpha=alpha)
    if alpha != 1:
        source = ctx.apply("mul", source, ctx.scalar(alpha, source))
    return _written_along(ctx, "index_add", x, dim, index, source)


@lowering("aten.index_copy.default")
def index_copy(ctx: Context, x: SSAValue, dim: int, index: SSAValue, source: SSAValue) -> SSAValue:
    return _written_along(ctx, "index_copy", x, dim, index, source)


@lowering("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(ctx: Context, x: SSAValue, dim: int, index: SSAValue, value: Operand) -> SSAValue:
    (cell,) = ctx.operands(value, dtype=ctx.dtype(x))
    sizes = list(ctx.shape(lifted(ctx, x)))
    sizes[ctx.axis(dim, x)] = prod(ctx.shape(index))
    filled = ctx.apply("broadcast_to", ctx.cast(cell, ctx.dtype(x)), shape=sizes)
    return _written_along(ctx, "index_copy", x, dim, index, filled, back=True)


def _written_along(
    ctx: Context,
    metakernel: str,
    x: SSAValue,
    dim: int,
    index: SSAValue,
    source: SSAValue,
    *,
    back: bool = False,
) -> SSAValue:
    """Slices along an axis written at places; with `back`, some are counted from its end."""
    target = lifted(ctx, x)
    axis = ctx.axis(dim, target)
    places = inside(ctx, lifted(ctx, index), ctx.shape(target)[axis], back=back)
    sizes = list(ctx.shape(target))
    sizes[axis] = ctx.shape(places)[0]
    if not prod(sizes):
        return x
    slices = shaped(ctx, source, sizes)
    return shaped(ctx, ctx.apply(metakernel, target, places, slices, axis=axis), ctx.shape(x))


@lowering("aten.put.default")
def put(
    ctx: Context, x: SSAValue, index: SSAValue, source: SSAValue, accumulate: bool = False
) -> SSAValue:
    flat = shaped(ctx, x, [prod(ctx.shape(x))])
    places = [shaped(ctx, value, [prod(ctx.shape(value))]) for value in (index, source)]
    written = index_put(ctx, flat, [places[0]], places[1], accumulate)
    return shaped(ctx, written, ctx.shape(x))


@lowering("aten.masked_scatter.default")
def masked_scatter(ctx: Context, x: SSAValue, mask: SSAValue, source: SSAValue) -> SSAValue:
    """The n-th cell under the mask becomes the n-th of the source."""
    cells = list(ctx.result.shape)
    count = prod(ctx.shape(source))
    if not count:
        return x  # there is no cell under the mask
    over = ctx.apply("broadcast_to", ctx.cast(mask, "i1"), shape=cells)
    given = shaped(ctx, ctx.cast(source, ctx.dtype(x)), [count])
    spread = ctx.apply("take", given, _numbered(ctx, over, count), axis=0)
    return ctx.apply("where", over, shaped(ctx, spread, cells), x)


@lowering("aten.masked_scatter_backward.default")
def masked_scatter_backward(
    ctx: Context, gradient: SSAValue, mask: SSAValue, sizes: Sequence[int]
) -> SSAValue:
    """The n-th cell of the source gets the gradient of the n-th under the mask."""
    over = ctx.apply("broadcast_to", ctx.cast(mask, "i1"), shape=list(ctx.shape(gradient)))
    taken = ctx.apply("where", over, gradient, ctx.scalar(0, gradient))
    flat = shaped(ctx, taken, [prod(ctx.shape(gradient))])
    none = ctx.constant(0, ctx.dtype(gradient), [prod(sizes)])
    places = _numbered(ctx, over, prod(sizes))
    return shaped(ctx, ctx.apply("index_add", none, places, flat, axis=0), sizes)


def _numbered(ctx: Context, mask: SSAValue, count: int) -> SSAValue:
    """How many cells under the mask are before each, as a vector; below `count`."""
    flat = shaped(ctx, mask, [prod(ctx.shape(mask))])
    through = ctx.apply("cumsum", ctx.cast(flat, "i64"), axis=0)
    before = ctx.apply("sub", through, ctx.scalar(1, "i64"))
    return ctx.apply("clamp", before, min=0, max=max(0, count - 1))


@lowering("aten.searchsorted.Tensor", "aten.searchsorted.Scalar")
def searchsorted(
    ctx: Context,
    row: SSAValue,
    values: Operand,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: SSAValue | None = None,
) -> SSAValue:
    if sorter is not None:
        row = ctx.apply("gather", row, sorter, axis=-1)
    (sought,) = ctx.operands(values) if not isinstance(values, SSAValue) else (values,)
    after = right or side == "right"
    if ctx.rank(row) == 1:
        return ctx.apply("bucketize", sought, row, right=after)
    return ctx.apply("searchsorted", row, sought, right=after)


@lowering("aten.bucketize.Tensor", "aten.bucketize.Scalar")
def bucketize(
    ctx: Context,
    x: Operand,
    boundaries: SSAValue,
    out_int32: bool = False,
    right: bool = False,
) -> SSAValue:
    (sought,) = ctx.operands(x) if not isinstance(x, SSAValue) else (x,)
    return ctx.apply("bucketize", sought, boundaries, right=bool(right))


@dataclass(frozen=True)
class _Places:
    """Where tensors of indices point: into `axes` of a tensor, by numbers of the merged axes.

    `index` has the `shape` that the tensors broadcast to. The dimensions it makes stand at `at` in
    the result: at the first of axes that follow one another, else in front.
    """

    axes: tuple[int, ...]
    index: SSAValue
    shape: tuple[int, ...]
    at: int
    perm: tuple[int, ...]

    @staticmethod
    def of(ctx: Context, x: SSAValue, indices: Indices) -> _Places:
        given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
        if any(ctx.dtype(index) == "i1" for _, index in given):
            raise Unsupported("how many cells a mask selects is known at run time only")
        axes = tuple(axis for axis, _ in given)
        sizes = ctx.shape(x)
        shape = np.broadcast_shapes(*(ctx.shape(index) for _, index in given))
        index = _merged_index(ctx, [(value, sizes[axis]) for axis, value in given])
        if ctx.shape(index) != shape:
            index = ctx.apply("broadcast_to", index, shape=list(shape))
        rest = [axis for axis in range(len(sizes)) if axis not in axes]
        together = axes == tuple(range(axes[0], axes[-1] + 1))
        return _Places(axes, index, shape, axes[0] if together else 0, (*axes, *rest))

    def merged(self, ctx: Context, x: SSAValue) -> SSAValue:
        """The tensor with the indexed axes as one, in front."""
        turned = _permuted(ctx, x, self.perm)
        sizes = ctx.shape(turned)
        count = len(self.axes)
        return shaped(ctx, turned, [prod(sizes[:count]), *sizes[count:]])

    def restored(self, ctx: Context, merged: SSAValue, x: SSAValue) -> SSAValue:
        """What `merged` makes of a tensor of the shape of `x`, undone."""
        sizes = ctx.shape(x)
        apart = shaped(ctx, merged, [sizes[axis] for axis in self.perm])
        return _permuted(ctx, apart, tuple(np.argsort(self.perm).tolist()))

    def arranged(self, ctx: Context, rows: SSAValue) -> SSAValue:
        """Selected cells, whose dimensions of indices are in front, as PyTorch has them."""
        count, rank = len(self.shape), ctx.rank(rows)
        rest = list(range(count, rank))
        order = [*rest[: self.at], *range(count), *rest[self.at :]]
        return _permuted(ctx, rows, tuple(order))

    def disarranged(self, ctx: Context, selected: SSAValue) -> SSAValue:
        """What `arranged` makes, undone."""
        count, rank = len(self.shape), ctx.rank(selected)
        middle = range(self.at, self.at + count)
        rest = [axis for axis in range(rank) if axis not in middle]
        return _permuted(ctx, selected, (*middle, *rest))

    def selected(self, ctx: Context, x: SSAValue) -> tuple[int, ...]:
        """The shape of what is selected of a tensor."""
        rest = [ctx.shape(x)[axis] for axis in range(ctx.rank(x)) if axis not in self.axes]
        return (*rest[: self.at], *self.shape, *rest[self.at :])


def _merged_index(ctx: Context, given: Sequence[tuple[SSAValue, int]]) -> SSAValue:
    """Numbers in row-major order over axes of the given sizes, from the front.

    Each index must be inside its own axis; one alone is left as it is, for who looks it up.
    """
    (first, size), *others = given
    if not others:
        return first
    total = ctx.cast(inside(ctx, first, size, back=True), "i64")
    for index, extent in others:
        scaled = ctx.apply("mul", total, ctx.scalar(extent, "i64"))
        total = ctx.apply("add", scaled, ctx.cast(inside(ctx, index, extent, back=True), "i64"))
    return total


def _permuted(ctx: Context, x: SSAValue, perm: Sequence[int]) -> SSAValue:
    if list(perm) == list(range(len(perm))):
        return x
    return ctx.apply("permute", x, dims=list(perm))


def _put_where(
    ctx: Context, x: SSAValue, indices: Indices, values: SSAValue, *, accumulate: bool
) -> SSAValue:
    """One mask over the first dimensions, and values that are the same at each of its cells."""
    first = indices[0]
    if first is None or any(index is not None for index in indices[1:]):
        raise Unsupported("a mask beside other indices")
    rest = ctx.rank(x) - ctx.rank(first)
    shape = ctx.shape(values)
    if len(shape) > rest:
        if shape[0] != 1 or len(shape) > rest + 1:
            raise Unsupported("how many cells a mask selects is known at run time only")
        values = shaped(ctx, values, shape[1:])
    mask = shaped(ctx, first, [*ctx.shape(first), *[1] * rest])
    changed = ctx.apply("add", x, values) if accumulate else values
    return ctx.apply("where", mask, changed, x)
