"""`loom-simplify`: views folded into the projections of whoever reads them; nothing done twice.

    %t = loom.view %x : (d0, d1) -> (d1, d0) ...
    %y = loom.operation @f over <[0, 0] : [3, 2]> [map, map] ins(%t : (d0, d1) -> (d0, d1)) ...

becomes

    %y = loom.operation @f over <[0, 0] : [3, 2]> [map, map] ins(%x : (d0, d1) -> (d1, d0)) ...

Input: any verified loom program. Output: the same values, with every view and reshape that is
affine for its reader folded away, parts of assemblies read where they are, what depends on
coordinates alone computed where it is read, equal reads and equal operations merged, what a
coordinate chooses of several inputs read from one (of zeros, the sign may differ), and operations
that nothing reads removed. Each rewrite removes an operation, a read, or a view from above a
reader, so it terminates.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.dialects import loom
from tapestry.dialects.loom import Read, tensor_type
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.rebuilding.bodies import identity, in_group
from tapestry.passes.loom.rebuilding.operations import reads_of, rebuild, writes_of
from tapestry.passes.loom.rebuilding.tidying import DropUnusedOutputs
from tapestry.passes.loom.simplification.assembly import ASSEMBLY_PATTERNS, bijection_of
from tapestry.passes.loom.simplification.chosen import ReadChosen
from tapestry.passes.loom.simplification.clips import RemoveIdleClip, through_view
from tapestry.passes.loom.simplification.constants import (
    FoldViewOfEqualCells,
    WriteEqualCellsIntoBody,
)
from tapestry.passes.loom.simplification.coordinates import ComputeFromCoordinates, ComputeSequence
from tapestry.passes.loom.simplification.domains import FoldInsideOnly
from tapestry.passes.loom.simplification.integers import ComputeIntegers
from tapestry.passes.loom.simplification.one_point import FoldOfOnePoint
from tapestry.passes.loom.simplification.repeats import ComputeRepeatedOnce
from tapestry.passes.loom.simplification.reshape import (
    fold_into_reader,
    fold_into_view,
    fold_into_writer,
)
from tapestry.zspace import Projection, Range


class FoldViewIntoReader(RewritePattern):
    """Read a view's source directly.

    Legal because both projections are affine, so the reader's composed with the view's is too, and
    it selects the same cells; a clipped read also needs the cells that it leaves the view by to be
    outside the source. Blocks are left alone.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if not any(isinstance(value.owner, loom.ViewOp) for value in op.operands):
            return
        ins, extras = reads_of(op)
        new_ins = [_through_views(read, op.index) for read in ins]
        new_extras = [_through_views(read, op.kept_range(op.index)) for read in extras]
        if new_ins != ins or new_extras != extras:
            rebuild(op, rewriter, ins=new_ins, extras=new_extras)


def _through_views(read: Read, index: Range) -> Read:
    """The same cells over `index`, read from the first tensor that can be read instead."""
    while isinstance(read.value.owner, loom.ViewOp):
        direct = through_view(read, read.value.owner, index)
        if direct is None:
            break
        read = direct
    return read


class FoldViewOfView(RewritePattern):
    """A view of a view reads the first source. Always legal, as for any reader."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ViewOp, rewriter: PatternRewriter) -> None:
        result = tensor_type(op.result)
        found = _through_views(Read(op.source, op.projection.data), result.box)
        if found.value is not op.source:
            view = loom.ViewOp(found.value, found.projection, result)
            view.location = op.location
            rewriter.replace(op, view)


class FoldViewIntoWriter(RewritePattern):
    """The operation that computes what is viewed writes the view.

    Legal when nothing else reads the tensor and the view has each of its cells once, at an affine
    function of the cell; and the operation's shards must still write boxes. Not done for operations
    that read the view: they read through it.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ViewOp, rewriter: PatternRewriter) -> None:
        writer, inverse = op.source.owner, bijection_of(op.result)
        if inverse is None or not isinstance(writer, loom.OperationOp):
            return
        read = any(isinstance(use.operation, loom.OperationOp) for use in op.result.uses)
        if read or not op.source.has_one_use():
            return
        place = [out is op.source for out in writer.outs].index(True)
        writes = writes_of(writer)
        writes[place] = (
            Projection.cells(inverse.compose(writes[place][0].map)),
            tensor_type(op.result),
        )
        outs = [projection for projection, _ in writes]
        if writer.partition and writer.sharding_problems(writer.partition, outs):
            return
        result = rebuild(writer, rewriter, outs=writes).outs[place]
        result.name_hint = op.result.name_hint
        rewriter.replace(op, [], [result])


class RemoveIdentityView(RewritePattern):
    """A view or reshape that changes nothing is its source.

    Legal when types agree (ranges too: tensors are positioned) and, for a view, each cell is read
    from where it stands.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: loom.ViewOp | loom.ReshapeOp, rewriter: PatternRewriter
    ) -> None:
        if op.source.type != op.result.type:
            return
        rank = tensor_type(op.source).box.rank
        if isinstance(op, loom.ViewOp) and op.projection.data != Projection.identity(rank):
            return
        rewriter.replace(op, [], [op.source])


class FoldReshapeOfReshape(RewritePattern):
    """A reshape of a reshape is one reshape: both keep row-major order. Always legal."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ReshapeOp, rewriter: PatternRewriter) -> None:
        if isinstance(op.source.owner, loom.ReshapeOp):
            reshape = loom.ReshapeOp(op.source.owner.source, tensor_type(op.result))
            reshape.location = op.location
            rewriter.replace(op, reshape)


