"""Tensors joined, and taken apart."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tapestry.importers.torch.operators._common import alike
from tapestry.importers.torch.registry import Context, lowering


@lowering("aten.cat.default")
def cat(ctx: Context, tensors: Sequence[SSAValue], dim: int = 0) -> SSAValue:
    # An empty vector joins anything.
    parts = [x for x in tensors if ctx.shape(x) != (0,) or len(ctx.result.shape) == 1]
    return ctx.apply("concat", alike(ctx, *parts), axis=dim)


@lowering("aten.stack.default")
def stack(ctx: Context, tensors: Sequence[SSAValue], dim: int = 0) -> SSAValue:
    return ctx.apply("stack", alike(ctx, *tensors), axis=dim)


@lowering("aten.split.Tensor", "aten.split_copy.Tensor")
def split(ctx: Context, x: SSAValue, split_size: int, dim: int = 0) -> Sequence[SSAValue]:
    return ctx.apply_all("split", x, chunk=max(split_size, 1), axis=dim)


@lowering("aten.split_with_sizes.default", "aten.split_with_sizes_copy.default", "aten.split.sizes")
def split_with_sizes(
    ctx: Context, x: SSAValue, sizes: Sequence[int], dim: int = 0
) -> Sequence[SSAValue]:
    return ctx.apply_all("split_with_sizes", x, sizes=list(sizes), axis=dim)


@lowering("aten.unbind.int", "aten.unbind_copy.int")
def unbind(ctx: Context, x: SSAValue, dim: int = 0) -> Sequence[SSAValue]:
    return ctx.apply_all("unbind", x, axis=dim)


@lowering("aten.meshgrid.default", "aten.meshgrid.indexing")
def meshgrid(ctx: Context, tensors: Sequence[SSAValue], indexing: str = "ij") -> Sequence[SSAValue]:
    vectors = [x if ctx.rank(x) else ctx.apply("reshape", x, shape=[1]) for x in tensors]
    return ctx.apply_all("meshgrid", vectors, indexing=indexing)
