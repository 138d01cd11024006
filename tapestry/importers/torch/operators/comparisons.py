"""Comparisons, logic and bits, of tensors and Python scalars."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import counted, register_unary
from tapestry.importers.torch.registry import Context, Operand, lowering

register_unary(
    {
        "logical_not": "logical_not",
        "bitwise_not": "bitwise_not",
        "isnan": "isnan",
        "isinf": "isinf",
        "isfinite": "isfinite",
    }
)


_FORMS = ("Tensor", "Scalar", "Scalar_Tensor")


def _register_comparison(name: str) -> None:
    def compare(ctx: Context, x: Operand, y: Operand) -> SSAValue:
        a, b = (counted(ctx, value) for value in ctx.operands(x, y))
        return ctx.apply(name, a, b)

    lowering(f"aten.{name}.Tensor", f"aten.{name}.Scalar")(compare)


def _register_logic(name: str) -> None:
    def logic(ctx: Context, x: SSAValue, y: SSAValue) -> SSAValue:
        return ctx.apply(name, x, y)

    lowering(f"aten.{name}.default")(logic)


def _register_bits(operators: list[str], metakernel: str) -> None:
    def bits(ctx: Context, x: Operand, y: Operand) -> SSAValue:
        return ctx.apply(metakernel, *ctx.operands(x, y, dtype=ctx.result.dtype))

    lowering(*operators)(bits)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _register_comparison(_name)

for _name in ("logical_and", "logical_or", "logical_xor"):
    _register_logic(_name)

for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    _register_bits(
        [f"aten.{_name}.{form}" for form in ("Tensor", "Scalar", "Scalar_Tensor")], _name
    )

for _side in ("left", "right"):
    _register_bits(
        [
            *(f"aten.bitwise_{_side}_shift.{form}" for form in ("Tensor", "Tensor_Scalar")),
            f"aten.bitwise_{_side}_shift.Scalar_Tensor",
            *(f"aten.__{_side[0]}shift__.{form}" for form in ("Tensor", "Scalar")),
        ],
        f"shift_{_side}",
    )


@lowering("aten.signbit.default")
def signbit(ctx: Context, x: SSAValue) -> SSAValue:
    if not ctx.dtype(x).startswith(("f", "bf")):
        return ctx.apply("lt", x, ctx.scalar(0, x))
    # The sign of zero and of NaN too: it is what copysign takes.
    signed = ctx.apply("copysign", ctx.scalar(1, x), x)
    return ctx.apply("lt", signed, ctx.scalar(0, x))
