"""Sums of products."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import numbers
from tapestry.importers.torch.registry import Context, Number, lowering


def _register_product(operator: str, metakernel: str) -> None:
    def product(ctx: Context, a: SSAValue, b: SSAValue) -> SSAValue:
        return ctx.apply(metakernel, *numbers(ctx, a, b))

    lowering(f"aten.{operator}.default")(product)


for _name in ("mm", "bmm", "mv", "dot", "matmul"):
    _register_product(_name, _name)
_register_product("vdot", "dot")
_register_product("outer", "outer")


def _register_added(operator: str) -> None:
    def added(
        ctx: Context, x: SSAValue, a: SSAValue, b: SSAValue, beta: Number = 1, alpha: Number = 1
    ) -> SSAValue:
        factors = {"beta": _factor(ctx, beta), "alpha": _factor(ctx, alpha)}
        return ctx.apply(operator, *numbers(ctx, x, a, b), **factors)

    lowering(f"aten.{operator}.default")(added)


for _name in ("addmm", "baddbmm", "addmv"):
    _register_added(_name)


@lowering("aten.addbmm.default")
def addbmm(
    ctx: Context, x: SSAValue, a: SSAValue, b: SSAValue, beta: Number = 1, alpha: Number = 1
) -> SSAValue:
    first, left, right = numbers(ctx, x, a, b)
    total = ctx.apply("einsum", [left, right], equation="bik,bkj->ij")
    return _added(ctx, first, total, beta, alpha)


@lowering("aten.addr.default")
def addr(
    ctx: Context, x: SSAValue, a: SSAValue, b: SSAValue, beta: Number = 1, alpha: Number = 1
) -> SSAValue:
    first, left, right = numbers(ctx, x, a, b)
    return _added(ctx, first, ctx.apply("outer", left, right), beta, alpha)


@lowering("aten.linear.default")
def linear(ctx: Context, x: SSAValue, weight: SSAValue, bias: SSAValue | None = None) -> SSAValue:
    turned = ctx.apply("permute", weight, dims=[1, 0])
    return ctx.apply("linear", x, turned, *([] if bias is None else [bias]))


@lowering("aten.trace.default")
def trace(ctx: Context, x: SSAValue) -> SSAValue:
    return ctx.apply("trace", ctx.cast(x, ctx.result.dtype))


@lowering("aten._trilinear.default")
def trilinear(
    ctx: Context,
    a: SSAValue,
    b: SSAValue,
    c: SSAValue,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> SSAValue:
    """The sum of products of three tensors, each without some of the axes of the product."""
    rank = ctx.rank(a) + len(expand1)
    letters = "abcdefghijklmnopqrstuvwxyz"[:rank]
    given = [
        "".join(letter for axis, letter in enumerate(letters) if axis not in absent)
        for absent in (expand1, expand2, expand3)
    ]
    kept = "".join(letter for axis, letter in enumerate(letters) if axis not in sumdim)
    return ctx.apply("einsum", numbers(ctx, a, b, c), equation=f"{','.join(given)}->{kept}")


def _added(ctx: Context, x: SSAValue, product: SSAValue, beta: Number, alpha: Number) -> SSAValue:
    """beta x + alpha product; with beta 0, x is not read."""
    scaled = ctx.apply("scale", product, factor=_factor(ctx, alpha))
    if beta == 0:
        return scaled
    return ctx.apply("add", scaled, x, alpha=_factor(ctx, beta))


def _factor(ctx: Context, factor: Number) -> Number:
    """Beside integers PyTorch cuts a factor's fraction off."""
    return factor if ctx.result.dtype.startswith(("f", "bf")) else int(factor)
