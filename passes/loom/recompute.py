"""`loom-recompute`: what several kernels read is computed in each of them rather than stored.

    %m = loom.operation @m over <[0, 0] : [4, 64]> [map, fold] by @max ins(%x ...) ...
    %e = loom.operation @e over <[0, 0] : [4, 64]> [map, map] ins(%x ..., %m : (d0, d1) -> (d0)) ...
    %f = loom.fused @f over <[0, 0] : [4, 64]> ins(%x, %m) ...

becomes

    %e = loom.fused @m_e over <[0, 0] : [4, 64]> ins(%x) group {@m ... @e ...} ...
    %f = loom.fused @f over <[0, 0] : [4, 64]> ins(%x) group {@m ... @f's members ...} ...

Recomputing is a member that stands in several groups. Options: `op` names by label what is computed
again, all that is worth it without it; `recompute=16` is how many scalar operations may be computed
again for each byte that is not moved, as of `loom-fuse`.

Input: any verified loom program, best grouped. Output: the same values. Every rewrite takes away a
tensor that was stored and makes none, so it terminates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.diagnostics import InvalidProgramError, UsageError
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.graph import scalar_operations, traffic
from tapestry.locations import fuse_locations, location_of
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.fusion.joining import joined_label
from tapestry.passes.loom.grouping.alignment import align
from tapestry.passes.loom.rebuilding.bodies import in_group

Kernel = loom.OperationOp | loom.FusedOp
"""What becomes a kernel and may hold a member more."""


class IllegalRecomputationError(InvalidProgramError):
    """What cannot be computed again by those that read it."""

    kind = "illegal_recomputation"


@dataclass(frozen=True)
class Recompute(RewritePattern):
    """An operation that several kernels read becomes a member of each of them.

    Legal when nothing else reads it, none of them is split, and in each the dimensions of its
    members align with its own (`align`): a group reads what it writes where the same point writes
    it. Done for `op`, or for what is computed again at most `recompute` times per byte saved.
    """

    op: str | None
    recompute: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if in_group(op) or self.op not in (None, op.label.data):
            return
        groups = grown(op)
        if isinstance(groups, str):
            return
        worth = self.op is not None or is_worth_it(op, groups, self.recompute)
        for reader, group in groups.items():
            if not worth:
                group.erase()
                continue
            for old, new in zip(reader.outs, group.outs, strict=True):
                new.name_hint = old.name_hint
            rewriter.replace(reader, group)
        if worth:
            rewriter.erase(op)


def grown(op: loom.OperationOp) -> dict[Kernel, loom.FusedOp] | str:
    """The kernels that read an operation, with it as a member; why there are none.

    The groups stand nowhere yet.
    """
    readers = list(dict.fromkeys(use.operation for out in op.outs for use in out.uses))
    if len(readers) < 2:
        return f"{len(readers)} kernels read what {op.subject} writes, not several"
    found: dict[Kernel, loom.FusedOp] = {}
    reason: str | None = None
    for reader in readers:
        if not isinstance(reader, Kernel):
            reason = f"{reader.name} reads what {op.subject} writes, so it is stored anyway"
        elif reader.parent is not op.parent:
            reason = f"{reader.subject} does not stand in one block with {op.subject}"
        elif reader.partition is not None or op.partition is not None:
            reason = f"{reader.subject} or {op.subject} is split"
        else:
            group = _with_member(op, reader)
            if isinstance(group, str):
                reason = f"{op.subject} is no member of a group with {reader.subject}: {group}"
            else:
                found[reader] = group
        if reason is not None:
            for group in found.values():
                group.erase()
            return reason
    return found


def is_worth_it(
    op: loom.OperationOp, groups: Mapping[Kernel, loom.FusedOp], recompute: int
) -> bool:
    """Whether few enough scalar operations are computed again for each byte that is not moved."""
    again = scalar_operations(op).total() * (len(groups) - 1)
    before = traffic(op).read + traffic(op).written
    before += sum(traffic(reader).read for reader in groups)
    after = sum(traffic(group).read for group in groups.values())
    return again <= recompute * (before - after)


def _with_member(op: loom.OperationOp, reader: Kernel) -> loom.FusedOp | str:
    """A group of an operation and of what reads it; why they are none."""
    outer: dict[SSAValue, SSAValue] = {}
    members: Sequence[loom.OperationOp] = [reader] if isinstance(reader, loom.OperationOp) else ()
    yielded: Sequence[SSAValue] = reader.outs
    if isinstance(reader, loom.FusedOp):
        members, yielded = reader.members, reader.yielded
        outer = dict(zip(reader.body.block.args, reader.ins, strict=True))
    block = Block()
    ins: list[SSAValue] = []
    inside: dict[SSAValue, SSAValue] = {}
    copies: list[loom.OperationOp] = []
    for member in (op, *members):
        values: dict[SSAValue, SSAValue] = {}
        for operand in member.operands:
            value = outer.get(operand, operand)
            if value not in inside:
                inside[value] = block.insert_arg(value.type, len(ins))
                inside[value].name_hint = value.name_hint
                ins.append(value)
            values[operand] = inside[value]
        copy = member.clone(value_mapper=values)
        block.add_op(copy)
        copies.append(copy)
        inside.update(zip(member.outs, copy.outs, strict=True))
    alignment = align(copies)
    if isinstance(alignment, str):
        block.erase()
        return alignment
    block.add_op(loom.YieldOp(*(inside[value] for value in yielded)))
    group = loom.FusedOp(
        joined_label(op, reader),
        alignment.index,
        alignment.maps,
        ins,
        [tensor_type(out) for out in reader.outs],
        Region(block),
    )
    group.location = fuse_locations(op.location, reader.location)
    problems = group.problems()
    if problems:
        group.erase()
        return problems[0].message
    return group


@dataclass(frozen=True)
class LoomRecompute(ModulePass):
    """Compute what several kernels read in each of them."""

    name = "loom-recompute"

    op: str | None = None
    recompute: int = 16

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.recompute < 0:
            raise UsageError(f"loom-recompute: recompute must be at least 0, not {self.recompute}")
        if self.op is not None:
            self._require(op, self.op)
        with collection_paused():
            # From the end on: an operation is looked at when what it feeds has been.
            pattern = Recompute(self.op, self.recompute)
            walker = PatternRewriteWalker(pattern, walk_reverse=True, apply_recursively=False)
            walker.rewrite_module(op)

    def _require(self, module: ModuleOp, label: str) -> None:
        """Raise an error unless what is named can be computed again."""
        found: list[Operation] = []
        for op in module.walk():
            if isinstance(op, loom.OperationOp) and op.label.data == label and not in_group(op):
                found.append(op)
                groups = grown(op)
                if isinstance(groups, str):
                    raise IllegalRecomputationError(
                        f"@{label} is not computed again: {groups}", location=location_of(op)
                    )
                for group in groups.values():
                    group.erase()
        if not found:
            raise UsageError(f"loom-recompute: there is no operation @{label} outside of groups")
