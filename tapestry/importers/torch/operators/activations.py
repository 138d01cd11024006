"""Activation functions."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import alike, register_unary
from tapestry.importers.torch.registry import Context, Number, lowering

register_unary(
    {
        "relu": "relu",
        "relu6": "relu6",
        "selu": "selu",
        "silu": "silu",
        "mish": "mish",
        "hardsigmoid": "hardsigmoid",
        "hardswish": "hardswish",
    }
)


@lowering("aten.gelu.default")
def gelu(ctx: Context, x: SSAValue, approximate: str = "none") -> SSAValue:
    return ctx.apply("gelu", x, approximate=approximate)


@lowering("aten.leaky_relu.default")
def leaky_relu(ctx: Context, x: SSAValue, negative_slope: Number = 0.01) -> SSAValue:
    return ctx.apply("leaky_relu", x, slope=negative_slope)


@lowering("aten.elu.default")
def elu(
    ctx: Context, x: SSAValue, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1
) -> SSAValue:
    return ctx.apply("elu", x, alpha=alpha, scale=scale, input_scale=input_scale)


@lowering("aten.celu.default")
def celu(ctx: Context, x: SSAValue, alpha: Number = 1) -> SSAValue:
    return ctx.apply("celu", x, alpha=alpha)


@lowering("aten.softplus.default")
def softplus(ctx: Context, x: SSAValue, beta: Number = 1, threshold: Number = 20) -> SSAValue:
    return ctx.apply("softplus", x, beta=beta, threshold=threshold)


@lowering("aten.hardtanh.default")
def hardtanh(ctx: Context, x: SSAValue, min_val: Number = -1, max_val: Number = 1) -> SSAValue:
    if ctx.dtype(x).startswith(("f", "bf")):
        return ctx.apply("hardtanh", x, low=min_val, high=max_val)
    return ctx.apply("clamp", x, min=int(min_val), max=int(max_val))


@lowering("aten.hardshrink.default")
def hardshrink(ctx: Context, x: SSAValue, lambd: Number = 0.5) -> SSAValue:
    return ctx.apply("hardshrink", x, lambd=lambd)


@lowering("aten.softshrink.default")
def softshrink(ctx: Context, x: SSAValue, lambd: Number = 0.5) -> SSAValue:
    return ctx.apply("softshrink", x, lambd=lambd)


@lowering("aten.threshold.default")
def threshold(ctx: Context, x: SSAValue, threshold: Number, value: Number) -> SSAValue:
    return ctx.apply("threshold", x, threshold=threshold, value=value)


@lowering("aten.log_sigmoid_forward.default")
def log_sigmoid(ctx: Context, x: SSAValue) -> list[SSAValue | None]:
    # The second result is memory that PyTorch's own gradient may use.
    return [ctx.apply("logsigmoid", x), ctx.apply("zeros_like", x)]


@lowering("aten._prelu_kernel.default", "aten.prelu.default")
def prelu(ctx: Context, x: SSAValue, weight: SSAValue) -> SSAValue:
    cells, slope = alike(ctx, x, weight)
    scaled = ctx.apply("mul", cells, slope)
    positive = ctx.apply("gt", cells, ctx.scalar(0, cells))
    return ctx.apply("where", positive, cells, scaled)


@lowering("aten.glu.default")
def glu(ctx: Context, x: SSAValue, dim: int = -1) -> SSAValue:
    return ctx.apply("glu", x, axis=dim)


@lowering("aten._softmax.default")
def softmax(ctx: Context, x: SSAValue, dim: int, half_to_float: Number = False) -> SSAValue:
    return _along(ctx, "softmax", x, dim)


@lowering("aten._log_softmax.default")
def log_softmax(ctx: Context, x: SSAValue, dim: int, half_to_float: Number = False) -> SSAValue:
    return _along(ctx, "log_softmax", x, dim)


def _along(ctx: Context, metakernel: str, x: SSAValue, dim: int) -> SSAValue:
    cells = ctx.cast(x, ctx.result.dtype)
    if ctx.rank(x):
        return ctx.apply(metakernel, cells, axis=dim)
    row = ctx.apply("reshape", cells, shape=[1])
    return ctx.apply("reshape", ctx.apply(metakernel, row, axis=0), shape=[])


@lowering("aten.rrelu_with_noise_functional.default")
def rrelu(
    ctx: Context,
    x: SSAValue,
    noise: SSAValue,
    lower: Number = 0.125,
    upper: Number = 1 / 3,
    training: Number = False,
) -> list[SSAValue | None]:
    if not training:
        return [ctx.apply("rrelu", x, lower=lower, upper=upper), noise]
    spread = ctx.apply("uniform", ctx.seed(), shape=list(ctx.shape(x)))
    slopes = ctx.apply("scale", spread, factor=upper - lower, shift=lower)
    one = ctx.scalar(1, ctx.dtype(x))
    below = ctx.apply("le", x, ctx.scalar(0, x))
    used = ctx.apply("where", below, ctx.cast(slopes, ctx.dtype(x)), one)
    return [ctx.apply("mul", x, used), used]
