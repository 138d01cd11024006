"""Normalizations, with the statistics that their gradients need."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tapestry.importers.torch.registry import Context, Lowered, Number, Unsupported, lowering


@lowering("aten.native_layer_norm.default")
def layer_norm(
    ctx: Context,
    x: SSAValue,
    normalized_shape: Sequence[int],
    weight: SSAValue | None,
    bias: SSAValue | None,
    eps: Number,
) -> Lowered:
    dims = len(normalized_shape)
    return ctx.apply_all("native_layer_norm", x, weight, bias, dims=dims, eps=eps)


@lowering("aten.native_group_norm.default")
def group_norm(
    ctx: Context,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    n: int,
    c: int,
    hw: int,
    group: int,
    eps: Number,
) -> Lowered:
    return ctx.apply_all("native_group_norm", x, weight, bias, groups=group, eps=eps)


@lowering("aten._native_batch_norm_legit.no_stats")
def batch_norm_of_batch(
    ctx: Context,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    training: bool,
    momentum: Number,
    eps: Number,
) -> Lowered:
    return ctx.apply_all("batch_norm", x, weight, bias, eps=eps)


@lowering("aten._native_batch_norm_legit_no_training.default")
def batch_norm_inference(
    ctx: Context,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    running_mean: SSAValue,
    running_var: SSAValue,
    momentum: Number,
    eps: Number,
) -> Lowered:
    result = ctx.apply("batch_norm_inference", x, running_mean, running_var, weight, bias, eps=eps)
    return [result, *_kept(ctx, x, running_mean, running_var, eps)]


@lowering("aten._native_batch_norm_legit_functional.default")
def batch_norm_functional(
    ctx: Context,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    running_mean: SSAValue,
    running_var: SSAValue,
    training: bool,
    momentum: Number,
    eps: Number,
) -> Lowered:
    given = (x, running_mean, running_var, weight, bias)
    if training:
        return ctx.apply_all("batch_norm_training", *given, momentum=momentum, eps=eps)
    result = ctx.apply("batch_norm_inference", *given, eps=eps)
    return [result, *_kept(ctx, x, running_mean, running_var, eps), running_mean, running_var]


@lowering("aten._batch_norm_with_update_functional.default")
def batch_norm_with_update(
    ctx: Context,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    running_mean: SSAValue,
    running_var: SSAValue,
    momentum: Number,
    eps: Number,
) -> Lowered:
    given = (x, running_mean, running_var, weight, bias)
    result, mean, rstd, new_mean, new_var = ctx.apply_all(
        "batch_norm_training", *given, momentum=momentum, eps=eps
    )
    # Memory that PyTorch's own kernels reserve for the gradient.
    return [result, mean, rstd, ctx.constant(0, "ui8", (0,)), new_mean, new_var]


@lowering("aten.native_batch_norm.default")
def batch_norm(
    ctx: Context,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    running_mean: SSAValue | None,
    running_var: SSAValue | None,
    training: bool,
    momentum: Number,
    eps: Number,
) -> Lowered:
    if training and running_mean is not None:
        raise Unsupported("the running mean is changed in place")
    if training:
        return ctx.apply_all("batch_norm", x, weight, bias, eps=eps)
    if running_mean is None or running_var is None:
        raise Unsupported("there is no running mean to normalize by")
    return batch_norm_inference(ctx, x, weight, bias, running_mean, running_var, momentum, eps)


def _kept(
    ctx: Context, x: SSAValue, mean: SSAValue, variance: SSAValue, eps: Number
) -> list[SSAValue]:
    """The statistics that are kept for the gradient where none are computed of the batch.

    On the CPU PyTorch has empty tensors in their place, elsewhere those that `x` is normalized by.
    """
    kind = ctx.results[2]
    if kind is None or 0 in kind.shape:
        return [ctx.constant(0, ctx.dtype(x), (0,))] * 2
    variance = ctx.cast(variance, kind.dtype)
    return [mean, ctx.apply("rsqrt", ctx.apply("add", variance, ctx.scalar(eps, variance)))]
