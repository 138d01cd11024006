"""`loom-canonicalize`: one form for operations that differ in how they are written down alone.

    %y, %z = loom.operation @s over <[1, 0, 2] : [2, 6, 6]> [map, fold, map] by @add
               ins(%w ..., %x : (d0, d1, d2) -> (d2, d1)) outs(... , (d0, d1) -> (d1)) wrap {%x}

of which only `%z` is read, becomes

    %z = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @add
           ins(%x : (d0, d1) -> (d0 + 2, d1)) outs((d0) -> (d0 + 2)) wrap {%x}

Input: any verified loom program. Output: the same values, bit for bit: what is folded keeps its
order. Index spaces start at 0, have maps first in the order of what they write, and no dimensions
of one point; operands stand in the order in which bodies use them; nothing is read, computed or
written that is not used; equal reads, scalars and operations are one. Members of groups keep their
points, which their group is aligned with. Running it again changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.dialects import loom
from tapestry.dialects.loom import Read
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.rebuilding.digits import over_points
from tapestry.passes.loom.rebuilding.operations import reads_of, rebuild
from tapestry.passes.loom.rebuilding.tidying import DropUnread, DropUnusedOutputs, ShareScalars
from tapestry.passes.loom.simplify import MergeEqualOperations, MergeEqualReads
from tapestry.zspace import AffineMap, Partition, Range


class StandardPoints(RewritePattern):
    """An index space starts at 0, without dimensions of one point, and with its maps in order.

    Legal because it is over the same points: maps may come in any order, and folds keep theirs. A
    fold keeps a dimension to fold, because folding one point is merging it with the zero. A scan
    keeps its dimension. What is split must be split on a grid, and not along a dimension that goes.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        partition = op.partition
        if in_group(op) or (partition is not None and partition.cuts is None):
            return
        dims = _standard_dims(op)
        if dims == tuple(range(op.index.rank)) and not any(op.index.start):
            return
        matrix = [[int(dim == old) for dim in dims] for old in range(op.index.rank)]
        points = AffineMap.of(matrix, op.index.start, inputs=len(dims))
        index = Range.of(tuple(op.index.shape[dim] for dim in dims))
        if partition is not None and partition.cuts is not None:
            cuts, start = partition.cuts, op.index.start
            partition = Partition.grid([cut - start[dim] for cut in cuts[dim]] for dim in dims)
        kinds: list[loom.Iterator] = [op.kinds[dim] for dim in dims]
        over_points(op, points, index, kinds, partition, rewriter)


def _standard_dims(op: loom.OperationOp) -> tuple[int, ...]:
    """The dimensions of an operation that stay, in order: maps as they are written, then others."""
    cuts = None if op.partition is None else op.partition.cuts
    goes = [
        extent == 1 and kind != "scan" and (cuts is None or len(cuts[dim]) == 2)
        for dim, (extent, kind) in enumerate(zip(op.index.shape, op.kinds, strict=True))
    ]
    if op.fold_dims and all(goes[dim] for dim in op.fold_dims):
        goes[op.fold_dims[0]] = False
    written: dict[int, None] = {}
    for projection in op.out_maps:
        for terms in projection.map.terms:
            ordered = sorted(terms, key=lambda term: -abs(term[0]))
            written.update((op.kept_dims[dim], None) for _, dim in ordered)
    maps = [dim for dim in (*written, *op.map_dims) if op.kinds[dim] == "map"]
    others = [dim for dim, kind in enumerate(op.kinds) if kind != "map"]
    return tuple(dim for dim in dict.fromkeys((*maps, *others)) if not goes[dim])


class OrderReads(RewritePattern):
    """Operands stand in the order in which bodies use them. Legal: only their order changes."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        ins, extras = reads_of(op)
        order = _first_uses(op.wrap_block, 0)
        more: list[int] = []
        if op.unwrap_block is not None:
            more = _first_uses(op.unwrap_block, len(op.unwrap_block.args) - len(extras))
        if list(order) == sorted(order) and list(more) == sorted(more):
            return
        new_ins = _reorder(op.wrap_block, ins, 0, order)
        new_extras = extras
        if op.unwrap_block is not None:
            states = len(op.unwrap_block.args) - len(extras)
            new_extras = _reorder(op.unwrap_block, extras, states, more)
        rebuild(op, rewriter, ins=new_ins, extras=new_extras)


def _first_uses(body: Block, first: int) -> list[int]:
    """The numbers of a body's arguments from `first` on, in the order of their uses."""
    place = dict[SSAValue, int](
        (argument, number) for number, argument in enumerate(body.args[first:])
    )
    used: dict[SSAValue, None] = {}
    for op in body.ops:
        used.update((operand, None) for operand in op.operands if operand in place)
    return [place[value] for value in used] + [n for a, n in place.items() if a not in used]


def _reorder(body: Block, reads: list[Read], first: int, order: list[int]) -> list[Read]:
    """Put a body's arguments from `first` on in an order, and what they read."""
    old = list(body.args[first:])
    for number in order:
        new = body.insert_arg(old[number].type, len(body.args))
        new.name_hint = old[number].name_hint
        old[number].replace_all_uses_with(new)
    for argument in old:
        body.erase_arg(argument)
    return [reads[number] for number in order]


@dataclass(frozen=True)
class LoomCanonicalize(ModulePass):
    """Bring operations into one form."""

    name = "loom-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns: list[RewritePattern] = [
            DropUnusedOutputs(),
            ShareScalars(),
            DropUnread(),
            MergeEqualReads(),
            StandardPoints(),
            OrderReads(),
        ]
        changed = True
        with collection_paused():
            while changed:
                PatternRewriteWalker(GreedyRewritePatternApplier(patterns)).rewrite_module(op)
                # One sweep in program order: operands are merged before what reads them.
                merge = MergeEqualOperations()
                changed = PatternRewriteWalker(merge, apply_recursively=False).rewrite_module(op)
