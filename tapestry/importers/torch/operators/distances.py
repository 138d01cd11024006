"""Distances between vectors, by the norm of their difference."""

from __future__ import annotations

from math import inf

import numpy as np
from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import shaped
from tapestry.importers.torch.registry import Context, Number, lowering


@lowering("aten._cdist_forward.default")
def cdist(
    ctx: Context, x: SSAValue, y: SSAValue, p: Number, compute_mode: int | None = None
) -> SSAValue:
    """Each of the rows of x from each of those of y."""
    return _norm(ctx, _differences(ctx, x, y), p)


@lowering("aten._pdist_forward.default")
def pdist(ctx: Context, x: SSAValue, p: Number = 2) -> SSAValue:
    """Each row from those that follow it."""
    first, second = np.triu_indices(ctx.shape(x)[0], 1)
    left = ctx.apply("take", x, ctx.constant(first, "i64"), axis=0)
    right = ctx.apply("take", x, ctx.constant(second, "i64"), axis=0)
    return _norm(ctx, ctx.apply("sub", left, right), p)


@lowering("aten._cdist_backward.default")
def cdist_backward(
    ctx: Context, gradient: SSAValue, x: SSAValue, y: SSAValue, p: Number, distances: SSAValue
) -> SSAValue:
    """The gradient to the rows of x."""
    difference = _differences(ctx, x, y)
    sizes = [*ctx.shape(distances), 1]
    share = _slope(ctx, difference, shaped(ctx, distances, sizes), shaped(ctx, gradient, sizes), p)
    # Rows that were stretched along batches are one row.
    stretched = range(len(ctx.shape(share)) - 1 - len(ctx.result.shape))
    return ctx.apply("sum", share, axis=[*stretched, -2])


@lowering("aten._pdist_backward.default")
def pdist_backward(
    ctx: Context, gradient: SSAValue, x: SSAValue, p: Number, distances: SSAValue
) -> SSAValue:
    """The gradient to each row: from the pairs that it comes first in, and against the others."""
    first, second = (ctx.constant(rows, "i64") for rows in np.triu_indices(ctx.shape(x)[0], 1))
    left, right = (ctx.apply("take", x, rows, axis=0) for rows in (first, second))
    sizes = [*ctx.shape(distances), 1]
    difference = ctx.apply("sub", left, right)
    share = _slope(ctx, difference, shaped(ctx, distances, sizes), shaped(ctx, gradient, sizes), p)
    none = ctx.constant(0, ctx.dtype(x), ctx.shape(x))
    ahead = ctx.apply("index_add", none, first, share, axis=0)
    return ctx.apply("index_add", ahead, second, ctx.apply("neg", share), axis=0)


def _differences(ctx: Context, x: SSAValue, y: SSAValue) -> SSAValue:
    """Each of the rows of x less each of those of y."""
    rows, columns = ctx.shape(x), ctx.shape(y)
    left = shaped(ctx, x, [*rows[:-1], 1, rows[-1]])
    right = shaped(ctx, y, [*columns[:-2], 1, *columns[-2:]])
    return ctx.apply("sub", left, right)


def _slope(
    ctx: Context, difference: SSAValue, norm: SSAValue, gradient: SSAValue, p: Number
) -> SSAValue:
    """The gradient of a norm to its vector, times `gradient`; zero where the norm is."""
    zero = ctx.scalar(0, difference)
    sign, size = ctx.apply("sign", difference), ctx.apply("abs", difference)
    if p == 0:
        return ctx.apply("mul", difference, zero)
    if p == inf:
        slope = ctx.apply("where", ctx.apply("eq", size, norm), sign, zero)
    elif p == 1:
        slope = sign
    else:
        share = ctx.apply("pow_scalar", ctx.apply("div", size, norm), exponent=p - 1)
        slope = ctx.apply("mul", sign, share)
    used = ctx.apply("where", ctx.apply("eq", norm, zero), zero, slope)
    return ctx.apply("mul", gradient, used)


def _norm(ctx: Context, difference: SSAValue, p: Number) -> SSAValue:
    if p == inf:
        return ctx.apply("vector_norm_max", difference, axis=[-1])
    return ctx.apply("vector_norm", difference, axis=[-1], ord=p)
