"""Convolutions, transposed ones, and their gradients, over one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import alike, corner, per_axis
from tapestry.importers.torch.registry import Context, Unsupported, lowering


@lowering("aten.convolution.default")
def convolution(
    ctx: Context,
    x: SSAValue,
    weight: SSAValue,
    bias: SSAValue | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> SSAValue:
    rank = _rank(ctx, x)
    given = alike(ctx, x, weight, *([] if bias is None else [bias]))
    how = _windows(rank, stride, padding, dilation, groups)
    if not transposed:
        return ctx.apply(f"conv{rank}d", *given, **how)
    extra = per_axis(output_padding, rank)
    return ctx.apply(f"conv_transpose{rank}d", *given, output_padding=extra, **how)


@lowering("aten.convolution_backward.default")
def convolution_backward(
    ctx: Context,
    gradient: SSAValue,
    x: SSAValue,
    weight: SSAValue,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Sequence[SSAValue | None]:
    rank = _rank(ctx, x)
    how = _windows(rank, stride, padding, dilation, groups)
    kernel = list(ctx.shape(weight)[2:])
    to_x = to_weight = to_bias = None
    if output_mask[0] and transposed:
        # What a transposed convolution spreads, a convolution collects; where its result is padded
        # by a stride or more, windows are left over.
        to_x = corner(ctx, ctx.apply(f"conv{rank}d", gradient, weight, **how), ctx.shape(x))
    elif output_mask[0]:
        size = list(ctx.shape(x)[2:])
        to_x = ctx.apply(f"conv{rank}d_backward_input", gradient, weight, size=size, **how)
    if output_mask[1]:
        both = (x, gradient) if transposed else (gradient, x)
        to_weight = ctx.apply(f"conv{rank}d_backward_weight", *both, size=kernel, **how)
    if output_mask[2]:
        to_bias = ctx.apply("sum", gradient, axis=[0, *range(2, 2 + rank)])
    return [to_x, to_weight, to_bias]


def _rank(ctx: Context, x: SSAValue) -> int:
    rank = ctx.rank(x) - 2
    if rank not in (1, 2, 3):
        raise Unsupported(f"a convolution over {rank} dimensions")
    return rank


def _windows(
    rank: int,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> dict[str, object]:
    return {
        "stride": per_axis(stride, rank),
        "padding": per_axis(padding, rank),
        "dilation": per_axis(dilation, rank),
        "groups": groups,
    }
