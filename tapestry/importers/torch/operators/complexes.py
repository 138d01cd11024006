"""What operators of PyTorch do with complex numbers, by their parts."""

from __future__ import annotations

from typing import Any, cast

import torch
from xdsl.ir import Attribute, SSAValue

from tapestry.importers.torch.complexes import Complex, by_parts, complex_lowering, parts_of
from tapestry.importers.torch.dtypes import name_of, torch_dtype
from tapestry.importers.torch.registry import Context, Number

by_parts(
    "aten.view.default", "aten._unsafe_view.default", "aten.reshape.default",
    "aten.unsqueeze.default", "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims",
    "aten._reshape_copy.default", "aten.clone.default", "aten.alias.default",
    "aten.detach.default", "aten.lift_fresh_copy.default", "aten.expand.default",
    "aten.permute.default", "aten.t.default", "aten.transpose.int", "aten.select.int",
    "aten.slice.Tensor", "aten.diagonal.default", "aten.unfold.default", "aten.flip.default",
    "aten.roll.default", "aten.repeat.default", "aten.tril.default", "aten.triu.default",
    "aten.split.Tensor", "aten.split_with_sizes.default", "aten.unbind.int",
    "aten.index.Tensor", "aten.index_select.default", "aten.gather.default",
    "aten.embedding.default", "aten.neg.default", "aten.sum.default", "aten.sum.dim_IntList",
    "aten.mean.default", "aten.mean.dim", "aten.cumsum.default", "aten.trace.default",
    "aten.as_strided.default", "aten.as_strided_copy.default",
)  # fmt: skip
by_parts("aten.cat.default", "aten.stack.default")
by_parts(
    "aten.add.Tensor", "aten.add.Scalar", "aten.sub.Tensor", "aten.sub.Scalar",
    "aten.copy.default", "aten.slice_scatter.default", "aten.select_scatter.default",
    "aten.fill.Scalar", "aten.fill.Tensor", "aten.full_like.default",
    "aten.as_strided_scatter.default", data=(0, 1),
)  # fmt: skip
by_parts(
    "aten.constant_pad_nd.default", "aten.index_put.default", "aten.masked_fill.Scalar",
    data=(0, 2),
)  # fmt: skip
by_parts("aten.where.self", data=(1, 2))
by_parts("aten.full.default", data=(1,))
by_parts("aten.scalar_tensor.default", "aten.zeros_like.default", "aten.zeros.default")


@complex_lowering("aten.view_as_complex.default")
def view_as_complex(ctx: Context, x: SSAValue) -> Complex:
    return Complex(*(ctx.apply("select", x, index=part, axis=-1) for part in (0, 1)))


@complex_lowering("aten.view_as_real.default")
def view_as_real(ctx: Context, x: Complex) -> SSAValue:
    return ctx.apply("stack", [x.real, x.imaginary], axis=-1)


@complex_lowering("aten.complex.default")
def complex_(ctx: Context, real: SSAValue, imaginary: SSAValue) -> Complex:
    shape = list(ctx.result.shape)
    return Complex(*(ctx.apply("broadcast_to", part, shape=shape) for part in (real, imaginary)))


@complex_lowering("aten.polar.default")
def polar(ctx: Context, size: SSAValue, angle: SSAValue) -> Complex:
    return Complex(
        *(ctx.apply("mul", size, ctx.apply(function, angle)) for function in ("cos", "sin"))
    )


@complex_lowering("aten._to_copy.default")
def to_copy(ctx: Context, x: Any, **ignored: object) -> Any:
    # The first result's kind is that of its parts: whether it is complex, its dtype says.
    return parts_of(ctx, x) if str(ignored.get("dtype")).startswith("complex") else x.real


@complex_lowering("aten._conj.default", "aten.conj_physical.default", "aten._conj_physical.default")
def conj(ctx: Context, x: Complex) -> Complex:
    return Complex(x.real, ctx.apply("neg", x.imaginary))


@complex_lowering("aten.mul.Tensor", "aten.mul.Scalar")
def mul(ctx: Context, x: Any, y: Any) -> Complex:
    return _product(ctx, "mul", _operand(ctx, x), _operand(ctx, y))


@complex_lowering("aten.mm.default", "aten.bmm.default", "aten.mv.default", "aten.dot.default")
def matrices(ctx: Context, x: Complex, y: Complex) -> Complex:
    return _product(ctx, ctx.operator.split(".")[1], x, y)


@complex_lowering("aten.div.Tensor", "aten.div.Scalar")
def div(ctx: Context, x: Any, y: Any) -> Complex:
    over = _operand(ctx, y)
    if not isinstance(over, Complex):
        top = parts_of(ctx, x)
        return Complex(*(ctx.apply("div", part, over) for part in (top.real, top.imaginary)))
    return _product(ctx, "mul", _operand(ctx, x), _inverse(ctx, over))


