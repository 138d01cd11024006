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
    rows, columns = ctx.shape(x), ctx.shape(y)
    left = shaped(ctx, x, [*rows[:-1], 1, rows[-1]])
    right = shaped(ctx, y, [*columns[:-2], 1, *columns[-2:]])
    return _norm(ctx, ctx.apply("sub", left, right), p)


@lowering("aten._pdist_forward.default")
def pdist(ctx: Context, x: SSAValue, p: Number = 2) -> SSAValue:
    """Each row from those that follow it."""
    first, second = np.triu_indices(ctx.shape(x)[0], 1)
    left = ctx.apply("take", x, ctx.constant(first, "i64"), axis=0)
    right = ctx.apply("take", x, ctx.constant(second, "i64"), axis=0)
    return _norm(ctx, ctx.apply("sub", left, right), p)


def _norm(ctx: Context, difference: SSAValue, p: Number) -> SSAValue:
    if p == inf:
        return ctx.apply("vector_norm_max", difference, axis=[-1])
    return ctx.apply("vector_norm", difference, axis=[-1], ord=p)
