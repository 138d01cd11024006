"""Functions of one cell: exponentials, logarithms, roots, trigonometry, rounding."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import counted, register_unary
from tapestry.importers.torch.registry import Context, Number, lowering

_SAME_NAME = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "erf", "sigmoid",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "deg2rad", "rad2deg", "floor", "ceil", "trunc", "frac",
)  # fmt: skip

register_unary({name: name for name in _SAME_NAME})


@lowering("aten.round.default", "aten.round.decimals")
def round_(ctx: Context, x: SSAValue, decimals: int = 0) -> SSAValue:
    return ctx.apply("round", x, decimals=decimals)


@lowering("aten.nan_to_num.default")
def nan_to_num(
    ctx: Context,
    x: SSAValue,
    nan: Number | None = None,
    posinf: Number | None = None,
    neginf: Number | None = None,
) -> SSAValue:
    if not ctx.dtype(x).startswith(("f", "bf")):
        return x
    given = {"nan": nan, "posinf": posinf, "neginf": neginf}
    return ctx.apply("nan_to_num", x, **{k: v for k, v in given.items() if v is not None})


@lowering("aten.logit.default")
def logit(ctx: Context, x: SSAValue, eps: Number | None = None) -> SSAValue:
    cells = ctx.cast(counted(ctx, x), ctx.result.dtype)
    inside = cells if eps is None else ctx.apply("clamp", cells, min=eps, max=1 - eps)
    rest = ctx.apply("sub", ctx.scalar(1, inside), inside)
    return ctx.apply("log", ctx.apply("div", inside, rest))
