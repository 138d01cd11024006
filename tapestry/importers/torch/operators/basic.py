"""Operators of a perceptron: products of matrices, sums, and activations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tapestry.importers.torch.registry import Context, Number, Operand, lowering


@lowering("aten.relu.default")
def relu(ctx: Context, x: SSAValue) -> SSAValue:
    return ctx.apply("relu", x)


@lowering("aten.add.Tensor", "aten.add.Scalar")
def add(ctx: Context, x: Operand, y: Operand, alpha: Number = 1) -> SSAValue:
    return ctx.apply("add", *ctx.operands(x, y), alpha=alpha)


@lowering("aten.mul.Tensor", "aten.mul.Scalar")
def mul(ctx: Context, x: Operand, y: Operand) -> SSAValue:
    return ctx.apply("mul", *ctx.operands(x, y))


@lowering("aten.mm.default")
def mm(ctx: Context, a: SSAValue, b: SSAValue) -> SSAValue:
    return ctx.apply("mm", a, b)


@lowering("aten.addmm.default")
def addmm(
    ctx: Context, x: SSAValue, a: SSAValue, b: SSAValue, beta: Number = 1, alpha: Number = 1
) -> SSAValue:
    return ctx.apply("addmm", x, a, b, beta=beta, alpha=alpha)


@lowering("aten.permute.default")
def permute(ctx: Context, x: SSAValue, dims: Sequence[int]) -> SSAValue:
    return ctx.apply("permute", x, dims=list(dims))
