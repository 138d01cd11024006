"""Random tensors: from a seed that is drawn anew for each run, and the place of each cell."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tapestry.importers.torch.registry import Context, Lowered, Number, Unsupported, lowering

_EXACT = 1 << 24
"""How many uniform numbers there are: more integers than that cannot be told apart."""


@lowering("aten.rand.default", "aten.rand_like.default")
def rand(ctx: Context, like: object, **ignored: object) -> SSAValue:
    return _uniform(ctx)


@lowering("aten.randn.default", "aten.randn_like.default")
def randn(ctx: Context, like: object, **ignored: object) -> SSAValue:
    return ctx.apply("normal", ctx.seed(), shape=list(ctx.result.shape))


@lowering("aten.normal_functional.default")
def normal(ctx: Context, like: object, mean: Number = 0, std: Number = 1) -> SSAValue:
    return ctx.apply("scale", randn(ctx, like), factor=std, shift=mean)


@lowering("prims.uniform.default")
def uniform(ctx: Context, shape: object, low: Number, high: Number, **ignored: object) -> SSAValue:
    return ctx.apply("scale", _uniform(ctx), factor=high - low, shift=low)


@lowering("prims.normal.default")
def normal_numbers(
    ctx: Context, shape: object, mean: Number, std: Number, **ignored: object
) -> SSAValue:
    return normal(ctx, shape, mean, std)


@lowering("aten.bernoulli.p")
def bernoulli(ctx: Context, x: SSAValue, p: Number = 0.5) -> SSAValue:
    return ctx.apply("bernoulli", ctx.seed(), p=p, shape=list(ctx.result.shape))


@lowering("aten.native_dropout.default")
def dropout(ctx: Context, x: SSAValue, p: Number, train: bool | None = True) -> Lowered:
    if train is False or p == 0:
        return [x, ctx.constant(1, "i1", ctx.shape(x))]
    if p == 1:
        return [ctx.constant(0, kind.dtype, kind.shape) for kind in ctx.results if kind]
    return ctx.apply_all("native_dropout", x, ctx.seed(), p=p)


@lowering("aten.randint.default", "aten.randint_like.default")
def randint(ctx: Context, *arguments: object, **ignored: object) -> SSAValue:
    """`randint(high, size)`, and `randint_like(x, high)`."""
    return _integers(ctx, 0, _integer(ctx, arguments[1 if "like" in ctx.operator else 0]))


@lowering("aten.randint.low", "aten.randint_like.low_dtype")
def randint_from(ctx: Context, *arguments: object, **ignored: object) -> SSAValue:
    """`randint(low, high, size)`, and `randint_like(x, low, high)`."""
    low, high = arguments[1:3] if "like" in ctx.operator else arguments[:2]
    return _integers(ctx, _integer(ctx, low), _integer(ctx, high))


def _uniform(ctx: Context) -> SSAValue:
    return ctx.apply("uniform", ctx.seed(), shape=list(ctx.result.shape))


def _integers(ctx: Context, low: int, high: int) -> SSAValue:
    if high - low > _EXACT:
        raise Unsupported(f"there are {_EXACT} random numbers, and {high - low} integers")
    spread = ctx.apply("scale", _uniform(ctx), factor=high - low)
    whole = ctx.cast(ctx.apply("floor", spread), "i64")
    return ctx.apply("add", whole, ctx.scalar(low, "i64"))


def _integer(ctx: Context, value: object) -> int:
    if not isinstance(value, int):
        raise Unsupported(f"{ctx.operator} takes integers")
    return value
