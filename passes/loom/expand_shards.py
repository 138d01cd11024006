"""`loom-expand-shards`: partitions spelled out as one application per shard.

    %y = loom.operation @double over <[0] : [8]> [map] ... shards <grid [[0, 4, 8]]> ...

becomes

    %0 = loom.application @double over <[0] : [4]> (%x <[0] : [4]>) : ...
    %1 = loom.application @double over <[4] : [8]> (%x <[4] : [8]>) : ...
    %y = loom.assemble %0, %1 : ...

with the body kept once, as `loom.kernel @double`. Where fold dimensions are split, applications are
`partial` and a `loom.merge` per box of the map dimensions finishes them.

Input: any verified loom program. Output: the same values; operations without a partition stay.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType, tensor_type
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom._bodies import kind
from tapestry.zspace import Partition, Range, ZSpaceError


@dataclass
class ExpandShards(RewritePattern):
    """One application per shard of an operation that has a partition.

    Legal because the verifier has checked that the shards tile the index space and write boxes that
    tile each output, and because the monoid is associative: states of shards merge in the order of
    the partition, which is checked to be row-major along the fold unless the monoid commutes.
    """

    module: ModuleOp
    kernels: dict[Hashable, str] = field(default_factory=dict[Hashable, str])
    names: set[str] = field(default_factory=set[str])

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op.partition is None:
            return
        kernel = self._kernel(op, rewriter)
        whole_fold = op.fold_range(op.index)
        shards = op.partition.ranges()
        new: list[Operation] = []
        parts: list[list[SSAValue]] = [[] for _ in op.outs]
        if all(op.fold_range(shard) == whole_fold for shard in shards):
            for shard in shards:
                applied = _application(op, kernel, shard)
                new.append(applied)
                _append(parts, applied.outs)
        else:
            for kept_box, group in _merge_groups(op, shards):
                states = [_partial(op, kernel, shard) for shard in group]
                merged = loom.MergeOp(
                    kernel,
                    kept_box,
                    [part for state in states for part in state.outs],
                    op.extras,
                    _written(op, kept_box),
                )
                new += [*states, merged]
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

    def _kernel(self, op: loom.OperationOp, rewriter: PatternRewriter) -> str:
        """The name of the kernel that says what `op` does; equal operations share one."""
        key = kind(op, without=("shards",))
        name = self.kernels.get(key)
        if name is None:
            name = op.label.data
            number = 1
            while name in self.names:
                name = f"{op.label.data}_{number}"
                number += 1
            self.names.add(name)
            self.kernels[key] = name
            kernel = loom.KernelOp(name, op)
            kernel.location = op.location
            rewriter.insert(kernel, InsertPoint.at_start(self.module.body.block))
        return name


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
    kept_box = op.kept_range(shard)
    ins = [(v, p.apply_range(shard)) for v, p in zip(op.ins, op.in_maps, strict=True)]
    extras = [(v, p.apply_range(kept_box)) for v, p in zip(op.extras, op.extra_maps, strict=True)]
    return loom.ApplicationOp(kernel, shard, [*ins, *extras], _written(op, kept_box))


def _partial(op: loom.OperationOp, kernel: str, shard: Range) -> loom.ApplicationOp:
    kept_box = op.kept_range(shard)
    ins = [(v, p.apply_range(shard)) for v, p in zip(op.ins, op.in_maps, strict=True)]
    states = [TensorType.of(kept_box, kind) for kind in op.state_types]
    return loom.ApplicationOp(kernel, shard, ins, states, partial=True)


def _merge_groups(
    op: loom.OperationOp, shards: Sequence[Range]
) -> list[tuple[Range, Sequence[Range]]]:
    """Shards whose states meet, with the box of the map dimensions where they do.

    Shards with one map box are a group, if such boxes tile the map dimensions; else all are one.
    """
    groups: dict[Range, list[Range]] = {}
    for shard in shards:
        groups.setdefault(op.kept_range(shard), []).append(shard)
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pattern = ExpandShards(op)
        for existing in op.body.block.ops:
            name = existing.properties.get("sym_name")
            if isinstance(name, StringAttr):
                pattern.names.add(name.data)
        with collection_paused():
            PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(op)
