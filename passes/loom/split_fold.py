"""`loom-split-fold`: parts of a fold side by side, and a fold of what they folded.

    %y = loom.operation @sum over <[0, 0] : [4, 4096]> [map, fold] by @add
           ins(%x : (i, j) -> (i, j)) ...

becomes, under `loom-split-fold{parts=8}`,

    %p = loom.operation @sum over <[0, 0, 0] : [4, 8, 512]> [map, map, fold] by @add
           ins(%x : (i, s, j) -> (i, 512 * s + j)) outs((i, s) -> (i, s)) ...
    %y = loom.operation @sum_merge over <[0, 0] : [4, 8]> [map, fold] by @add ins(%p : ...) ...

A shard of a fold runs after another; these parts are points like any others, so programs of one
kernel fold them at once: where there are few rows and many cells, as in attention for one query
(split-KV decoding), that is what fills a machine. The state is a tensor for each of its parts, over
the dimensions that it varies along. A group is split as a whole: its members over the dimension
are refined alike, and it writes states, which an operation after it merges.

Options: `parts`, about how many (the greatest number up to it that divides the extent), `least`,
how many points each has at least, `op` (a label; all operations without it) and `dim` (without it
the dimension that is split in most parts, the longest of such; where merges do not commute, the
first that is folded).
Input: any verified loom program. Output: the same values; sums of floats are reassociated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.algebra.monoids import accumulating, monoid_of
from tapestry.algebra.parts import varying_axes
from tapestry.diagnostics import UsageError
from tapestry.dialects import loom
from tapestry.dialects._loom_group_rules import member_dim, why_whole
from tapestry.dialects.loom import Read, TensorType, tensor_type
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.group import plan_kernel
from tapestry.passes.loom.grouping.one_kernel import Limits
from tapestry.passes.loom.grouping.plan import Plan, put_group
from tapestry.passes.loom.rebuilding.bodies import in_group, reindex
from tapestry.passes.loom.rebuilding.digits import Split, refine
from tapestry.passes.loom.rebuilding.operations import Write, writes_of
from tapestry.zspace import AffineMap, Projection, Range

ENDS = "ends"
"""The attribute in which a fold that writes states says of which types its results are."""


@dataclass(frozen=True)
class Choice:
    """About how many parts of at least how many points, of which operation, along which dimension.

    Operations are chosen by label.
    """

    parts: int
    least: int
    op: str | None = None
    dim: int | None = None

    def split(self, op: loom.OperationOp | loom.FusedOp) -> Split | None:
        """How an operation is split; None when it is not."""
        if self.op is not None and op.label.data != self.op:
            return None
        dims = _may_be_parts(op) if isinstance(op, loom.FusedOp) else op.fold_dims
        dims = tuple(dim for dim in dims if _keeps_order(op, dim))
        if self.dim is not None:
            dims = tuple(dim for dim in dims if dim == self.dim)
        if op.partition is not None:
            return None
        counts = {dim: self._count(op, dim) for dim in dims}
        dim = max(dims, key=lambda dim: (counts[dim], op.index.shape[dim]), default=None)
        if dim is None or counts[dim] == 1:
            return None
        return Split(dim, op.index.shape[dim] // counts[dim])

    def _count(self, op: loom.OperationOp | loom.FusedOp, dim: int) -> int:
        """How many parts a dimension is split in: the greatest number that divides it."""
        extent = op.index.shape[dim]
        return count_parts(extent, min(self.parts, _folded(op, dim) // self.least))


def count_parts(extent: int, most: int) -> int:
    """The greatest number up to `most` that divides an extent; at least 1."""
    return next((n for n in range(min(most, extent), 0, -1) if extent % n == 0), 1)


def may_be_stored(op: loom.OperationOp) -> bool:
    """Whether the state of a fold or a scan is kept in the types that it is written in."""
    monoid = monoid_of(op)
    return monoid is not None and accumulating(monoid) is monoid


def check_parts(parts: int, least: int) -> None:
    """Refuse numbers of parts, and of their points, that are not possible."""
    for name, number in (("parts", parts), ("least", least)):
        if number < 1:
            raise UsageError(f"{name} = {number} is not possible", hint="at least 1")


@dataclass(frozen=True)
class SplitOperation(RewritePattern):
    """A fold becomes a fold of its parts, and one of their states.

    Legal because merges associate, and parts are folded and merged in order: where they do not
    commute, along the first dimension that is folded alone. A state that executors keep in a wider
    type than it is written in is left alone: it would be rounded in between.
    """

    choice: Choice

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        split = self.choice.split(op)
        if split is None or in_group(op) or not may_be_stored(op):
            return
        refined = refine(op, [split], rewriter)
        dims = _dims(refined, split.dim)
        partial = _partial(refined, split.dim, dims)
        merge = _merge(refined, split.dim, dims, partial.outs, refined.extras, rewriter)
        rewriter.insert([partial, merge], InsertPoint.before(refined))
        for old, new in zip(refined.outs, merge.outs, strict=True):
            new.name_hint = old.name_hint
        rewriter.replace(refined, [], merge.outs)


@dataclass(frozen=True)
class SplitGroup(RewritePattern):
    """A group becomes one over a refined dimension, whose folds along it fold parts.

    Legal where the group's shards could cut the dimension if they finished no fold along it
    (`merged_dims`): members fold along it for outputs, or to finish another such fold, as a mean
    divides one sum by another. Folds that do not commute fold it first. What is written along it is
    read along it at the same points, refined or not.
    """

    choice: Choice

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.FusedOp, rewriter: PatternRewriter) -> None:
        split = self.choice.split(op)
        if split is None:
            return
        owns = [member_dim(place, split.dim) for _, place in op.aligned]
        folding = [
            place
            for place, (member, own) in enumerate(zip(op.members, owns, strict=True))
            if own is not None and own in member.fold_dims
        ]
        if not all(may_be_stored(op.members[place]) for place in folding):
            return
        places = [_refined(place, split, op.index) for _, place in op.aligned]
        for member, own in zip(op.members, owns, strict=True):
            if own is not None:
                refine(member, [Split(own, split.inner)], rewriter)
        chosen = [(op.members[place], owns[place] or 0) for place in folding]
        folds = [(member, own, _dims(member, own)) for member, own in chosen]
        kept = [value for value in op.yielded if value.owner not in [f[0] for f in folds]]
        states: list[SSAValue] = []
        for member, own, dims in folds:
            partial = _partial(member, own, dims)
            rewriter.insert(partial, InsertPoint.before(member))
            states += partial.outs
        outs = dict(zip(op.yielded, op.outs, strict=True))
        body = op.detach_region(op.body)
        end = body.block.last_op
        assert end is not None
        rewriter.replace(end, loom.YieldOp(*kept, *states))
        written = [*kept, *states]
        group = loom.FusedOp(
            op.label.data,
            split.range(op.index),
            places,
            op.ins,
            [tensor_type(value) for value in written],
            body,
        )
        group.location = op.location
        rewriter.insert(group, InsertPoint.before(op))
        for value, result in zip(written, group.outs, strict=True):
            result.name_hint = value.name_hint
        # What tensors in the group are outside: operands, outputs, and what its folds merge to.
        made = dict(zip([*body.block.args, *kept], [*op.ins, *group.outs], strict=False))
        left = list(group.outs[len(kept) :])
        merges: list[loom.OperationOp] = []
        for member, own, dims in folds:
            own_states, left = left[: len(member.state_types)], left[len(member.state_types) :]
            extras = [made[value] for value in member.extras]
            merge = _merge(member, own, dims, own_states, extras, rewriter)
            rewriter.insert(merge, InsertPoint.before(op))
            made |= zip(member.outs, merge.outs, strict=True)
            merges.append(merge)
        for member, *_ in reversed(folds):
            rewriter.erase(member)
        for value, out in outs.items():
            made[value].name_hint = out.name_hint
        rewriter.replace(op, [], [made[value] for value in outs])
        _put_together(merges, rewriter)


def _put_together(merges: Sequence[loom.OperationOp], rewriter: PatternRewriter) -> None:
    """Merge in one group what one group folded, where one merge finishes with another's result."""
    results = {out for merge in merges for out in merge.outs}
    if not any(value in results for merge in merges for value in merge.extras):
        return
    plan = plan_kernel(merges, Limits())
    if isinstance(plan, Plan):
        put_group(plan, None, rewriter)