@complex_lowering("aten.reciprocal.default")
def reciprocal(ctx: Context, x: Complex) -> Complex:
    return _inverse(ctx, x)


@complex_lowering("aten.abs.default")
def abs_(ctx: Context, x: Complex) -> SSAValue:
    return ctx.apply("hypot", x.real, x.imaginary)


@complex_lowering("aten.angle.default")
def angle(ctx: Context, x: Complex) -> SSAValue:
    return ctx.apply("atan2", x.imaginary, x.real)


@complex_lowering("aten.sgn.default")
def sgn(ctx: Context, x: Complex) -> Complex:
    size = abs_(ctx, x)
    zero = ctx.scalar(0, size)
    none = ctx.apply("eq", size, zero)
    parts = (ctx.apply("div", part, size) for part in (x.real, x.imaginary))
    return Complex(*(ctx.apply("where", none, zero, part) for part in parts))


@complex_lowering("aten.exp.default")
def exp(ctx: Context, x: Complex) -> Complex:
    return polar(ctx, ctx.apply("exp", x.real), x.imaginary)


@complex_lowering("aten.eq.Tensor", "aten.ne.Tensor", "aten.eq.Scalar", "aten.ne.Scalar")
def compared(ctx: Context, x: Any, y: Any) -> SSAValue:
    metakernel = ctx.operator.split(".")[1]
    dtype = name_of(torch.result_type(_like(ctx, x), _like(ctx, y)).to_real())
    one, other = (_in_parts(ctx, value, dtype) for value in (x, y))
    real = ctx.apply(metakernel, one.real, other.real)
    imaginary = ctx.apply(metakernel, one.imaginary, other.imaginary)
    return ctx.apply("logical_and" if metakernel == "eq" else "logical_or", real, imaginary)


def _like(ctx: Context, value: Any) -> Any:
    """A tensor without cells, of the dtype and the rank of one; a number as it is."""
    if not isinstance(value, Complex | SSAValue):
        return value
    part = cast("SSAValue[Attribute]", value.real if isinstance(value, Complex) else value)
    dtype = torch_dtype(ctx.dtype(part))
    own = dtype.to_complex() if isinstance(value, Complex) else dtype
    return torch.empty((1,) * ctx.rank(part), dtype=own, device="meta")


def _in_parts(ctx: Context, value: Any, dtype: str) -> Complex:
    """A tensor or a number as a pair of a dtype."""
    if isinstance(value, Complex | SSAValue):
        pair = parts_of(ctx, value)
        return Complex(ctx.cast(pair.real, dtype), ctx.cast(pair.imaginary, dtype))
    number = complex(value)
    return Complex(*(ctx.scalar(part, dtype) for part in (number.real, number.imag)))


def _operand(ctx: Context, value: SSAValue | Complex | Number | complex) -> SSAValue | Complex:
    """A factor, in the dtype of the result's parts."""
    dtype = ctx.result.dtype
    match value:
        case Complex():
            return Complex(ctx.cast(value.real, dtype), ctx.cast(value.imaginary, dtype))
        case SSAValue():
            return ctx.cast(value, dtype)
        case complex():
            return Complex(ctx.scalar(value.real, dtype), ctx.scalar(value.imag, dtype))
        case _:
            return ctx.scalar(value, dtype)


def _product(ctx: Context, by: str, x: SSAValue | Complex, y: SSAValue | Complex) -> Complex:
    """(a + bi)(c + di), where a factor without an imaginary part costs nothing more."""
    match x, y:
        case Complex(), Complex():
            real, other = ctx.apply(by, x.real, y.real), ctx.apply(by, x.imaginary, y.imaginary)
            cross, back = ctx.apply(by, x.real, y.imaginary), ctx.apply(by, x.imaginary, y.real)
            return Complex(ctx.apply("sub", real, other), ctx.apply("add", cross, back))
        case Complex(), _:
            return Complex(ctx.apply(by, x.real, y), ctx.apply(by, x.imaginary, y))
        case _, Complex():
            return Complex(ctx.apply(by, x, y.real), ctx.apply(by, x, y.imaginary))
        case _:
            return parts_of(ctx, ctx.apply(by, x, y))


def _inverse(ctx: Context, x: Complex) -> Complex:
    """1 / x, by way of the greater part, so that nothing overflows on the way."""
    size = ctx.apply("maximum", *(ctx.apply("abs", part) for part in (x.real, x.imaginary)))
    a, b = (ctx.apply("div", part, size) for part in (x.real, x.imaginary))
    total = ctx.apply("add", ctx.apply("mul", a, a), ctx.apply("mul", b, b))
    scale = ctx.apply("mul", total, size)
    return Complex(ctx.apply("div", a, scale), ctx.apply("neg", ctx.apply("div", b, scale)))
