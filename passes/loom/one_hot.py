"""`loom-fold-to-read` and `loom-read-to-fold`: one-hot folds and reads of blocks are one thing.

    %y = loom.operation @embed over <[0, 0] : [6, 50]> [map, fold] by @add
           ins(%ids : (d0, d1) -> (d0), %table : (d0, d1) -> (d1))
           wrap (%id: i64, %t: f32) {
             %k = loom.index 1 : i64
             %here = arith.cmpi eq, %id, %k : i64
             %v = arith.select %here, %t, %zero : f32 ...

visits the whole table for each index. `loom-fold-to-read` makes it

    %y = loom.operation @embed over <[0] : [6]> [map]
           ins(%ids : (d0) -> (d0), %table : (d0) -> (0) :> [50])
           wrap (%id: i64, %rows: !loom.block<[50], f32>) {
             %v = loom.read %rows[%id] else %zero : f32 ...

and `loom-read-to-fold` makes the fold of the read: a fold splits along the table, so that each part
of it stays where it is stored and the parts' sums merge. Option `by` is the monoid of new folds.

Input: any verified loom program. Output: the same values; a float -0.0 that is summed with the zero
of the fold is 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.algebra.monoids import BUILTIN_MONOIDS, find_monoid
from tapestry.algebra.one_hot import number_of
from tapestry.diagnostics import UsageError
from tapestry.dialects import loom
from tapestry.dialects.loom import Read
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.rebuilding.bodies import drop_unused
from tapestry.passes.loom.rebuilding.operations import reads_of, writes_of
from tapestry.passes.loom.simplification.fold_to_read import FoldToRead, is_plain, replace_operation
from tapestry.zspace import Projection, Range


@dataclass
class ReadToFold(RewritePattern):
    """A read of a block whose `else` is a monoid's zero is a one-hot fold over the block.

    Legal when the read has such an `else`, its block has no other reader, and the indices along
    dimensions of extent 1 are 0. Without a fold, what the body does with the value moves to unwrap;
    an operation that folds by that monoid already must fold the value itself, and folds it further
    inside. The operation is whole, in no group, and has no domain.
    """

    by: str
    label: str | None = None

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if not is_plain(op) or self.label not in (None, op.label.data):
            return
        for read in op.wrap_block.ops:
            if isinstance(read, loom.ReadOp) and self._is_fold(op, read):
                _fold_instead(op, read, op.monoid_name or self.by, rewriter)
                return

    def _is_fold(self, op: loom.OperationOp, read: loom.ReadOp) -> bool:
        monoid = find_monoid(op, op.monoid_name or self.by, (read.result.type,))
        shape = read.box.shape
        if monoid is None or read.otherwise is None or 0 in shape or not read.block.has_one_use():
            return False
        if number_of(read.otherwise) != monoid.zero[0]:
            return False
        if any(n == 1 and number_of(i) != 0 for n, i in zip(shape, read.indices, strict=True)):
            return False
        alone = read.result.has_one_use() and loom.yielded(op.wrap_block) == (read.result,)
        return op.monoid_name is None or alone


def _fold_instead(
    op: loom.OperationOp, read: loom.ReadOp, monoid: str, rewriter: PatternRewriter
) -> None:
    ins, extras = reads_of(op)
    body, rank = op.wrap_block, op.index.rank
    position = body.args.index(read.block)
    rows = [row for row, extent in enumerate(read.box.shape) if extent != 1]
    new_dims = range(rank, rank + len(rows))
    after = None if op.monoid_name is not None else _after(body, read, rewriter)
    if after is not None:
        extras = _used(after, ins, 1)
    selected = _along(ins[position].projection, rows)
    ins = [read._replace(projection=read.projection.insert_inputs(new_dims)) for read in ins]
    ins[position] = ins[position]._replace(projection=selected)
    _write_select(body, read, position, dict(zip(new_dims, rows, strict=True)), rewriter)
    ins = _used(body, ins, 0)
    folds: list[loom.Iterator] = ["fold"] * len(rows)
    wrap, unwrap = [op.detach_region(region) for region in list(op.regions)]
    new = loom.OperationOp(
        op.label.data,
        op.index.product(Range.of([read.box.shape[row] for row in rows])),
        [*op.kinds, *folds],
        monoid,
        ins,
        writes_of(op),
        wrap,
        extras=extras,
        unwrap=unwrap if after is None else Region(after),
        attributes=op.attributes,
    )
    replace_operation(op, new, rewriter)


def _after(body: Block, read: loom.ReadOp, rewriter: PatternRewriter) -> Block:
    """What a body does, given the value that it reads as its first argument."""
    after = Block(arg_types=[read.result.type, *(argument.type for argument in body.args)])
    value, *arguments = after.args
    value.name_hint = read.result.name_hint
    for old, new in zip(body.args, arguments, strict=True):
        new.name_hint = old.name_hint
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, arguments, strict=True))
    values[read.result] = value
    for op in body.ops:
        if op is not read:
            after.add_op(op.clone(values))
    drop_unused(after, rewriter)
    return after


def _along(projection: Projection, rows: Sequence[int]) -> Projection:
    """The cells of what a projection selects, one by one along further dimensions, one per row."""
    matrix = [
        [*coefficients, *(int(row == other) for other in rows)]
        for row, coefficients in enumerate(projection.map.matrix)
    ]
    inputs = projection.inputs + len(rows)
    return Projection.of(matrix, projection.map.offset, inputs=inputs)


def _used(block: Block, reads: Sequence[Read], first: int) -> list[Read]:
    """The reads that a body uses; its argument `first + i` belongs to read `i`, others go."""
    kept: list[Read] = []
    for argument, read in zip(block.args[first:], reads, strict=True):
        if argument.uses.get_length():
            kept.append(read)
        else:
            block.erase_arg(argument)
    return kept


def _write_select(
    body: Block,
    read: loom.ReadOp,
    position: int,
    rows: dict[int, int],
    rewriter: PatternRewriter,
) -> None:
    """Yield the cell where new coordinates are the indices of a read, and its `else` elsewhere."""
    end = body.last_op
    assert end is not None
    assert read.otherwise is not None
    cell = body.insert_arg(read.result.type, position)
    cell.name_hint = read.block.name_hint
    made: list[Operation] = []
    here: SSAValue | None = None
    for dim, row in rows.items():
        coordinate = loom.IndexOp(dim)
        equal = arith.CmpiOp(read.indices[row], coordinate.result, "eq")
        made += [coordinate, equal]
        if here is not None:
            made.append(arith.AndIOp(here, equal.result))
        here = made[-1].results[0]
    assert here is not None
    select = arith.SelectOp(here, cell, read.otherwise)
    select.result.name_hint = read.result.name_hint
    rewriter.insert([*made, select], InsertPoint.before(end))
    rewriter.replace(end, loom.YieldOp(select.result))
    drop_unused(body, rewriter)
    block = body.args[position + 1]
    body.erase_arg(block)


@dataclass(frozen=True)
class LoomFoldToRead(ModulePass):
    """Read the cells that one-hot folds choose."""

    name = "loom-fold-to-read"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with collection_paused():
            PatternRewriteWalker(FoldToRead(), apply_recursively=False).rewrite_module(op)


@dataclass(frozen=True)
class LoomReadToFold(ModulePass):
    """Fold over blocks instead of reading them; `op` names operations by label (all without)."""

    name = "loom-read-to-fold"

    by: str = "add"
    op: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        labels = {o.label.data for o in op.walk() if isinstance(o, loom.OperationOp)}
        if self.op is not None and self.op not in labels:
            raise UsageError(f"loom-read-to-fold: there is no loom.operation @{self.op}")
        defined = {o.sym_name.data for o in op.walk() if isinstance(o, loom.MonoidOp)}
        if self.by not in defined.union(BUILTIN_MONOIDS):
            raise UsageError(f"loom-read-to-fold: there is no monoid @{self.by}")
        with collection_paused():
            pattern = ReadToFold(self.by, self.op)
            PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(op)