def _may_be_parts(op: loom.FusedOp) -> tuple[int, ...]:
    """The dimensions of which a group may fold parts that are finished after it."""
    dims = set(range(op.index.rank)) - set(op.map_dims)
    return tuple(dim for dim in sorted(dims) if why_whole(op, dim, finished=False) is None)


def _folded(op: loom.OperationOp | loom.FusedOp, dim: int) -> int:
    """How many points are folded into one cell along a dimension and those folded with it.

    Of a group's folds along it, the fewest.
    """
    if isinstance(op, loom.OperationOp):
        return prod(op.index.shape[d] for d in op.merged_dims)
    owns = [
        (member, member_dim(place, dim))
        for member, (_, place) in zip(op.members, op.aligned, strict=True)
    ]
    return min(
        prod(member.index.shape[d] for d in member.merged_dims)
        for member, own in owns
        if own in member.merged_dims
    )


def _keeps_order(op: loom.OperationOp | loom.FusedOp, dim: int) -> bool:
    """Whether states of parts along a dimension, one after another, fold as the whole does.

    They always do where merges commute. Elsewhere the points of a part must be neighbours in the
    order of folds: no other dimension that is folded, and has several places, comes before it.
    """
    if isinstance(op, loom.FusedOp):
        owns = [member_dim(place, dim) for _, place in op.aligned]
        members = list(zip(op.members, owns, strict=True))
    else:
        members = [(op, dim)]
    for member, own in members:
        monoid = monoid_of(member)
        if own not in member.fold_dims or monoid is None or monoid.commutative:
            continue
        if own != next((d for d in member.fold_dims if member.index.shape[d] > 1), own):
            return False
    return True


