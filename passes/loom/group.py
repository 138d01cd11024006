"""`loom-group`: operations put into a `loom.fused`, to become one kernel.

    %e = loom.operation @exp ...
    %s = loom.operation @sum over <[0, 0] : [4, 8]> [map, fold] by @add ins(%e : ...) ...

becomes

    %s = loom.fused @exp_sum over <[0, 0] : [4, 8]>
           aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1)) ins(%x) group (%a: !x) {
             %e = loom.operation @exp ...   %s = loom.operation @sum ...   loom.yield %s : !y } ...

Options: `ops=exp,sum` names the members by label (one operation each), `label` the group. Without
`ops`, each operation is grouped with the one operation that reads what it writes, pair by pair.

Input: any verified loom program. Output: the same values: members are whole operations, and
`loom-ungroup` puts them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.diagnostics import InvalidProgramError, UsageError
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.locations import fuse_locations, location_of
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom._alignment import Alignment, align
from tapestry.passes.loom._bodies import in_group
from tapestry.zspace import Partition


class IllegalGroupError(InvalidProgramError):
    """Operations that cannot be a group."""

    kind = "illegal_group"


@dataclass(frozen=True)
class GroupPair(RewritePattern):
    """An operation and its only reader become a group.

    Legal when both stand in one block, nothing but the reader uses what the first writes, and the
    two align (`plan_group`).
    """

    label: str | None = None

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        readers = {use.operation for out in op.outs for use in out.uses}
        if len(readers) != 1 or in_group(op):
            return
        (reader,) = readers
        if isinstance(reader, loom.OperationOp):
            plan = plan_group([op, reader])
            if isinstance(plan, Plan):
                _replace(plan, self.label, rewriter)


@dataclass(frozen=True)
class GroupChosen(RewritePattern):
    """Given operations become a group; legal when `plan_group` finds nothing against it."""

    plan: Plan
    label: str | None = None

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op is self.plan.members[-1]:
            _replace(self.plan, self.label, rewriter)


@dataclass(frozen=True)
class Plan:
    """Members in program order, how they align, and how the group is split."""

    members: tuple[loom.OperationOp, ...]
    alignment: Alignment
    partition: Partition | None = field(default=None)


def plan_group(operations: Sequence[loom.OperationOp]) -> Plan | str:
    """How operations of one block become a group, or why they do not.

    Something must read what each member writes, but nothing outside that stands between members:
    the group stands where its last member does. Dimensions must align, and members that are split
    must be split on one grid of the group's dimensions, which the group then is: that must be legal
    for a group.
    """
    block = operations[0].parent
    if block is None or any(op.parent is not block for op in operations):
        return "its operations do not stand in one block"
    chosen = set[Operation](operations)
    members = tuple(op for op in block.ops if op in chosen and isinstance(op, loom.OperationOp))
    for member in members:
        if not any(out.first_use for out in member.outs):
            return f"nothing reads what {_name(member)} writes"
    between: Operation | None = members[0].next_op
    while between is not None and between is not members[-1]:
        if between not in chosen:
            for operand in between.operands:
                if operand.owner in chosen:
                    return f"{_name(between)} between its members reads what one of them writes"
        between = between.next_op
    alignment = align(members)
    if isinstance(alignment, str):
        return alignment
    partition = _joint_partition(members, alignment)
    if isinstance(partition, str):
        return partition
    plan = Plan(members, alignment, partition)
    return _why_not_split(plan) or plan


def _why_not_split(plan: Plan) -> str | None:
    """Why the group cannot be split as its members are; None when it can."""
    if plan.partition is None:
        return None
    group = _group(plan, None)[0]
    problems = group.sharding_problems(plan.partition)
    group.erase()
    return "; ".join(problem.message for problem in problems) or None


def _name(op: Operation) -> str:
    return f"@{op.label.data}" if isinstance(op, loom.OperationOp | loom.FusedOp) else op.name


def _joint_partition(
    members: Sequence[loom.OperationOp], alignment: Alignment
) -> Partition | str | None:
    """The grid that the members' partitions are of, None when all are whole."""
    if all(member.partition is None for member in members):
        return None
    whole = [list(bounds) for bounds in alignment.bounds]
    cuts: list[list[int] | None] = [None] * len(whole)
    for member, places in zip(members, alignment.members, strict=True):
        own = member.partition
        if own is not None and own.cuts is None:
            return f"@{member.label.data} is not split on a grid"
        for dim, place in enumerate(places):
            have = whole[place.dim]
            if own is not None and own.cuts is not None:
                have = [cut - place.shift for cut in own.cuts[dim]]
            known = cuts[place.dim]
            if known is not None and known != have:
                return f"@{member.label.data} is split otherwise than a member before it"
            cuts[place.dim] = have
    return Partition.grid(have or [] for have in cuts)


def _group(plan: Plan, label: str | None) -> tuple[loom.FusedOp, Sequence[OpResult]]:
    """The group of a plan, and the members' results that its outputs stand for."""
    members = plan.members
    inside = set[Operation](members)
    ins = list(dict.fromkeys(v for m in members for v in m.operands if v.owner not in inside))
    outs = [
        out
        for member in members
        for out in member.outs
        if any(use.operation not in inside for use in out.uses)
    ]
    block = Block(arg_types=[value.type for value in ins])
    values: dict[SSAValue, SSAValue] = {}
    for value, argument in zip(ins, block.args, strict=True):
        argument.name_hint = value.name_hint
        values[value] = argument
    for member in members:
        copy = member.clone(value_mapper=values)
        copy.shards = None
        block.add_op(copy)
    block.add_op(loom.YieldOp(*(values[out] for out in outs)))
    group = loom.FusedOp(
        label or "_".join(member.label.data for member in members),
        plan.alignment.index,
        plan.alignment.maps,
        ins,
        [tensor_type(out) for out in outs],
        Region(block),
        partition=plan.partition,
    )
    group.location = fuse_locations(*(member.location for member in members))
    return group, outs


def _replace(plan: Plan, label: str | None, rewriter: PatternRewriter) -> None:
    """Put the group where its last member is, and take the members away."""
    group, outs = _group(plan, label)
    rewriter.insert(group, InsertPoint.before(plan.members[-1]))
    for out, result in zip(outs, group.outs, strict=True):
        result.name_hint = out.name_hint
        rewriter.replace_all_uses_with(out, result)
    for member in reversed(plan.members):
        rewriter.erase(member)


@dataclass(frozen=True)
class LoomGroup(ModulePass):
    """Put operations into groups."""

    name = "loom-group"

    ops: tuple[str, ...] | None = None
    label: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Group the named operations, or pairs."""
        with collection_paused():
            if self.ops is None:
                pattern: RewritePattern = GroupPair(self.label)
            else:
                plan = plan_group([_find(op, label) for label in self.ops])
                if isinstance(plan, str):
                    raise IllegalGroupError(
                        f"{', '.join(f'@{name}' for name in self.ops)} cannot be a group: {plan}",
                        location=location_of(_find(op, self.ops[-1])),
                    )
                pattern = GroupChosen(plan, self.label)
            PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(op)


def _find(module: ModuleOp, label: str) -> loom.OperationOp:
    """The operation of that label, which must be one."""
    found = [
        op
        for op in module.walk()
        if isinstance(op, loom.OperationOp) and op.label.data == label and not in_group(op)
    ]
    if len(found) != 1:
        raise UsageError(
            f"loom-group: there are {len(found)} operations @{label} outside of groups, not one"
        )
    return found[0]
