"""Sums of what a loop loads, folded once after the loop: cells are added to cells.

    acc = tl.full([BLOCK_M], 0.0, tl.float32)
    for k_start in range(0, 1024, BLOCK_K):
        x = tl.load(...)
        acc = acc + tl.sum(x, axis=1)

becomes, where `acc` is used more than once after the loop,

    acc = tl.full([BLOCK_M, BLOCK_K], 0.0, tl.float32)
    for k_start in range(0, 1024, BLOCK_K):
        x = tl.load(...)
        acc = acc + x
    acc_2 = tl.sum(acc, axis=1)

Triton folds late by itself (its pass `tritongpu-optimize-thread-locality`), but that of 3.6 takes
it for granted that the result of such a loop has one use, and fails where it has more: the kernel
does not compile. Where it has one, it is left to Triton, which keeps fewer cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue, Use
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.dialects import triton
from tapestry.dialects.triton import shape_of

_NEUTRAL: dict[type[Operation], float] = {
    arith.AddfOp: 0.0,
    arith.MulfOp: 1.0,
    arith.MaximumfOp: -inf,
    arith.MinimumfOp: inf,
}
"""What changes nothing, of the operations of floats that Triton folds late."""


@dataclass(frozen=True)
class FoldAfterLoop(RewritePattern):
    """A part that a loop carries, and folds loaded tiles into, is a tile until the loop is done.

    Legal up to rounding where steps and tiles are folded by one operation that is associative and
    commutative, from its neutral element on, and steps use the part for nothing else.
    """

    sizes: Mapping[str, int]
    """Those of the kernel's blocks."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.ForOp, rewriter: PatternRewriter) -> None:
        for place, result in enumerate(op.res):
            fold = _fold_of(op, place, self.sizes)
            if fold is not None and len(list(_uses(result))) > 1:
                _fold_late(op, place, fold, rewriter)


def fold_late(kernel: triton.KernelOp) -> None:
    """Apply the rewrite to a kernel."""
    walker = PatternRewriteWalker(FoldAfterLoop(kernel.constants), apply_recursively=False)
    walker.rewrite_region(kernel.body)


def _fold_of(loop: scf.ForOp, place: int, sizes: Mapping[str, int]) -> triton.ReduceOp | None:
    """The fold of a loaded tile into a part that a loop carries; None where there is no such."""
    carried, start = loop.body.block.args[1 + place], loop.iter_args[place].owner
    end = loop.body.block.last_op
    assert end is not None
    update = end.operands[place].owner
    if not isinstance(start, triton.FullOp) or not isinstance(start.value, FloatAttr):
        return None
    if not isinstance(update, Operation) or _NEUTRAL.get(type(update)) != start.value.value.data:
        return None
    if not carried.has_one_use() or not update.results[0].has_one_use():
        return None
    sides = [side for side in update.operands if side is not carried]
    if len(sides) != 1 or not isinstance(fold := sides[0].owner, triton.ReduceOp):
        return None
    if fold.parent is not loop.body.block or not sides[0].has_one_use() or len(fold.tiles) != 1:
        return None
    (tile,) = fold.tiles
    size = loop.step.owner
    if not isinstance(tile.owner, triton.LoadOp) or not isinstance(size, triton.BlockSizeOp):
        return None
    if shape_of(tile) != (*shape_of(carried), sizes[size.block.data]):
        return None
    single, *rest = fold.combiner.block.ops
    same = type(single) is type(update) and len(rest) == 1
    return fold if same and fold.axis.value.data == len(shape_of(carried)) else None


def _fold_late(
    loop: scf.ForOp, place: int, fold: triton.ReduceOp, rewriter: PatternRewriter
) -> None:
    (tile,) = fold.tiles
    start, size, end = loop.iter_args[place].owner, loop.step.owner, loop.body.block.last_op
    assert isinstance(start, triton.FullOp)
    assert isinstance(size, triton.BlockSizeOp)
    assert end is not None
    blocks = [block.data for block in start.blocks]
    wide = triton.FullOp(start.value, [*blocks, size.block.data], tile.type)
    wide.result.name_hint = start.result.name_hint
    rewriter.insert(wide)
    loop.operands[3 + place] = wide.result
    carried = rewriter.replace_value_with_new_type(loop.body.block.args[1 + place], tile.type)
    update = end.operands[place].owner
    assert isinstance(update, Operation)
    added = update.create(
        operands=[carried if side is carried else tile for side in update.operands],
        result_types=[tile.type],
        properties=update.properties.copy(),
    )
    added.results[0].name_hint = update.results[0].name_hint
    rewriter.replace(update, added)
    tiles = rewriter.replace_value_with_new_type(loop.res[place], tile.type)
    folded = triton.ReduceOp(fold.label.data, [tiles], fold.axis.value.data, fold.combiner.clone())
    folded.outs[0].name_hint = tiles.name_hint
    rewriter.insert(folded, InsertPoint.after(loop))
    rewriter.replace_uses_with_if(tiles, folded.outs[0], lambda use: use.operation is not folded)
    rewriter.erase(fold)


def _uses(value: SSAValue) -> Iterator[Use]:
    """The uses of a value, seen through operations that only shape it."""
    for use in value.uses:
        if isinstance(use.operation, triton.BroadcastOp | triton.ExpandDimsOp):
            yield from _uses(use.operation.results[0])
        else:
            yield use