class FoldReshapeIntoReader(RewritePattern):
    """Read a reshape's source directly, refining the index space where dimensions merge.

    Legal when source and result have a common factorization (every product of trailing extents of
    one divides or is divided by those of the other), and each piece of it that the read needs apart
    is a digit of what the read's rows write, once index dimensions that step across it are split.
    Map and fold dimensions split, into digits in the same order; a scan runs along one dimension
    and does not. A partition must be able to follow: each part stays one box of the refined space.
    Clipped reads and blocks are left alone: they would not find the same outside, nor by the same
    indices.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        fold_into_reader(op, rewriter)


class FoldReshapeIntoView(RewritePattern):
    """View a reshape's source directly. Legal as for an operation; nothing is split for a view."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ViewOp, rewriter: PatternRewriter) -> None:
        fold_into_view(op, rewriter)


class FoldReshapeIntoWriter(RewritePattern):
    """The operation that computes what is reshaped writes the reshaped tensor.

    Legal when nothing else reads it, as for a reader otherwise; and the operation's shards must
    still write boxes: rows that mix dimensions then leave the inner ones whole.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ReshapeOp, rewriter: PatternRewriter) -> None:
        fold_into_writer(op, rewriter)


class MergeEqualReads(RewritePattern):
    """An operation that reads the same cells twice reads them once.

    Legal because equal values through equal projections are equal cells.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if len(set(op.operands)) == len(op.operands):
            return
        ins, extras = reads_of(op)
        if len(set(ins)) == len(ins) and len(set(extras)) == len(extras):
            return
        kept_ins = _merge_arguments(op.wrap_block, ins, 0)
        kept_extras = extras
        if op.unwrap_block is not None:
            states = len(op.unwrap_block.args) - len(extras)
            kept_extras = _merge_arguments(op.unwrap_block, extras, states)
        rebuild(op, rewriter, ins=kept_ins, extras=kept_extras)


def _merge_arguments(block: Block, reads: list[Read], first: int) -> list[Read]:
    """Drop repeated reads; the block's argument `first + i` belongs to read `i`."""
    kept: list[Read] = []
    for read in reads:
        place = first + len(kept)
        if read in kept:
            same = block.args[first + kept.index(read)]
            block.args[place].replace_all_uses_with(same)
            block.erase_arg(block.args[place])
        else:
            kept.append(read)
    return kept


_PURE = (
    loom.OperationOp
    | loom.ExternalOp
    | loom.ViewOp
    | loom.ReshapeOp
    | loom.AssembleOp
    | loom.ConstantOp
)


@dataclass
class MergeEqualOperations(RewritePattern):
    """An operation that computes what an earlier one of its block does is that one.

    Legal because loom operations are pure: equal operands, ranges, projections, bodies, result
    types and partitions give equal values. Labels do not count. Members of a group that compute
    the same do so on purpose.
    """

    seen: dict[Hashable, Operation] = field(default_factory=dict[Hashable, Operation])

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, _PURE) or _is_elsewhere(op) or in_group(op):
            return
        first = self.seen.setdefault((op.parent, *identity(op)), op)
        if first is not op:
            rewriter.replace(op, [], first.results)


def _is_elsewhere(op: Operation) -> bool:
    """Whether the cells are in a side file, whose folder depends on where the program stands."""
    return isinstance(op, loom.ConstantOp) and op.cells is None


@dataclass(frozen=True)
class LoomSimplify(ModulePass):
    """Fold views into readers; remove what is repeated or unused.

    With `writers`, a reshape that is left folds into the operation that computes its source. Its
    output's rows then mix dimensions, so fewer partitions suit it: best after sharding.
    """

    name = "loom-simplify"

    writers: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns: list[RewritePattern] = [
            RemoveIdentityView(),
            FoldViewOfView(),
            FoldReshapeOfReshape(),
            RemoveIdleClip(),
            FoldViewIntoReader(),
            FoldReshapeIntoView(),
            FoldReshapeIntoReader(),
            *ASSEMBLY_PATTERNS,
            FoldViewIntoWriter(),
            MergeEqualReads(),
            FoldInsideOnly(),
            FoldViewOfEqualCells(),
            WriteEqualCellsIntoBody(),
            ComputeSequence(),
            ComputeFromCoordinates(),
            DropUnusedOutputs(),
            FoldOfOnePoint(),
            ComputeRepeatedOnce(),
            ComputeIntegers(),
            ReadChosen(),
        ]
        late: list[RewritePattern] = [FoldReshapeIntoWriter()] if self.writers else []
        changed = True
        with collection_paused():
            while changed:
                PatternRewriteWalker(GreedyRewritePatternApplier(patterns)).rewrite_module(op)
                # One sweep in program order: operands are merged before what reads them.
                merge = MergeEqualOperations()
                changed = PatternRewriteWalker(merge, apply_recursively=False).rewrite_module(op)
                # What no reader could take is left to writers.
                if late and not changed:
                    changed = PatternRewriteWalker(
                        GreedyRewritePatternApplier(late)
                    ).rewrite_module(op)
