"""Cells by where they lie in memory: `as_strided`, which only PyTorch's strides explain.

    x.as_strided((2, 3), (1, 2))    # of a matrix that lies column by column: its transpose's cells

A value of a program lies nowhere. Where PyTorch's tensor lies is in `Context.lies`, and if it fills
its memory, each place there is one of its cells: then they are the cells in the order in which they
lie, under axes in another order, or picked by their places. Other cells cannot be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from tapestry.importers.torch.errors import ImportingError, place_of
from tapestry.importers.torch.operators._common import shaped
from tapestry.importers.torch.registry import Context, lowering


@lowering("aten.as_strided.default", "aten.as_strided_copy.default")
def as_strided(
    ctx: Context,
    x: SSAValue,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> SSAValue:
    flat, _ = _flat(ctx, x)
    order = sorted(range(len(size)), key=lambda axis: -stride[axis])
    sizes, steps = [size[axis] for axis in order], [stride[axis] for axis in order]
    after = [prod(sizes[place + 1 :]) for place in range(len(sizes))]
    if steps == after and not storage_offset and prod(sizes) == ctx.shape(flat)[0]:
        back = [order.index(axis) for axis in range(len(size))]
        return ctx.apply("permute", shaped(ctx, flat, sizes), dims=back)
    places = _places(ctx, flat, size, stride, storage_offset)
    return ctx.apply("index", flat, ctx.constant(places, "i64"))


@lowering("aten.as_strided_scatter.default")
def as_strided_scatter(
    ctx: Context,
    x: SSAValue,
    src: SSAValue,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> SSAValue:
    flat, order = _flat(ctx, x)
    places = _places(ctx, flat, size, stride, storage_offset).reshape(-1)
    if len(np.unique(places)) < len(places):
        raise _refused(ctx, "it writes a cell more than once")
    source = shaped(ctx, ctx.cast(src, ctx.dtype(x)), [len(places)])
    written = ctx.apply("index_copy", flat, ctx.constant(places, "i64"), source, axis=0)
    sizes = [ctx.shape(x)[axis] for axis in order]
    back = [order.index(axis) for axis in range(len(order))]
    return ctx.apply("permute", shaped(ctx, written, sizes), dims=back)


def _flat(ctx: Context, x: SSAValue) -> tuple[SSAValue, list[int]]:
    """The cells one after another as they lie in memory, and the axes that they lie along."""
    strides, offset = ctx.lies()
    sizes = ctx.shape(x)
    order = sorted(range(len(sizes)), key=lambda axis: (-strides[axis], -sizes[axis]))
    step = 1
    for axis in reversed(order):
        if sizes[axis] != 1 and strides[axis] != step:
            raise _refused(ctx, "its tensor does not fill its memory")
        step *= sizes[axis]
    if offset:
        raise _refused(ctx, "its tensor is not at the beginning of its memory")
    dense = ctx.apply("permute", x, dims=order) if order != sorted(order) else x
    return shaped(ctx, dense, [prod(sizes)]), order


def _places(
    ctx: Context,
    flat: SSAValue,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None,
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Where each cell is in memory."""
    places = np.full((), storage_offset or 0)
    for length, step in zip(size, stride, strict=True):
        places = places[..., None] + step * np.arange(length)
    if places.size and places.max() >= ctx.shape(flat)[0]:
        raise _refused(ctx, f"it reaches cell {places.max()} of {ctx.shape(flat)[0]}")
    return places


def _refused(ctx: Context, reason: str) -> ImportingError:
    return ImportingError(
        f"{ctx.operator} cannot be imported: {reason}",
        location=place_of(ctx.location),
        hint="index, slice or unfold the tensor itself, or clone it first",
    )
