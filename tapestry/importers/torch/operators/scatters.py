"""Cells written, or folded, at places of their own along an axis.

Only the corner of the tensor that the indices reach is rewritten; the rest stays as it is.
"""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import corner, lifted, shaped
from tapestry.importers.torch.operators._inside import inside
from tapestry.importers.torch.registry import Context, Operand, lowering


@lowering("aten.scatter.src")
def scatter(ctx: Context, x: SSAValue, dim: int, index: SSAValue, src: SSAValue) -> SSAValue:
    return _scattered(ctx, "scatter", x, dim, index, src)


@lowering("aten.scatter.value")
def scatter_value(ctx: Context, x: SSAValue, dim: int, index: SSAValue, value: Operand) -> SSAValue:
    return _scattered(ctx, "scatter", x, dim, index, _constant_like(ctx, value, x, index))


@lowering("aten.scatter_add.default")
def scatter_add(ctx: Context, x: SSAValue, dim: int, index: SSAValue, src: SSAValue) -> SSAValue:
    return scatter_reduce(ctx, x, dim, index, src, "sum")


@lowering("aten.scatter.reduce")
def scatter_with(
    ctx: Context, x: SSAValue, dim: int, index: SSAValue, src: SSAValue, reduce: str
) -> SSAValue:
    return scatter_reduce(ctx, x, dim, index, src, {"add": "sum", "multiply": "prod"}[reduce])


@lowering("aten.scatter.value_reduce")
def scatter_value_with(
    ctx: Context, x: SSAValue, dim: int, index: SSAValue, value: Operand, reduce: str
) -> SSAValue:
    return scatter_with(ctx, x, dim, index, _constant_like(ctx, value, x, index), reduce)


@lowering("aten.scatter_reduce.two")
def scatter_reduce(
    ctx: Context,
    x: SSAValue,
    dim: int,
    index: SSAValue,
    src: SSAValue,
    reduce: str,
    include_self: bool = True,
) -> SSAValue:
    operator = {
        "sum": "scatter_add", "mean": "scatter_add", "prod": "scatter_mul",
        "amax": "scatter_max", "amin": "scatter_min",
    }[reduce]  # fmt: skip
    if ctx.dtype(x) == "i1":
        operator = "scatter_min" if reduce in ("prod", "amin") else "scatter_max"
        wide, other = ctx.cast(x, "ui8"), ctx.cast(src, "ui8")
        return scatter_reduce(ctx, wide, dim, index, other, _OF_TRUTH[operator], include_self)
    start = x if include_self else _constant(ctx, _neutral(ctx, reduce, x), x)
    made = _scattered(ctx, operator, start, dim, index, ctx.cast(src, ctx.dtype(x)))
    if include_self and reduce != "mean":
        return made
    none = ctx.cast(_constant(ctx, 0, x), "i64")
    count = _scattered(ctx, "scatter_add", none, dim, index, _constant_like(ctx, 1, none, index))
    if reduce == "mean":
        least = ctx.scalar(1, "i64")
        cells = ctx.apply("add" if include_self else "maximum", count, least)
        whole = "floor_divide" if ctx.dtype(x).strip("u")[0] == "i" else "div"
        made = ctx.cast(ctx.apply(whole, made, ctx.cast(cells, ctx.dtype(x))), ctx.dtype(x))
    if include_self:
        return made
    return ctx.apply("where", ctx.apply("eq", count, ctx.scalar(0, "i64")), x, made)


_OF_TRUTH = {"scatter_min": "amin", "scatter_max": "amax"}


@lowering("aten.index_reduce.default")
def index_reduce(
    ctx: Context,
    x: SSAValue,
    dim: int,
    index: SSAValue,
    source: SSAValue,
    reduce: str,
    include_self: bool = True,
) -> SSAValue:
    axis, src = ctx.axis(dim, x), lifted(ctx, source)
    beside = [1] * len(ctx.shape(src))
    beside[axis] = ctx.shape(src)[axis]
    along = ctx.apply("broadcast_to", shaped(ctx, index, beside), shape=list(ctx.shape(src)))
    return scatter_reduce(ctx, x, axis, along, src, reduce, include_self)


def _constant(ctx: Context, value: float, x: SSAValue) -> SSAValue:
    return ctx.constant(value, ctx.dtype(x), ctx.shape(x))


def _constant_like(ctx: Context, value: Operand, x: SSAValue, index: SSAValue) -> SSAValue:
    (cell,) = ctx.operands(value, dtype=ctx.dtype(x))
    return ctx.apply("broadcast_to", ctx.cast(cell, ctx.dtype(x)), shape=list(ctx.shape(index)))


def _scattered(
    ctx: Context, operator: str, x: SSAValue, dim: int, index: SSAValue, src: SSAValue
) -> SSAValue:
    """Scatter into the part of `x` that the index reaches, from what it covers of `src`."""
    if not prod(ctx.shape(index)):
        return x
    target, places, source = lifted(ctx, x), lifted(ctx, index), lifted(ctx, src)
    axis = ctx.axis(dim, target)
    sizes = ctx.shape(places)
    source = corner(ctx, source, sizes)
    reached = [
        full if at == axis else size
        for at, (full, size) in enumerate(zip(ctx.shape(target), sizes, strict=True))
    ]
    places = inside(ctx, places, ctx.shape(target)[axis])
    written = ctx.apply(operator, corner(ctx, target, reached), places, source, axis=axis)
    return shaped(ctx, _with_corner(ctx, target, written), ctx.shape(x))


def _with_corner(ctx: Context, x: SSAValue, part: SSAValue) -> SSAValue:
    """The tensor with its first cells along each axis replaced by those of `part`."""
    axis = next(
        (a for a, (n, m) in enumerate(zip(ctx.shape(x), ctx.shape(part), strict=True)) if n != m),
        None,
    )
    if axis is None:
        return part
    size = ctx.shape(part)[axis]
    inner = ctx.apply("slice", x, axis=axis, stop=size)
    return ctx.apply("slice_scatter", x, _with_corner(ctx, inner, part), axis=axis, stop=size)


def _neutral(ctx: Context, reduce: str, x: SSAValue) -> float:
    """What a fold starts with where the tensor itself does not count."""
    if reduce in ("amax", "amin"):
        kind = ctx.dtype(x)
        low = reduce == "amax"
        if kind.strip("b")[0] == "f":
            return -np.inf if low else np.inf
        bits = np.iinfo(("uint" if kind[0] == "u" else "int") + kind.lstrip("ui"))
        return bits.min if low else bits.max
    return 1 if reduce == "prod" else 0
