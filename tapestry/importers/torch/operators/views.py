"""The same cells in another place or shape; nothing is computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import lifted, shaped
from tapestry.importers.torch.registry import Context, Number, Operand, Unsupported, lowering


@lowering(
    "aten.view.default", "aten._unsafe_view.default", "aten.reshape.default",
    "aten.unsqueeze.default", "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims",
    "aten.flatten.using_ints", "aten.unflatten.int", "aten._reshape_copy.default",
    "aten.view_copy.default", "aten.unsqueeze_copy.default", "aten.squeeze_copy.default",
    "aten.squeeze_copy.dim", "aten.squeeze_copy.dims",
)  # fmt: skip
def reshape(ctx: Context, x: SSAValue, *how: object) -> SSAValue:
    return shaped(ctx, x, ctx.result.shape)


@lowering(
    "aten.clone.default", "aten.alias.default", "aten.detach.default", "aten.lift_fresh.default",
    "aten.lift_fresh_copy.default", "aten.contiguous.default", "aten.alias_copy.default",
    "aten.detach_copy.default", "aten.lift.default",
)  # fmt: skip
def clone(ctx: Context, x: SSAValue) -> SSAValue:
    return x


@lowering("aten.copy.default")
def copy(ctx: Context, x: SSAValue, src: SSAValue, non_blocking: Number = False) -> SSAValue:
    return _stretched(ctx, src, ctx.shape(x))


@lowering("aten.expand.default", "aten.expand_copy.default")
def expand(ctx: Context, x: SSAValue, size: Sequence[int], implicit: Number = False) -> SSAValue:
    return _stretched(ctx, x, ctx.result.shape)


@lowering("aten.permute.default", "aten.permute_copy.default")
def permute(ctx: Context, x: SSAValue, dims: Sequence[int]) -> SSAValue:
    return ctx.apply("permute", x, dims=list(dims))


@lowering("aten.t.default", "aten.t_copy.default")
def t(ctx: Context, x: SSAValue) -> SSAValue:
    return ctx.apply("permute", x, dims=list(reversed(range(ctx.rank(x)))))


@lowering("aten.transpose.int", "aten.transpose_copy.int")
def transpose(ctx: Context, x: SSAValue, dim0: int, dim1: int) -> SSAValue:
    return ctx.apply("swapaxes", x, axis1=dim0, axis2=dim1) if ctx.rank(x) else x


@lowering("aten.select.int", "aten.select_copy.int")
def select(ctx: Context, x: SSAValue, dim: int, index: int) -> SSAValue:
    return ctx.apply("select", x, index=index, axis=dim)


@lowering("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(
    ctx: Context,
    x: SSAValue,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> SSAValue:
    return ctx.apply("slice", x, axis=dim, **_bounds(start, end, step))


@lowering("aten.slice_scatter.default")
def slice_scatter(
    ctx: Context,
    x: SSAValue,
    src: SSAValue,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> SSAValue:
    source = ctx.cast(src, ctx.dtype(x))
    return ctx.apply("slice_scatter", x, source, axis=dim, **_bounds(start, end, step))


@lowering("aten.select_scatter.default")
def select_scatter(ctx: Context, x: SSAValue, src: SSAValue, dim: int, index: int) -> SSAValue:
    source = ctx.cast(src, ctx.dtype(x))
    return ctx.apply("select_scatter", x, source, index=index, axis=dim)


@lowering("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(ctx: Context, x: SSAValue, offset: int = 0, dim1: int = 0, dim2: int = 1) -> SSAValue:
    return ctx.apply("diagonal", x, offset=offset, axis1=dim1, axis2=dim2)


@lowering("aten.diagonal_scatter.default")
def diagonal_scatter(
    ctx: Context, x: SSAValue, src: SSAValue, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> SSAValue:
    source = ctx.cast(src, ctx.dtype(x))
    if not all(ctx.shape(source)):
        return x
    rank = ctx.rank(x)
    ends = [ctx.axis(dim1, x), ctx.axis(dim2, x)]
    order = [*(axis for axis in range(rank) if axis not in ends), *ends]
    turned = ctx.apply("permute", x, dims=order)
    written = ctx.apply("diagonal_scatter", turned, source, offset=offset)
    return ctx.apply("permute", written, dims=[order.index(axis) for axis in range(rank)])


@lowering("aten.unfold.default", "aten.unfold_copy.default")
def unfold(ctx: Context, x: SSAValue, dimension: int, size: int, step: int) -> SSAValue:
    windows = ctx.apply("unfold", lifted(ctx, x), size=size, step=step, axis=dimension)
    return shaped(ctx, windows, ctx.result.shape)


@lowering("aten.flip.default")
def flip(ctx: Context, x: SSAValue, dims: Sequence[int]) -> SSAValue:
    return ctx.apply("flip", x, axes=list(dims)) if ctx.rank(x) else x


@lowering("aten.roll.default")
def roll(ctx: Context, x: SSAValue, shifts: Sequence[int], dims: Sequence[int] = ()) -> SSAValue:
    if dims:
        return ctx.apply("roll", x, shifts=list(shifts), axes=list(dims)) if ctx.rank(x) else x
    flat = ctx.apply("reshape", x, shape=[-1]) if ctx.rank(x) != 1 else x
    return shaped(ctx, ctx.apply("roll", flat, shifts=list(shifts), axes=[0]), ctx.shape(x))


@lowering("aten.repeat.default")
def repeat(ctx: Context, x: SSAValue, repeats: Sequence[int]) -> SSAValue:
    return ctx.apply("repeat", x, repeats=list(repeats))


@lowering("aten.tril.default")
def tril(ctx: Context, x: SSAValue, diagonal: int = 0) -> SSAValue:
    return ctx.apply("tril", x, k=diagonal)


@lowering("aten.triu.default")
def triu(ctx: Context, x: SSAValue, diagonal: int = 0) -> SSAValue:
    return ctx.apply("triu", x, k=diagonal)


@lowering("aten.pixel_shuffle.default")
def pixel_shuffle(ctx: Context, x: SSAValue, upscale_factor: int) -> SSAValue:
    return ctx.apply("pixel_shuffle", x, factor=upscale_factor)


@lowering("aten.pixel_unshuffle.default")
def pixel_unshuffle(ctx: Context, x: SSAValue, downscale_factor: int) -> SSAValue:
    return ctx.apply("pixel_unshuffle", x, factor=downscale_factor)


@lowering("aten.constant_pad_nd.default")
def constant_pad(ctx: Context, x: SSAValue, pad: Sequence[int], value: Number = 0) -> SSAValue:
    before, after = _around(ctx, x, pad)
    if ctx.dtype(x) == "i1":
        inside = ctx.apply("pad", ctx.cast(x, "ui8"), before=before, after=after, value=int(value))
        return ctx.cast(inside, "i1")
    return ctx.apply("pad", x, before=before, after=after, value=value)


def _register_pad(operator: str, mode: str) -> None:
    def pad_by(ctx: Context, x: SSAValue, padding: Sequence[int]) -> SSAValue:
        before, after = _around(ctx, x, padding)
        return ctx.apply("pad", x, before=before, after=after, mode=mode)

    lowering(*(f"aten.{operator}{rank}d.default" for rank in (1, 2, 3)))(pad_by)


_register_pad("reflection_pad", "reflect")
_register_pad("replication_pad", "replicate")


@lowering(*(f"aten.replication_pad{rank}d_backward.default" for rank in (1, 2, 3)))
def replication_pad_backward(
    ctx: Context, gradient: SSAValue, x: SSAValue, padding: Sequence[int]
) -> SSAValue:
    """Along each axis, the gradients of what is outside add to those of the edge."""
    result = gradient
    for axis, (before, after) in enumerate(zip(*_around(ctx, x, padding), strict=True)):
        if before == after == 0:
            continue
        shape, size = list(ctx.shape(result)), ctx.shape(x)[axis]
        nearest = np.clip(np.arange(shape[axis]) - before, 0, size - 1)
        shape[axis] = size
        none = ctx.constant(0, ctx.dtype(gradient), shape)
        result = ctx.apply("index_add", none, ctx.constant(nearest, "i64"), result, axis=axis)
    return result


@lowering("aten.fill.Scalar", "aten.fill.Tensor")
def fill(ctx: Context, x: SSAValue, value: Operand) -> SSAValue:
    (cell,) = ctx.operands(value, dtype=ctx.dtype(x))
    return _stretched(ctx, cell, ctx.shape(x))


def _stretched(ctx: Context, x: SSAValue, shape: Sequence[int]) -> SSAValue:
    return x if ctx.shape(x) == tuple(shape) else ctx.apply("broadcast_to", x, shape=list(shape))


def _bounds(start: int | None, end: int | None, step: int) -> dict[str, int]:
    far = (1 << 62) - 1
    return {
        "start": 0 if start is None else max(-far, min(start, far)),
        "stop": far if end is None else max(-far, min(end, far)),
        "step": step,
    }


def _around(ctx: Context, x: SSAValue, pad: Sequence[int]) -> tuple[list[int], list[int]]:
    """What is before and after each axis; PyTorch lists pairs from the last axis on."""
    if len(pad) % 2 or len(pad) > 2 * ctx.rank(x):
        raise Unsupported(f"there are no {len(pad)} sides to pad")
    rest = [0] * (ctx.rank(x) - len(pad) // 2)
    return [*rest, *reversed(pad[::2])], [*rest, *reversed(pad[1::2])]
