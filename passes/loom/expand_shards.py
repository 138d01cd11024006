"""`loom-expand-shards`: partitions spelled out as one application per shard.

    %y = loom.operation @double over <[0] : [8]> [map] ... shards <grid [[0, 4, 8]]> ...

becomes

    %0 = loom.application @double over <[0] : [4]> (%x <[0] : [4]>) : ...
    %1 = loom.application @double over <[4] : [8]> (%x <[4] : [8]>) : ...
    %y = loom.assemble %0, %1 : ...

with the body kept once, as `loom.kernel @double`. Where a fold or a scan is split, applications are
`partial` and a `loom.merge` per box of the other dimensions finishes them: it merges what shards
folded, and lets each part of a scan go on from the one before it. A part of a state is stored over
the dimensions that it varies along, where the shards of a merge cover the others. With `arity=4` no
merge takes more than four states where runs of them make boxes: partial merges form a tree. The
shards of a group become groups.

Input: any verified loom program. Output: the same values; operations without a partition stay.
Attributes that no dialect declares go to what says what is done: to the kernel of an operation, and
to each part of an external kernel or a group.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.algebra.parts import Axes, varying_axes
from tapestry.diagnostics import UsageError
from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType, tensor_type
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.rebuilding.bodies import kind
from tapestry.passes.loom.shards.groups import ExpandGroup, UngroupMerging
from tapestry.passes.loom.shards.merge_trees import (
    State,
    merge_runs,
    part_projections,
    splits_states,
    state_tensors,
    storable_axes,
)
from tapestry.zspace import Partition, Projection, Range, ZSpaceError


@dataclass
class ExpandShards(RewritePattern):
    """One application per shard of an operation that has a partition.

    Legal because the verifier has checked that the shards tile the index space and write boxes that
    tile each output, and because the monoid is associative: states of shards merge in the order of
    the partition, which is checked to be row-major along the fold unless the monoid commutes, and
    from first to last along a scan. A tree merges runs of that order, so it keeps the order too.
    """

    module: ModuleOp
    arity: int | None = None
    kernels: dict[Hashable, str] = field(default_factory=dict[Hashable, str])
    names: set[str] = field(default_factory=set[str])

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op.partition is None:
            return
        shards = op.partition.ranges()
        new: list[Operation] = []
        parts: list[list[SSAValue]] = [[] for _ in op.outs]
        if not splits_states(op, shards):
            kernel = self._kernel(op, None, rewriter)
            for shard in shards:
                applied = _application(op, kernel, shard)
                new.append(applied)
                _append(parts, applied.outs)
        else:
            groups, varying = _merge_groups(op, shards), varying_axes(op)
            stored = [
                storable_axes(varying, map(op.kept_range, group), box) for box, group in groups
            ]
            kernel = self._kernel(op, part_projections(op, stored), rewriter)
            for (kept_box, group), axes in zip(groups, stored, strict=True):
                states = [_partial(op, kernel, shard, axes) for shard in group]
                new += states
                runs = [State(shard, tuple(s.outs)) for shard, s in zip(group, states, strict=True)]
                if self.arity is not None:
                    inner, runs = merge_runs(op, kernel, runs, self.arity, axes)
                    new += inner
                merged = loom.MergeOp(
                    kernel,
                    kept_box,
                    [part for run in runs for part in run.parts],
                    op.extras,
                    _written(op, kept_box),
                )
                new.append(merged)
                _append(parts, merged.outs)
        results: list[SSAValue] = []
        for out, values in zip(op.outs, parts, strict=True):
            assembled = loom.AssembleOp(values, tensor_type(out))
            assembled.result.name_hint = out.name_hint
            new.append(assembled)
            results.append(assembled.result)
        for created in new:
            created.location = op.location
        rewriter.replace(op, new, results)

    def _kernel(
        self,
        op: loom.OperationOp,
        parts: tuple[Projection, ...] | None,
        rewriter: PatternRewriter,
    ) -> str:
        """The name of the kernel that says what `op` does; equal operations share one."""
        key = (kind(op, without=("shards",)), parts)
        name = self.kernels.get(key)
        if name is None:
            name = op.label.data
            number = 1
            while name in self.names:
                name = f"{op.label.data}_{number}"
                number += 1
            self.names.add(name)
            self.kernels[key] = name
            kernel = loom.KernelOp(name, op, parts)
            kernel.attributes.update(op.attributes)
            kernel.location = op.location
            rewriter.insert(kernel, InsertPoint.at_start(self.module.body.block))
        return name


class ExpandExternal(RewritePattern):
    """Replace a split external kernel by one for each shard, and assemble what they write.

    Legal because each point reads and writes its own boxes: those of a part of the index space are
    what the projections select over it, and the verifier has checked that the parts write apart.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ExternalOp, rewriter: PatternRewriter) -> None:
        if op.partition is None:
            return
        parameters = None if op.parameters is None else op.parameters.data
        ins = list(zip(op.ins, op.in_maps, strict=True))
        parts = [
            loom.ExternalOp(
                op.callee.data,
                shard,
                ins,
                [
                    (p, TensorType.of(p.apply_range(shard), tensor_type(out).element_type))
                    for p, out in zip(op.out_maps, op.outs, strict=True)
                ],
                parameters=parameters,
            )
            for shard in op.partition.ranges()
        ]
        assembled = [
            loom.AssembleOp([part.outs[place] for part in parts], tensor_type(out))
            for place, out in enumerate(op.outs)
        ]
        for part in parts:
            part.attributes.update(op.attributes)
        for created in (*parts, *assembled):
            created.location = op.location
        for out, whole in zip(op.outs, assembled, strict=True):
            whole.result.name_hint = out.name_hint
        rewriter.replace(op, [*parts, *assembled], [whole.result for whole in assembled])