def _refined(place: AffineMap, split: Split, index: Range) -> AffineMap:
    """Where a member is in a refined group, refined itself if it has the dimension."""
    moved = place.compose(split.map(index))
    own = member_dim(place, split.dim)
    if own is None:
        return moved
    units = [[int(d == dim) for d in range(moved.inputs)] for dim in (split.dim, split.dim + 1)]
    matrix = [*moved.matrix[:own], *units, *moved.matrix[own + 1 :]]
    return AffineMap.of(matrix, [*moved.offset[:own], 0, 0, *moved.offset[own + 1 :]])


def _dims(op: loom.OperationOp, dim: int) -> list[tuple[int, ...]]:
    """Per part of a fold's state, the index dimensions to store it over, `dim` first."""
    return [(dim, *(op.kept_dims[axis] for axis in axes)) for axes in varying_axes(op)]


def _partial(op: loom.OperationOp, dim: int, stored: Sequence[tuple[int, ...]]) -> loom.OperationOp:
    """The fold of an operation with `dim` mapped, which writes states over some dimensions."""
    kinds: list[loom.Iterator] = list(op.kinds)
    kinds[dim] = "map"
    kept = [d for d, kind in enumerate(kinds) if kind != "fold"]
    every = Projection.identity(len(kept))
    outs: list[Write] = []
    for dims, kind in zip(stored, op.state_types, strict=True):
        projection = every.select_outputs([kept.index(d) for d in dims])
        outs.append((projection, TensorType.of(op.index.select(dims), kind)))
    ends = ArrayAttr([tensor_type(out).element_type for out in op.outs])
    partial = loom.OperationOp(
        op.label.data,
        op.index,
        kinds,
        op.monoid_name,
        op.in_reads,
        outs,
        op.wrap.clone(),
        inside=op.inside,
        attributes={**op.attributes, ENDS: ends},
    )
    partial.location = op.location
    for result in partial.outs:
        result.name_hint = op.outs[0].name_hint
    return partial


def _merge(
    op: loom.OperationOp,
    dim: int,
    dims: Sequence[tuple[int, ...]],
    states: Sequence[SSAValue],
    extras: Sequence[SSAValue],
    rewriter: PatternRewriter,
) -> loom.OperationOp:
    """The fold along `dim` of states that parts of an operation left, stored over `dims`.

    It takes the unwrap body.
    """
    kept = op.kept_dims
    order = [*kept, dim]
    kinds: list[loom.Iterator] = [*("map" for _ in kept), "fold"]
    every = Projection.identity(len(order))
    ins = [
        Read(value, every.select_outputs([order.index(d) for d in own]))
        for value, own in zip(states, dims, strict=True)
    ]
    elements = [tensor_type(value).element_type for value in states]
    wrap = Block(arg_types=elements)
    wrap.add_op(loom.YieldOp(*wrap.args))
    unwrap = op.detach_region(op.unwrap)
    if unwrap.blocks:
        rows = [[int(k == d) for k in kept] for d in range(op.index.rank)]
        places = AffineMap.of(rows, inputs=len(kept))
        reindex(unwrap.block, places, range(len(kept)), rewriter)
    reads = zip(extras, op.extra_reads, strict=True)
    merge = loom.OperationOp(
        f"{op.label.data}_merge",
        op.index.select(order),
        kinds,
        op.monoid_name,
        ins,
        writes_of(op),
        Region(wrap),
        extras=[read._replace(value=value) for value, read in reads],
        unwrap=unwrap,
    )
    merge.location = op.location
    return merge


@dataclass(frozen=True)
class LoomSplitFold(ModulePass):
    """Fold parts side by side."""

    name = "loom-split-fold"

    parts: int
    least: int = 128
    op: str | None = None
    dim: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split the folds that are chosen."""
        check_parts(self.parts, self.least)
        choice = Choice(self.parts, self.least, self.op, self.dim)
        with collection_paused():
            # Groups last: folds of the states that they leave are not to be split again.
            for pattern in (SplitOperation(choice), SplitGroup(choice)):
                PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(op)
