"""Pools and their gradients, over one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt
from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import per_axis, shaped
from tapestry.importers.torch.registry import Context, Lowered, Unsupported, lowering


def _register_average(rank: int) -> None:
    @lowering(f"aten.avg_pool{rank}d.default")
    def average(  # pyright: ignore[reportUnusedFunction]
        ctx: Context,
        x: SSAValue,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> SSAValue:
        if not ctx.dtype(x).startswith(("f", "bf")):
            raise Unsupported("means of integers")
        return ctx.apply(
            f"avg_pool{rank}d",
            x,
            **_windows(rank, kernel_size, stride, padding),
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            divisor=divisor_override or 0,
        )


def _register_average_backward(rank: int) -> None:
    @lowering(f"aten.avg_pool{rank}d_backward.default")
    def average_backward(  # pyright: ignore[reportUnusedFunction]
        ctx: Context,
        gradient: SSAValue,
        x: SSAValue,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> SSAValue:
        """Each window's share of its gradient goes to its cells: a convolution by ones, turned."""
        windows = _windows(rank, kernel_size, stride, padding)
        size, outs = ctx.shape(x)[-rank:], ctx.shape(gradient)[-rank:]
        counts = np.ones(()) * (divisor_override or 1)
        if not divisor_override:
            along = zip(outs, size, *windows.values(), strict=True)
            for axis in along:
                counts = np.multiply.outer(counts, _counts(*axis, padded=count_include_pad))
        share = ctx.apply("div", gradient, ctx.constant(counts, ctx.dtype(gradient)))
        planes = shaped(ctx, share, [prod(ctx.shape(x)[:-rank]), 1, *outs])
        ones = ctx.constant(1, ctx.dtype(gradient), [1, 1, *windows["kernel"]])
        how = {"stride": windows["stride"], "padding": windows["padding"], "size": list(size)}
        spread = ctx.apply(f"conv{rank}d_backward_input", planes, ones, **how)
        return shaped(ctx, spread, ctx.shape(x))


def _register_maximum(rank: int) -> None:
    @lowering(f"aten.max_pool{rank}d_with_indices.default")
    def maximum(  # pyright: ignore[reportUnusedFunction]
        ctx: Context,
        x: SSAValue,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Lowered:
        return ctx.apply_all(
            f"max_pool{rank}d_with_indices",
            x,
            **_windows(rank, kernel_size, stride, padding),
            dilation=per_axis(dilation, rank),
            ceil_mode=ceil_mode,
        )

    @lowering(f"aten.max_pool{rank}d_with_indices_backward.default")
    def maximum_backward(  # pyright: ignore[reportUnusedFunction]
        ctx: Context,
        gradient: SSAValue,
        x: SSAValue,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        ceil_mode: bool,
        indices: SSAValue,
    ) -> SSAValue:
        return ctx.apply(
            f"max_pool{rank}d_with_indices_backward",
            gradient,
            indices,
            size=list(ctx.shape(x)[-rank:]),
            **_windows(rank, kernel_size, stride, padding),
            dilation=per_axis(dilation, rank),
        )


def _register_adaptive(rank: int) -> None:
    @lowering(f"aten._adaptive_avg_pool{rank}d.default")
    def adaptive(  # pyright: ignore[reportUnusedFunction]
        ctx: Context, x: SSAValue, output_size: Sequence[int]
    ) -> SSAValue:
        return _along_each(ctx, "adaptive_avg_pool", x, per_axis(output_size, rank))

    @lowering(f"aten._adaptive_avg_pool{rank}d_backward.default")
    def adaptive_backward(  # pyright: ignore[reportUnusedFunction]
        ctx: Context, gradient: SSAValue, x: SSAValue
    ) -> SSAValue:
        return _along_each(ctx, "adaptive_avg_pool_backward", gradient, ctx.shape(x)[-rank:])

    @lowering(f"aten.adaptive_max_pool{rank}d.default")
    def adaptive_max(  # pyright: ignore[reportUnusedFunction]
        ctx: Context, x: SSAValue, output_size: Sequence[int]
    ) -> Lowered:
        size = per_axis(output_size, rank)
        return ctx.apply_all(f"adaptive_max_pool{rank}d_with_indices", x, size=size)

    @lowering(f"aten.adaptive_max_pool{rank}d_backward.default")
    def adaptive_max_backward(  # pyright: ignore[reportUnusedFunction]
        ctx: Context, gradient: SSAValue, x: SSAValue, indices: SSAValue
    ) -> SSAValue:
        """Gradients go where the maxima were: places in planes, which are taken for rows."""
        planes = prod(ctx.shape(x)[:-rank])
        none = ctx.constant(0, ctx.dtype(gradient), [planes, prod(ctx.shape(x)[-rank:])])
        flat = [planes, prod(ctx.shape(gradient)[-rank:])]
        places, cells = shaped(ctx, indices, flat), shaped(ctx, gradient, flat)
        return shaped(ctx, ctx.apply("scatter_add", none, places, cells, axis=1), ctx.shape(x))


for _rank in (1, 2, 3):
    _register_average(_rank)
for _rank in (2, 3):
    _register_average_backward(_rank)
    _register_maximum(_rank)
    _register_adaptive(_rank)


def _windows(
    rank: int, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int]
) -> dict[str, list[int]]:
    sizes = per_axis(kernel, rank)
    return {
        "kernel": sizes,
        "stride": per_axis(stride, rank) if stride else sizes,
        "padding": per_axis(padding, rank),
    }


def _counts(
    outs: int, size: int, kernel: int, stride: int, padding: int, *, padded: bool
) -> npt.NDArray[np.float64]:
    """How many cells each window along an axis counts, with or without padding."""
    first = np.arange(outs) * stride - padding
    last = np.minimum(first + kernel, size + padding)
    if not padded:
        first, last = np.maximum(first, 0), np.minimum(last, size)
    return (last - first).astype(np.float64)


def _along_each(ctx: Context, metakernel: str, x: SSAValue, sizes: Sequence[int]) -> SSAValue:
    """An operator along each of the last axes; half types are rounded once, at the end.

    Where an axis stays as long as it is, so do its cells.
    """
    wide = ctx.cast(x, "f32") if ctx.dtype(x) in ("f16", "bf16") else x
    axes = list(zip(range(-len(sizes), 0), sizes, strict=True))
    shape = ctx.shape(x)
    for axis, size in [(a, n) for a, n in axes if shape[a] != n] or axes[-1:]:
        wide = ctx.apply(metakernel, wide, axis=axis, size=size)
    return wide
