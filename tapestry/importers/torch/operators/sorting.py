"""Sorted cells and where they come from."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tapestry.importers.ordering import ordering
from tapestry.importers.torch.operators._common import counted, lifted, shaped
from tapestry.importers.torch.registry import Context, Lowered, lowering


@lowering("aten.sort.default")
def sort(ctx: Context, x: SSAValue, dim: int = -1, descending: bool = False) -> Lowered:
    return _sorted(ctx, x, dim, descending)


@lowering("aten.sort.stable")
def sort_stable(
    ctx: Context,
    x: SSAValue,
    stable: bool | None = False,
    dim: int = -1,
    descending: bool = False,
) -> Lowered:
    return _sorted(ctx, x, dim, descending)


@lowering("aten.topk.default")
def topk(
    ctx: Context,
    x: SSAValue,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002 - the operator's own name for it
) -> Lowered:
    cells = lifted(ctx, counted(ctx, x))
    made = ctx.apply_all(_ordering(ctx, "topk", cells, dim), cells, k=k, axis=dim, largest=largest)
    return [shaped(ctx, one, ctx.result.shape) for one in made]


@lowering("aten.kthvalue.default")
def kthvalue(ctx: Context, x: SSAValue, k: int, dim: int = -1, keepdim: bool = False) -> Lowered:
    cells = lifted(ctx, counted(ctx, x))
    made = ctx.apply_all(_ordering(ctx, "sort", cells, dim), cells, axis=dim)
    chosen = [ctx.apply("select", one, index=k - 1, axis=dim) for one in made]
    return [shaped(ctx, one, ctx.result.shape) for one in chosen]


def _sorted(ctx: Context, x: SSAValue, dim: int, descending: bool) -> Lowered:
    cells = lifted(ctx, counted(ctx, x))
    sort = _ordering(ctx, "sort", cells, dim)
    made = ctx.apply_all(sort, cells, axis=dim, descending=descending)
    return [shaped(ctx, one, ctx.result.shape) for one in made]


def _ordering(ctx: Context, metakernel: str, cells: SSAValue, dim: int) -> str:
    return ordering(metakernel, ctx.shape(cells)[dim])