def _append(parts: Sequence[list[SSAValue]], values: Sequence[SSAValue]) -> None:
    for part, value in zip(parts, values, strict=True):
        part.append(value)


def _written(op: loom.OperationOp, kept_box: Range) -> list[TensorType]:
    """The parts of the outputs that a box of the map dimensions writes."""
    pairs = zip(op.out_maps, op.outs, strict=True)
    return [
        TensorType.of(projection.apply_range(kept_box), tensor_type(out).element_type)
        for projection, out in pairs
    ]


def _application(op: loom.OperationOp, kernel: str, shard: Range) -> loom.ApplicationOp:
    tensors = [tensor_type(value).box for value in op.operands]
    args = zip(op.operands, op.selections(shard, tensors), strict=True)
    return loom.ApplicationOp(kernel, shard, list(args), _written(op, op.kept_range(shard)))


def _partial(
    op: loom.OperationOp, kernel: str, shard: Range, axes: Sequence[Axes]
) -> loom.ApplicationOp:
    tensors = [tensor_type(value).box for value in op.ins]
    args = zip(op.ins, op.selections(shard, tensors, partial=True), strict=True)
    states = state_tensors(op, op.kept_range(shard), axes)
    return loom.ApplicationOp(kernel, shard, list(args), states, partial=True)


def _merge_groups(
    op: loom.OperationOp, shards: Sequence[Range]
) -> list[tuple[Range, Sequence[Range]]]:
    """Shards whose states meet, with the box of the kept dimensions where they do.

    Shards with one kept box (the scan apart, which is whole there) are a group, if such boxes tile
    the kept dimensions; else all are one.
    """
    groups: dict[Range, list[Range]] = {}
    for shard in shards:
        box = op.kept_range(shard)
        if op.scan_dim is not None:
            box = box.with_sides({op.scan_dim: op.index.sides[op.scan_dim]})
        groups.setdefault(box, []).append(shard)
    whole = op.kept_range(op.index)
    try:
        Partition.explicit(groups).check(whole)
    except ZSpaceError:
        return [(whole, shards)]
    return list(groups.items())


@dataclass(frozen=True)
class LoomExpandShards(ModulePass):
    """Spell partitions out, one application per shard."""

    name = "loom-expand-shards"

    arity: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.arity is not None and self.arity < 2:
            raise UsageError(
                f"loom-expand-shards: arity must be at least 2, not {self.arity}",
                hint="leave it out to merge all states of a box at once",
            )
        pattern = ExpandShards(op, self.arity)
        for existing in op.body.block.ops:
            name = existing.properties.get("sym_name")
            if isinstance(name, StringAttr):
                pattern.names.add(name.data)
        with collection_paused():
            PatternRewriteWalker(UngroupMerging(), apply_recursively=False).rewrite_module(op)
            expansions: list[RewritePattern] = [pattern, ExpandExternal(), ExpandGroup()]
            patterns = GreedyRewritePatternApplier(expansions, dce_enabled=False)
            PatternRewriteWalker(patterns, apply_recursively=False).rewrite_module(op)
