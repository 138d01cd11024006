"""Choices among cells: the larger, the smaller, the nearest, one or the other; and casts."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import alike, counted
from tapestry.importers.torch.registry import Context, Number, Operand, lowering


def _register_pair(operator: str) -> None:
    def pair(ctx: Context, x: SSAValue, y: SSAValue) -> SSAValue:
        return ctx.apply(operator, *(counted(ctx, value) for value in alike(ctx, x, y)))

    lowering(f"aten.{operator}.default")(pair)


for _operator in ("maximum", "minimum", "fmax", "fmin"):
    _register_pair(_operator)


@lowering("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(ctx: Context, condition: SSAValue, x: Operand, y: Operand) -> SSAValue:
    return ctx.apply("where", ctx.cast(condition, "i1"), *alike(ctx, x, y))


@lowering("aten.clamp.default", "aten.clamp.Tensor")
def clamp(
    ctx: Context,
    x: SSAValue,
    min: Operand | None = None,  # noqa: A002 - the names that the operator has
    max: Operand | None = None,  # noqa: A002
) -> SSAValue:
    (result,) = alike(ctx, x)
    for operator, bound in (("maximum", min), ("minimum", max)):
        if bound is not None:
            result = ctx.apply(operator, *(counted(ctx, v) for v in alike(ctx, result, bound)))
    return result


@lowering("aten.clamp_min.default", "aten.clamp_min.Tensor")
def clamp_min(ctx: Context, x: SSAValue, bound: Operand) -> SSAValue:
    return clamp(ctx, x, bound)


@lowering("aten.clamp_max.default", "aten.clamp_max.Tensor")
def clamp_max(ctx: Context, x: SSAValue, bound: Operand) -> SSAValue:
    return clamp(ctx, x, max=bound)


@lowering("aten._to_copy.default", "prims.convert_element_type.default", "aten.to.dtype")
def to_copy(
    ctx: Context, x: SSAValue, dtype: str | None = None, non_blocking: Number = False
) -> SSAValue:
    # The result is cast to the dtype that it has in PyTorch.
    return x


@lowering("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(ctx: Context, x: SSAValue, mask: SSAValue, value: Operand) -> SSAValue:
    return where(ctx, mask, value, x)
