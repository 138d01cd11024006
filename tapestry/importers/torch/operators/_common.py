"""What lowerings share: operands in the dtype of the result, axes, tables of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from tapestry.importers.torch.registry import Context, Operand, Unsupported, lowering


def alike(ctx: Context, *values: Operand) -> list[SSAValue]:
    """Operands in the dtype of the result, which PyTorch promotes them to."""
    return ctx.operands(*values, dtype=ctx.result.dtype)


def numbers(ctx: Context, *values: Operand) -> list[SSAValue]:
    """Operands in the dtype of the result; Unsupported where they are truth values."""
    if ctx.result.dtype == "i1":
        raise Unsupported(f"{ctx.operator} of truth values")
    return alike(ctx, *values)


def counted(ctx: Context, x: SSAValue) -> SSAValue:
    """A tensor with truth values as 0 and 1, which unlike them are in order."""
    return ctx.cast(x, "ui8") if ctx.dtype(x) == "i1" else x


def shaped(ctx: Context, x: SSAValue, shape: Sequence[int]) -> SSAValue:
    """The same cells, in row-major order, under another shape."""
    wanted = list(shape)
    return x if list(ctx.shape(x)) == wanted else ctx.apply("reshape", x, shape=wanted)


def axes_of(ctx: Context, x: SSAValue, dims: Sequence[int] | int | None) -> list[int]:
    """Axes counted from the front; none (which stands for all) of a tensor without dimensions."""
    if dims is None or not ctx.rank(x):
        return []
    given = [dims] if isinstance(dims, int) else dims
    return [ctx.axis(axis, x) for axis in given]


def lifted(ctx: Context, x: SSAValue) -> SSAValue:
    """A tensor with at least one dimension, which operators along an axis need."""
    return x if ctx.rank(x) else ctx.apply("reshape", x, shape=[1])


def corner(ctx: Context, x: SSAValue, sizes: Sequence[int]) -> SSAValue:
    """The first cells along each axis."""
    for axis, size in enumerate(sizes):
        if ctx.shape(x)[axis] != size:
            x = ctx.apply("slice", x, axis=axis, stop=size)
    return x


def per_axis(values: Sequence[int], count: int) -> list[int]:
    """A number for each of `count` axes, where one may be given for all."""
    return list(values) * count if len(values) == 1 else list(values)


def register_unary(metakernels: Mapping[str, str]) -> None:
    """Operators of one tensor that are metakernels without parameters."""
    for operator, metakernel in metakernels.items():
        _register_unary(operator, metakernel)


def _register_unary(operator: str, metakernel: str) -> None:
    @lowering(f"aten.{operator}.default")
    def unary(ctx: Context, x: SSAValue) -> SSAValue:  # pyright: ignore[reportUnusedFunction]
        return ctx.apply(metakernel, x)
