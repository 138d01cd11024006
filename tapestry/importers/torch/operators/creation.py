"""Tensors made of nothing but parameters."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tapestry.importers.torch.registry import Context, Number, lowering


def _filled(ctx: Context, value: Number) -> SSAValue:
    kind = ctx.result
    return ctx.constant(value, kind.dtype, kind.shape)


@lowering("aten.full.default", "aten.full_like.default", "aten.new_full.default")
def full(ctx: Context, like: object, value: Number, *rest: Number, **ignored: object) -> SSAValue:
    return _filled(ctx, rest[-1] if rest else value)


@lowering("aten.scalar_tensor.default")
def scalar_tensor(ctx: Context, value: Number, **ignored: object) -> SSAValue:
    return _filled(ctx, value)


@lowering(
    "aten._efficientzerotensor.default",
    "aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default",
    "aten.empty.memory_format", "aten.empty_like.default", "aten.new_empty.default",
    "aten.empty_strided.default", "aten.new_empty_strided.default", "aten.empty_permuted.default",
)  # fmt: skip
def zeros(ctx: Context, *how: object, **ignored: object) -> SSAValue:
    """Also what is not initialized: no program may depend on its cells."""
    return _filled(ctx, 0)


@lowering("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def ones(ctx: Context, *how: object, **ignored: object) -> SSAValue:
    return _filled(ctx, 1)


@lowering("aten.arange.start_step", "aten.arange.start", "aten.arange.default")
def arange(
    ctx: Context, start: Number, end: Number | None = None, step: Number = 1, **ignored: object
) -> SSAValue:
    low = 0 if end is None else start
    (count,) = ctx.result.shape
    if isinstance(low, int) and isinstance(step, int):
        stop = low + step * count
        return ctx.apply("arange", start=low, stop=stop, step=step, dtype=ctx.result.dtype)
    places = ctx.apply("arange", stop=count, dtype="f64")
    return ctx.apply("scale", places, factor=step, shift=low)


@lowering("aten.linspace.default")
def linspace(ctx: Context, start: Number, end: Number, steps: int, **ignored: object) -> SSAValue:
    return ctx.apply("linspace", start=start, stop=end, count=steps, dtype=ctx.result.dtype)


@lowering("aten.eye.default", "aten.eye.m")
def eye(ctx: Context, n: int, m: int | None = None, **ignored: object) -> SSAValue:
    return ctx.apply("eye", rows=n, cols=n if m is None else m, dtype=ctx.result.dtype)


def _triangle(ctx: Context, rows: int, cols: int, offset: int, *, lower: bool) -> SSAValue:
    """Where the cells of a triangle are: row numbers above column numbers, and which."""
    places = [
        (i, j)
        for i in range(rows)
        for j in range(cols)
        if (j - i <= offset if lower else j - i >= offset)
    ]
    table = [[i for i, _ in places], [j for _, j in places]]
    return ctx.constant(table if places else [], ctx.result.dtype, ctx.result.shape)


@lowering("aten.tril_indices.default")
def tril_indices(ctx: Context, row: int, col: int, offset: int = 0, **ignored: object) -> SSAValue:
    return _triangle(ctx, row, col, offset, lower=True)


@lowering("aten.triu_indices.default")
def triu_indices(ctx: Context, row: int, col: int, offset: int = 0, **ignored: object) -> SSAValue:
    return _triangle(ctx, row, col, offset, lower=False)
