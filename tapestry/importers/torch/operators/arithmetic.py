"""Sums, products, quotients and powers of two operands, one of which may be a Python scalar."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import alike, counted, numbers, register_unary
from tapestry.importers.torch.registry import Context, Number, Operand, lowering

register_unary({"neg": "neg", "square": "square", "reciprocal": "reciprocal"})


@lowering("aten.add.Tensor", "aten.add.Scalar")
def add(ctx: Context, x: Operand, y: Operand, alpha: Number = 1) -> SSAValue:
    a, b = alike(ctx, x, y)
    if ctx.result.dtype != "i1":
        return ctx.apply("add", a, b, alpha=alpha)
    # Of truth values the sum is 1 where one of them is.
    return ctx.apply("logical_or", a, b) if alpha else a


@lowering("aten.sub.Tensor", "aten.sub.Scalar")
def sub(ctx: Context, x: Operand, y: Operand, alpha: Number = 1) -> SSAValue:
    return ctx.apply("sub", *numbers(ctx, x, y), alpha=alpha)


@lowering("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(ctx: Context, x: Operand, y: Operand, alpha: Number = 1) -> SSAValue:
    return sub(ctx, y, x, alpha)


@lowering("aten.mul.Tensor", "aten.mul.Scalar")
def mul(ctx: Context, x: Operand, y: Operand) -> SSAValue:
    return ctx.apply("logical_and" if ctx.result.dtype == "i1" else "mul", *alike(ctx, x, y))


@lowering("aten.div.Tensor", "aten.div.Scalar")
def div(ctx: Context, x: Operand, y: Operand) -> SSAValue:
    return ctx.apply("div", *alike(ctx, x, y))


@lowering("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(ctx: Context, x: Operand, y: Operand, rounding_mode: str | None = None) -> SSAValue:
    if rounding_mode is None:
        return div(ctx, x, y)
    operator = {"floor": "floor_divide", "trunc": "trunc_divide"}[rounding_mode]
    return ctx.apply(operator, *numbers(ctx, x, y))


@lowering("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(ctx: Context, x: Operand, y: Operand) -> SSAValue:
    return ctx.apply("floor_divide", *numbers(ctx, x, y))


@lowering("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(ctx: Context, x: Operand, y: Operand) -> SSAValue:
    return ctx.apply("remainder", *numbers(ctx, x, y))


@lowering("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(ctx: Context, x: Operand, y: Operand) -> SSAValue:
    return ctx.apply("fmod", *numbers(ctx, x, y))


_ROOTS = {0.5: "sqrt", -0.5: "rsqrt"}
"""Exponents that are roots in PyTorch, which differ from powers at -0.0 and -inf."""


@lowering("aten.pow.Tensor_Scalar")
def pow_scalar(ctx: Context, x: SSAValue, exponent: Number) -> SSAValue:
    (base,) = numbers(ctx, x)
    if exponent in _ROOTS:
        return ctx.apply(_ROOTS[exponent], base)
    return ctx.apply("pow_scalar", base, exponent=exponent)


@lowering("aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def pow_tensor(ctx: Context, x: Operand, exponent: SSAValue) -> SSAValue:
    base, power = numbers(ctx, x, exponent)
    if ctx.result.dtype.startswith(("f", "bf")):
        return ctx.apply("pow", base, power)
    shape = list(ctx.result.shape)
    return _whole_power(ctx, *(ctx.apply("broadcast_to", v, shape=shape) for v in (base, power)))


def _whole_power(ctx: Context, base: SSAValue, exponent: SSAValue) -> SSAValue:
    """A power of integers, which wraps around: one step for each bit of the exponent.

    Below zero only the powers of 1 and -1 are whole; others are cut off to 0.
    """
    kind = ctx.dtype(base)
    zero, one = (ctx.scalar(value, kind) for value in (0, 1))
    result = ctx.constant(1, kind, ctx.shape(base))
    signed = not kind.startswith("u")
    squared, rest = base, ctx.apply("maximum", exponent, zero) if signed else exponent
    for _ in range(int(kind.lstrip("ui")) - signed):
        result, squared, rest = ctx.apply_all("power_step", result, squared, rest)
    if not signed:
        return result
    odd = ctx.apply("ne", ctx.apply("bitwise_and", exponent, one), zero)
    least = ctx.scalar(-1, kind)
    of_least = ctx.apply("where", odd, least, one)
    else_zero = ctx.apply("where", ctx.apply("eq", base, one), one, zero)
    below = ctx.apply("where", ctx.apply("eq", base, least), of_least, else_zero)
    return ctx.apply("where", ctx.apply("lt", exponent, zero), below, result)


@lowering("aten.abs.default")
def absolute(ctx: Context, x: SSAValue) -> SSAValue:
    return ctx.apply("abs", x)


@lowering("aten.sign.default", "aten.sgn.default")
def sign(ctx: Context, x: SSAValue) -> SSAValue:
    made = ctx.apply("sign", counted(ctx, x))
    if ctx.dtype(x).strip("b")[0] != "f":
        return made
    return ctx.apply("where", ctx.apply("eq", x, x), made, ctx.scalar(0, x))  # NaN has none


@lowering("aten.atan2.default")
def atan2(ctx: Context, y: SSAValue, x: SSAValue) -> SSAValue:
    return ctx.apply("atan2", *alike(ctx, y, x))


@lowering("aten.hypot.default")
def hypot(ctx: Context, x: SSAValue, y: SSAValue) -> SSAValue:
    return ctx.apply("hypot", *alike(ctx, x, y))


@lowering("aten.copysign.Tensor", "aten.copysign.Scalar")
def copysign(ctx: Context, x: SSAValue, y: Operand) -> SSAValue:
    return ctx.apply("copysign", *alike(ctx, x, y))


@lowering("aten.logaddexp.default")
def logaddexp(ctx: Context, x: SSAValue, y: SSAValue) -> SSAValue:
    return ctx.apply("logaddexp", *alike(ctx, x, y))


@lowering("aten.xlogy.Tensor", "aten.xlogy.Scalar_Other", "aten.xlogy.Scalar_Self")
def xlogy(ctx: Context, x: Operand, y: Operand) -> SSAValue:
    return ctx.apply("xlogy", *alike(ctx, x, y))


@lowering("aten.lerp.Tensor", "aten.lerp.Scalar")
def lerp(ctx: Context, start: SSAValue, end: SSAValue, weight: Operand) -> SSAValue:
    return ctx.apply("lerp", *alike(ctx, start, end, weight))


@lowering("aten.addcmul.default")
def addcmul(ctx: Context, x: SSAValue, a: SSAValue, b: SSAValue, value: Number = 1) -> SSAValue:
    return ctx.apply("addcmul", *numbers(ctx, x, a, b), value=value)


@lowering("aten.addcdiv.default")
def addcdiv(ctx: Context, x: SSAValue, a: SSAValue, b: SSAValue, value: Number = 1) -> SSAValue:
    return ctx.apply("addcdiv", *alike(ctx, x, a, b), value=value)
