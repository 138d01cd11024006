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
from xdsl.ir import Attribute, Block
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
from tapestry.passes.loom._digits import SplitLikeProducer
from tapestry.passes.loom._rebuild import reads_of, writes_of
from tapestry.passes.loom.simplify import MergeEqualReads
from tapestry.zspace import AffineMap, Partition, Projection, Range
from tapestry.zspace.origins import origin

LABEL_LENGTH = 48
"""How long the label of joined operations may be."""


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
            fold = value.owner
            if isinstance(fold, loom.OperationOp) and fold.monoid_name is not None:
                bijection = epilogue_points(fold, op, position, self.limit)
                if isinstance(bijection, AffineMap):
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
            producer = value.owner
            if isinstance(producer, loom.OperationOp) and producer.monoid_name is None:
                points = prologue_points(producer, op, position, self.limit)
                if isinstance(points, AffineMap):
                    _join_prologue(producer, op, position, points, rewriter)
                    return


def epilogue_points(
    fold: loom.OperationOp, reader: loom.OperationOp, position: int, limit: int
) -> AffineMap | str:
    """The reader's index point for each point that the fold keeps, or why there is no such map.

    `position` is the operand of the reader that the fold writes.
    """
    problem = _pair_problem(fold, reader, position, limit)
    if problem is not None:
        return problem
    if reader.monoid_name is not None:
        return f"{reader.subject} folds too: a fold of a fold is two operations"
    read = reader.in_reads[position]
    bijection = _bijection(fold, reader, read.projection)
    if bijection is None:
        return (
            f"{reader.subject} reads {read.projection} over <{reader.index}>, which does not visit "
            f"each cell of what {fold.subject} writes once"
        )
    outs = [projection.compose(bijection) for projection in reader.out_maps]
    if fold.partition is not None and fold.sharding_problems(fold.partition, outs):
        return f"the shards of {fold.subject} would not write boxes of what {reader.subject} writes"
    if not _splits_alike(reader, read.projection, fold, fold.out_maps[0]):
        return _split_apart(fold, reader)
    return bijection


def prologue_points(
    producer: loom.OperationOp, reader: loom.OperationOp, position: int, limit: int
) -> AffineMap | str:
    """The producer's index point that each of the reader's points needs, or why there is none."""
    problem = _pair_problem(producer, reader, position, limit)
    if problem is not None:
        return problem
    if producer.monoid_name is not None:
        return f"{producer.subject} folds: where it is read, it would be folded again"
    ins, extras = reads_of(reader)
    read = [*ins, *extras][position]
    over = reader.index if position < len(ins) else reader.kept_range(reader.index)
    points = origin(producer.out_maps[0].map, producer.index, read.projection.map, over)
    if points is None:
        return (
            f"{producer.subject} writes {producer.out_maps[0]} and {reader.subject} reads "
            f"{read.projection}: which point computes a cell is no affine function of who reads it"
        )
    if not _splits_alike(producer, producer.out_maps[0], reader, read.projection):
        return _split_apart(producer, reader)
    return points


def _pair_problem(
    producer: loom.OperationOp, reader: loom.OperationOp, position: int, limit: int
) -> str | None:
    """Why two operations could not be one, whichever way they were joined."""
    if in_group(reader) or in_group(producer):
        return "members of a group stay as they are"
    if producer.parent is not reader.parent:
        return "they do not stand in one block"
    if len(producer.outs) != 1:
        return f"{producer.subject} writes {len(producer.outs)} tensors"
    value = reader.operands[position]
    if not value.has_one_use():
        readers = sum(1 for _ in value.uses)
        return f"what {producer.subject} writes is read {readers} times, so it is stored anyway"
    ins, extras = reads_of(reader)
    if not [*ins, *extras][position].is_plain:
        return f"{reader.subject} reads past the edges of what {producer.subject} writes, or blocks"
    size = body_size(producer) + body_size(reader)
    if size > limit:
        return f"the joined body would have {size} scalar operations, more than {limit}"
    return None


def _split_apart(producer: loom.OperationOp, reader: loom.OperationOp) -> str:
    return f"{producer.subject} and {reader.subject} are split into different boxes of the tensor"


def _bijection(
    fold: loom.OperationOp, reader: loom.OperationOp, projection: Projection
) -> AffineMap | None:
    """The reader's index point that needs each point of the fold's map dimensions; None without."""
    kept_range = fold.kept_range(fold.index)
    if kept_range.size != reader.index.size:
        return None
    # Writing is injective, so no two kept points have one point of the reader's: of as many points,
    # all are had, and the reader visits each cell once.
    return origin(projection.map, reader.index, fold.out_maps[0].map, kept_range)


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
    return joined if len(joined) <= LABEL_LENGTH else second.label.data


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
            [prologue, epilogue, SplitLikeProducer(), MergeEqualReads()],
        ]
        with collection_paused():
            for patterns in sweeps:
                PatternRewriteWalker(GreedyRewritePatternApplier(patterns)).rewrite_module(op)
