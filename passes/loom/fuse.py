"""`loom-fuse`: map operations joined with the operations they feed or that feed them.

    %h = loom.operation @linear over ... [map, map, fold] by @add ... wrap {mul}
    %y = loom.operation @relu over ... [map, map] ins(%h : (d0, d1) -> (d0, d1)) ... wrap {max 0}

becomes one operation that folds with `mul` and unwraps with `max 0`: `%h` is never stored.

Input: any verified loom program, best simplified. Output: the same values (each cell is computed by
the same scalar operations in the same order, so bit for bit), with fewer operations. Each rewrite
removes one operation, so it terminates. Members of a group stay as they are. `limit` bounds how
many scalar operations a joined body may have, which keeps kernels compilable and the pass linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.diagnostics import UsageError
from tapestry.dialects import loom
from tapestry.locations import fuse_locations
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom._bodies import body_size, graft, in_group, reindex
from tapestry.passes.loom._rebuild import reads_of, writes_of
from tapestry.passes.loom.simplify import MergeEqualReads
from tapestry.zspace import AffineMap, Partition, Projection, Range

_LABEL_LENGTH = 48


@dataclass
class FuseEpilogue(RewritePattern):
    """A map operation that reads a fold's result moves into the fold's unwrap.

    Legal when the result has no other reader and the reader visits each of its cells exactly once:
    its projection onto the result, after the inverse of the projection that writes the result, is
    a bijection from the reader's index space to the fold's map dimensions. Then the two compute the
    same cells, and the reader's other inputs become extra inputs, re-projected by that bijection.
    The fold's shards must also write the reader's outputs apart. A clipped read and a block are
    left alone: some points read no cell, or others.
    """

    limit: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op.monoid_name is not None or in_group(op):
            return
        for position, value in enumerate(op.ins):
            fold = _sole_producer(value, op)
            if fold is None or fold.monoid_name is None:
                continue
            read = op.in_reads[position]
            bijection = _bijection(fold, op, read.projection) if read.is_plain else None
            if bijection is None or body_size(fold) + body_size(op) > self.limit:
                continue
            outs = [projection.compose(bijection) for projection in op.out_maps]
            if fold.partition is not None and fold.sharding_problems(fold.partition, outs):
                continue
            if _splits_alike(op, read.projection, fold, fold.out_maps[0]):
                _join_epilogue(fold, op, position, bijection, rewriter)
                return


@dataclass
class FusePrologue(RewritePattern):
    """A map operation is computed where its result is read.

    Legal when the result has no other reader and the projection that writes it is invertible over
    the integers: then the point that computes a cell is an affine function of the cell, the
    reader's projection composed with that inverse says which point each read needs, and the map's
    own inputs are read through it. It holds for reads of wrap and of unwrap alike. A clipped read
    is left alone, because outside the tensor it is the fill, and so is a block: which of its cells
    are read is known when it is run. What computes an index is an input like any other. A domain of
    the reader stays as it is; one of the map holds all over its index space.
    """

    limit: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if in_group(op):
            return
        for position, value in enumerate(op.operands):
            producer = _sole_producer(value, op)
            if producer is None or producer.monoid_name is not None:
                continue
            ins, extras = reads_of(op)
            read = [*ins, *extras][position]
            if not read.is_plain:
                continue
            inverse = producer.out_maps[0].map.inverse_on(producer.index)
            if inverse is None or body_size(producer) + body_size(op) > self.limit:
                continue
            if _splits_alike(producer, producer.out_maps[0], op, read.projection):
                points = inverse.compose(read.projection.map)
                _join_prologue(producer, op, position, points, rewriter)
                return


def _sole_producer(value: SSAValue, reader: loom.OperationOp) -> loom.OperationOp | None:
    """The operation that writes `value` alone, when `reader` alone reads it."""
    producer = value.owner
    if not isinstance(producer, loom.OperationOp) or len(producer.outs) != 1:
        return None
    return producer if value.has_one_use() and producer.parent is reader.parent else None


def _bijection(
    fold: loom.OperationOp, reader: loom.OperationOp, projection: Projection
) -> AffineMap | None:
    """The reader's index point that needs each point of the fold's map dimensions; None without."""
    kept_range = fold.kept_range(fold.index)
    written = fold.out_maps[0].map.inverse_on(kept_range)
    if written is None or kept_range.size != reader.index.size:
        return None
    # Same size and invertible: with every read inside the tensor, all of it is read, once.
    return written.compose(projection.map).inverse_on(reader.index)


def _splits_alike(
    gone: loom.OperationOp, its: Projection, kept: loom.OperationOp, other: Projection
) -> bool:
    """Whether the operation that goes loses no partition that was asked for.

    It must be whole, or both must be split into the same boxes of the tensor between them; `its`
    and `other` project the two onto that tensor.
    """
    if gone.partition is None:
        return True
    if kept.partition is None:
        return False
    return _boxes(gone, gone.partition, its) == _boxes(kept, kept.partition, other)


def _boxes(op: loom.OperationOp, partition: Partition, projection: Projection) -> set[Range]:
    """The boxes of a tensor that the shards of `op` touch, from all or from its kept dimensions."""
    of_maps = projection.inputs == len(op.kept_dims)
    return {
        projection.apply_range(op.kept_range(box) if of_maps else box) for box in partition.ranges()
    }


def _join_epilogue(
    fold: loom.OperationOp,
    reader: loom.OperationOp,
    position: int,
    bijection: AffineMap,
    rewriter: PatternRewriter,
) -> None:
    ins, extras = reads_of(fold)
    others = [read for place, read in enumerate(reads_of(reader)[0]) if place != position]
    joined = [read.compose(bijection) for read in others]
    outs = [(projection.compose(bijection), kind) for projection, kind in writes_of(reader)]
    if fold.unwrap_block is None:
        fold.unwrap.add_block(_identity(fold.state_types))
    assert fold.unwrap_block is not None
    reindex(reader.wrap_block, bijection, fold.kept_dims, rewriter)
    graft(fold.unwrap_block, reader.wrap_block, position, 0, rewriter)
    wrap, unwrap = [fold.detach_region(region) for region in fold.regions]
    new = loom.OperationOp(
        _joined_label(fold, reader),
        fold.index,
        fold.kinds,
        fold.monoid_name,
        ins,
        outs,
        wrap,
        extras=[*extras, *joined],
        unwrap=unwrap,
        partition=fold.partition,
        inside=fold.inside,
        attributes=reader.attributes | fold.attributes,
    )
    _replace(fold, reader, new, rewriter)


def _identity(types: Sequence[Attribute]) -> Block:
    block = Block(arg_types=types)
    block.add_op(loom.YieldOp(*block.args))
    return block


def _join_prologue(
    producer: loom.OperationOp,
    reader: loom.OperationOp,
    position: int,
    points: AffineMap,
    rewriter: PatternRewriter,
) -> None:
    ins, extras = reads_of(reader)
    own = [read.compose(points) for read in reads_of(producer)[0]]
    outs = writes_of(reader)
    label = _joined_label(producer, reader)
    bodies = list(reader.regions)
    in_wrap = position < len(ins)
    if in_wrap:
        body, place, dims = reader.wrap_block, position, tuple(range(reader.index.rank))
        ins[position : position + 1] = own
    else:
        assert reader.unwrap_block is not None
        body, dims = reader.unwrap_block, reader.kept_dims
        at = position - len(ins)
        place = len(body.args) - len(extras) + at
        extras[at : at + 1] = own
    reindex(producer.wrap_block, points, dims, rewriter)
    graft(producer.wrap_block, body, place, place, rewriter)
    kept = reader.detach_region(bodies[1 if in_wrap else 0])
    grown = producer.detach_region(producer.regions[0])
    new = loom.OperationOp(
        label,
        reader.index,
        reader.kinds,
        reader.monoid_name,
        ins,
        outs,
        grown if in_wrap else kept,
        extras=extras,
        unwrap=kept if in_wrap else grown,
        partition=reader.partition,
        inside=reader.inside,
        attributes=producer.attributes | reader.attributes,
    )
    _replace(producer, reader, new, rewriter)


def _joined_label(first: loom.OperationOp, second: loom.OperationOp) -> str:
    """Both labels, or the second's alone when that would be unwieldy."""
    joined = f"{first.label.data}_{second.label.data}"
    return joined if len(joined) <= _LABEL_LENGTH else second.label.data


def _replace(
    producer: loom.OperationOp,
    reader: loom.OperationOp,
    new: loom.OperationOp,
    rewriter: PatternRewriter,
) -> None:
    """Put the joined operation where the reader is; nothing else read the producer."""
    new.location = fuse_locations(producer.location, reader.location)
    for old, result in zip(reader.outs, new.outs, strict=True):
        result.name_hint = old.name_hint
    rewriter.replace(reader, new)
    rewriter.erase(producer)


@dataclass(frozen=True)
class LoomFuse(ModulePass):
    """Join map operations with what they feed and what feeds them."""

    name = "loom-fuse"

    limit: int = 256

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.limit < 1:
            raise UsageError(f"loom-fuse: limit must be at least 1, not {self.limit}")
        # Epilogues first: a map between two folds is then computed once per cell, not per read.
        epilogue, prologue = FuseEpilogue(self.limit), FusePrologue(self.limit)
        sweeps: list[list[RewritePattern]] = [
            [epilogue, MergeEqualReads()],
            [prologue, epilogue, MergeEqualReads()],
        ]
        with collection_paused():
            for patterns in sweeps:
                PatternRewriteWalker(GreedyRewritePatternApplier(patterns)).rewrite_module(op)
