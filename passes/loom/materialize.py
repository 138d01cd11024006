"""`loom-materialize`: views and reshapes that no reader could take become copying operations.

    %r = loom.reshape %x : [6, 4] -> [4, 6]
    %y = loom.operation @f over <[0, 0] : [4, 6]> [map, map] ins(%r : (d0, d1) -> (d0, d1)) ...

has no common factorization: no affine map leads from a cell of `%r` to its cell of `%x`. It becomes

    %c = loom.operation @copy over <[0, 0] : [6, 4]> [map, map]
           ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (4 * d0 + d1)) ...
    %y = loom.operation @f over <[0, 0] : [4, 6]> [map, map] ins(%c : (d0, d1) -> (6 * d0 + d1)) ...

because every reshape of a line is affine. Where nothing else reads what is reshaped, the operation
that computes it writes the line itself, and nothing is copied.

Input: any verified loom program, best simplified. Output: the same values; every operation reads
tensors that are stored. With `all=true` every view and reshape is copied, read by an operation or
not, and so is each part of an assembly that no operation computes: then all that moves data is
explicit, ready to be sharded, fused and timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.algebra.dtypes import body_type
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType, tensor_type
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.simplification.reshape import (
    fold_into_reader,
    fold_into_view,
    fold_into_writer,
)
from tapestry.zspace import Projection, Range


def copy_operation(
    read: Read, index: Range, written: Projection, result: TensorType, location: LocationAttr
) -> loom.OperationOp:
    """The operation that copies the cell read at each point of `index` to where it is written."""
    body = Block(arg_types=[body_type(result.element_type)])
    body.add_op(loom.YieldOp(body.args[0]))
    copy = loom.OperationOp(
        "copy", index, ("map",) * index.rank, None, [read], [(written, result)], Region(body)
    )
    copy.location = location
    return copy


@dataclass
class CopyView(RewritePattern):
    """A view is a map operation with an identity body, which reads through the view's projection.

    Always legal: the operation computes the cells that the view names.
    """

    every: bool

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ViewOp, rewriter: PatternRewriter) -> None:
        if self.every or _is_read(op.result):
            result = tensor_type(op.result)
            whole = Projection.identity(result.box.rank)
            read = Read(op.source, op.projection.data)
            copy = copy_operation(read, result.box, whole, result, op.location)
            copy.outs[0].name_hint = op.result.name_hint
            rewriter.replace(op, copy)


@dataclass
class StoreReshapedAsLine(RewritePattern):
    """What is reshaped is stored as a line, which every reader of the reshape then reads.

    Always legal: a line keeps row-major order, and a cell's place on it is an affine function of
    the cell, whatever the shape. The operation that computes the tensor writes the line if nothing
    else reads the tensor and its shards write intervals of the line; else the tensor is copied.
    """

    every: bool

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ReshapeOp, rewriter: PatternRewriter) -> None:
        source = tensor_type(op.source)
        line = TensorType.of(Range.of((source.box.size,)), source.element_type)
        if source.box.rank == 1 or not (self.every or _is_read(op.result)):
            return
        to_line = loom.ReshapeOp(op.source, line)
        back = loom.ReshapeOp(to_line.result, tensor_type(op.result))
        to_line.location = back.location = op.location
        back.result.name_hint = op.result.name_hint
        rewriter.replace(op, [to_line, back])
        fold_into_writer(to_line, rewriter)
        if to_line.parent is not None:
            strides = [prod(source.box.shape[d + 1 :]) for d in range(source.box.rank)]
            first = -sum(s * at for s, at in zip(strides, source.box.start, strict=True))
            written = Projection.of([strides], [first], inputs=source.box.rank)
            read = Read(to_line.source, Projection.identity(source.box.rank))
            copy = copy_operation(read, source.box, written, line, op.location)
            rewriter.replace(to_line, copy)


@dataclass
class CopyReshapedLine(RewritePattern):
    """A reshape of a line is a map operation over its result, which reads the line.

    Always legal: the cell's place on the line is an affine function of the cell. Besides `every`,
    it serves clipped reads: what is outside the reshaped tensor is not what is outside the line.
    """

    every: bool

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ReshapeOp, rewriter: PatternRewriter) -> None:
        line, result = tensor_type(op.source).box, tensor_type(op.result)
        if line.rank != 1 or not (self.every or _is_read(op.result)):
            return
        strides = [prod(result.box.shape[d + 1 :]) for d in range(result.box.rank)]
        first = sum(s * at for s, at in zip(strides, result.box.start, strict=True))
        place = Projection.of([strides], [line.start[0] - first], inputs=result.box.rank)
        whole = Projection.identity(result.box.rank)
        copy = copy_operation(Read(op.source, place), result.box, whole, result, op.location)
        copy.outs[0].name_hint = op.result.name_hint
        rewriter.replace(op, copy)


class CopyParts(RewritePattern):
    """Each part of an assembly that no operation computes is copied. Always legal."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.AssembleOp, rewriter: PatternRewriter) -> None:
        computed = (loom.OperationOp, loom.ExternalOp, loom.ApplicationOp, loom.MergeOp)
        for place, part in enumerate(op.parts):
            if not isinstance(part.owner, computed):
                kind = tensor_type(part)
                whole = Projection.identity(kind.box.rank)
                copy = copy_operation(Read(part, whole), kind.box, whole, kind, op.location)
                rewriter.insert(copy)
                op.operands[place] = copy.outs[0]
                rewriter.notify_op_modified(op)


class ReadStoredLine(RewritePattern):
    """What reads a reshape reads the line that is reshaped. Legal as in `loom-simplify`."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if isinstance(op, loom.OperationOp):
            fold_into_reader(op, rewriter)
        elif isinstance(op, loom.ViewOp):
            fold_into_view(op, rewriter)


def _is_read(value: SSAValue) -> bool:
    """Whether an operation or a view reads a tensor."""
    readers = (loom.OperationOp, loom.ExternalOp, loom.ViewOp)
    return any(isinstance(use.operation, readers) for use in value.uses)


@dataclass(frozen=True)
class LoomMaterialize(ModulePass):
    """Store what views and reshapes name, where no reader could take it; with `all`, everywhere."""

    name = "loom-materialize"

    all: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        store: list[RewritePattern] = [StoreReshapedAsLine(self.all), CopyView(self.all)]
        read: list[RewritePattern] = [ReadStoredLine()]
        copy: list[RewritePattern] = [CopyReshapedLine(self.all)]
        copy += [CopyParts()] if self.all else []
        with collection_paused():
            for patterns in (store, read, copy):
                PatternRewriteWalker(GreedyRewritePatternApplier(patterns)).rewrite_module(op)
