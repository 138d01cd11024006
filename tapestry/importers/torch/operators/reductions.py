"""Folds and scans along axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import axes_of, counted, lifted, shaped
from tapestry.importers.torch.registry import Context, Number, Unsupported, lowering

Dims = Sequence[int] | int | None


@lowering("aten.sum.default", "aten.sum.dim_IntList")
def sum_(
    ctx: Context,
    x: SSAValue,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: str | None = None,
) -> SSAValue:
    return _fold(ctx, "sum", _as_result(ctx, x), dim, keepdim)


@lowering("aten.mean.default", "aten.mean.dim")
def mean(
    ctx: Context,
    x: SSAValue,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: str | None = None,
) -> SSAValue:
    return _fold(ctx, "mean", _as_result(ctx, x), dim, keepdim)


@lowering("aten.prod.default")
def prod_all(ctx: Context, x: SSAValue, dtype: str | None = None) -> SSAValue:
    return _fold(ctx, "prod", _as_result(ctx, x), None, False)


@lowering("aten.prod.dim_int")
def prod(
    ctx: Context, x: SSAValue, dim: int, keepdim: bool = False, dtype: str | None = None
) -> SSAValue:
    return _fold(ctx, "prod", _as_result(ctx, x), dim, keepdim)


@lowering("aten.any.default", "aten.any.dim", "aten.any.dims")
def any_(ctx: Context, x: SSAValue, dim: Dims = None, keepdim: bool = False) -> SSAValue:
    return _truth(ctx, "any", x, dim, keepdim)


@lowering("aten.all.default", "aten.all.dim", "aten.all.dims")
def all_(ctx: Context, x: SSAValue, dim: Dims = None, keepdim: bool = False) -> SSAValue:
    return _truth(ctx, "all", x, dim, keepdim)


@lowering("aten.amax.default", "aten.max.default")
def amax(ctx: Context, x: SSAValue, dim: Dims = None, keepdim: bool = False) -> SSAValue:
    return _fold(ctx, "max", counted(ctx, x), dim, keepdim)


@lowering("aten.amin.default", "aten.min.default")
def amin(ctx: Context, x: SSAValue, dim: Dims = None, keepdim: bool = False) -> SSAValue:
    return _fold(ctx, "min", counted(ctx, x), dim, keepdim)


@lowering("aten.max.dim")
def max_dim(ctx: Context, x: SSAValue, dim: int, keepdim: bool = False) -> Sequence[SSAValue]:
    return _with_index(ctx, "max_with_index", x, dim, keepdim)


@lowering("aten.min.dim")
def min_dim(ctx: Context, x: SSAValue, dim: int, keepdim: bool = False) -> Sequence[SSAValue]:
    return _with_index(ctx, "min_with_index", x, dim, keepdim)


@lowering("aten.argmax.default")
def argmax(ctx: Context, x: SSAValue, dim: int | None = None, keepdim: bool = False) -> SSAValue:
    return _place(ctx, "argmax", x, dim, keepdim)


@lowering("aten.argmin.default")
def argmin(ctx: Context, x: SSAValue, dim: int | None = None, keepdim: bool = False) -> SSAValue:
    return _place(ctx, "argmin", x, dim, keepdim)


@lowering("aten.var.correction", "aten.var.dim", "aten.var.default")
def var(
    ctx: Context,
    x: SSAValue,
    dim: Dims | bool = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: Number | None = None,
) -> SSAValue:
    return _spread(ctx, "var", x, dim, unbiased, keepdim, correction)[0]


@lowering("aten.std.correction", "aten.std.dim", "aten.std.default")
def std(
    ctx: Context,
    x: SSAValue,
    dim: Dims | bool = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: Number | None = None,
) -> SSAValue:
    return _spread(ctx, "std", x, dim, unbiased, keepdim, correction)[0]


@lowering("aten.var_mean.correction", "aten.var_mean.dim", "aten.var_mean.default")
def var_mean(
    ctx: Context,
    x: SSAValue,
    dim: Dims | bool = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: Number | None = None,
) -> Sequence[SSAValue]:
    return _spread(ctx, "var_mean", x, dim, unbiased, keepdim, correction)


@lowering("aten.logsumexp.default")
def logsumexp(ctx: Context, x: SSAValue, dim: Dims, keepdim: bool = False) -> SSAValue:
    return _fold(ctx, "logsumexp", _as_result(ctx, x), dim, keepdim)


@lowering("aten.count_nonzero.default", "aten.count_nonzero.dim_IntList")
def count_nonzero(ctx: Context, x: SSAValue, dim: Dims = None) -> SSAValue:
    return _fold(ctx, "count_nonzero", x, dim, False)


@lowering("aten.linalg_vector_norm.default")
def vector_norm(
    ctx: Context,
    x: SSAValue,
    ord: Number = 2,  # noqa: A002 - the operator's own name for it
    dim: Dims = None,
    keepdim: bool = False,
    dtype: str | None = None,
) -> SSAValue:
    cells = _as_result(ctx, x)
    if ord == inf:
        return _fold(ctx, "vector_norm_max", cells, dim, keepdim)
    if ord == -inf:
        return _fold(ctx, "min", ctx.apply("abs", cells), dim, keepdim)
    return _fold(ctx, "vector_norm", cells, dim, keepdim, ord=ord)


@lowering("aten.cumsum.default")
def cumsum(ctx: Context, x: SSAValue, dim: int, dtype: str | None = None) -> SSAValue:
    return _scan(ctx, "cumsum", _as_result(ctx, x), dim)[0]


@lowering("aten.cumprod.default")
def cumprod(ctx: Context, x: SSAValue, dim: int, dtype: str | None = None) -> SSAValue:
    return _scan(ctx, "cumprod", _as_result(ctx, x), dim)[0]


@lowering("aten.logcumsumexp.default")
def logcumsumexp(ctx: Context, x: SSAValue, dim: int) -> SSAValue:
    return _scan(ctx, "logcumsumexp", x, dim)[0]


@lowering("aten.cummax.default")
def cummax(ctx: Context, x: SSAValue, dim: int) -> Sequence[SSAValue]:
    return _scan(ctx, "cummax", counted(ctx, x), dim)


@lowering("aten.cummin.default")
def cummin(ctx: Context, x: SSAValue, dim: int) -> Sequence[SSAValue]:
    return _scan(ctx, "cummin", counted(ctx, x), dim)


def _as_result(ctx: Context, x: SSAValue) -> SSAValue:
    """PyTorch folds in the dtype of the result: integers are summed as i64."""
    return ctx.cast(x, ctx.result.dtype)


def _fold(
    ctx: Context, metakernel: str, x: SSAValue, dim: Dims, keepdim: bool, **parameters: object
) -> SSAValue:
    axes = axes_of(ctx, x, dim)
    keep = bool(keepdim) and bool(ctx.rank(x))
    return ctx.apply(metakernel, x, axis=axes, keepdim=keep, **parameters)


def _truth(ctx: Context, metakernel: str, x: SSAValue, dim: Dims, keepdim: bool) -> SSAValue:
    # Unlike sums, `any` and `all` along no axis fold nothing.
    if dim is not None and not isinstance(dim, int) and not dim:
        return ctx.cast(x, "i1")
    return _fold(ctx, metakernel, x, dim, keepdim)


def _with_index(
    ctx: Context, metakernel: str, x: SSAValue, dim: int, keepdim: bool
) -> Sequence[SSAValue]:
    cells = lifted(ctx, counted(ctx, x))
    found = ctx.apply_all(metakernel, cells, axis=dim, keepdim=bool(keepdim))
    return [shaped(ctx, result, ctx.result.shape) for result in found]


def _place(ctx: Context, metakernel: str, x: SSAValue, dim: int | None, keepdim: bool) -> SSAValue:
    cells = lifted(ctx, counted(ctx, x))
    if dim is None:
        cells = shaped(ctx, cells, [-1]) if ctx.rank(cells) > 1 else cells
    place = ctx.apply(metakernel, cells, axis=dim or 0, keepdim=bool(keepdim))
    return shaped(ctx, place, ctx.result.shape)


def _spread(
    ctx: Context,
    metakernel: str,
    x: SSAValue,
    dim: Dims | bool,
    unbiased: bool,
    keepdim: bool,
    correction: Number | None,
) -> Sequence[SSAValue]:
    if isinstance(dim, bool):  # var.default(x, unbiased)
        dim, unbiased = None, dim
    if ctx.dtype(x).startswith("complex"):
        raise Unsupported("the variance of complex numbers")
    taken = int(unbiased) if correction is None else correction
    return ctx.apply_all(
        metakernel,
        x,
        axis=axes_of(ctx, x, dim),
        keepdim=bool(keepdim) and bool(ctx.rank(x)),
        correction=taken,
    )


def _scan(ctx: Context, metakernel: str, x: SSAValue, dim: int) -> Sequence[SSAValue]:
    made = ctx.apply_all(metakernel, lifted(ctx, x), axis=dim)
    return [shaped(ctx, result, ctx.result.shape) for result in made]
