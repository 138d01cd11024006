"""Whether operations can be a group, and the group that they are.

    plan = plan_group([exp, sum_, div])       # how they align and are split, or why they do not
    group, outs = make_group(plan, "softmax")

Nothing here changes the program: `loom-group` puts the group in and takes the members away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint
from xdsl.traits import is_side_effect_free

from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.locations import fuse_locations
from tapestry.passes.loom.fusion.joining import LABEL_LENGTH
from tapestry.passes.loom.grouping.alignment import align
from tapestry.passes.loom.grouping.places import Alignment
from tapestry.zspace import AffineMap, Partition, Range


@dataclass(frozen=True)
class Plan:
    """Members in program order, how they align, what they yield, and how the group is split.

    `index` is the group's index space, `aligned` are the members with their index points as
    functions of the group's, `yielded` what others read of what they write: the group's outputs.
    `later` are the operations between them that read what they write: they move behind the group.
    """

    members: tuple[loom.OperationOp, ...]
    index: Range
    aligned: tuple[tuple[loom.OperationOp, AffineMap], ...]
    yielded: tuple[SSAValue, ...]
    partition: Partition | None = None
    later: tuple[Operation, ...] = ()


def plan_group(operations: Sequence[loom.OperationOp], *, mixed: bool = True) -> Plan | str:
    """How operations of one block, in program order, become a group, or why they do not.

    Something must read what each member writes. The group stands where its last member does, so
    what reads a member before that must not be what another member needs. Dimensions must align,
    and members that are split must be split on one grid of the group's dimensions, which the group
    then is: that must be legal for a group. `mixed` is as in `Alignment`.
    """
    block = operations[0].parent
    if block is None or any(op.parent is not block for op in operations):
        return "its operations do not stand in one block"
    chosen = set[Operation](operations)
    members = tuple(operations)
    for member in members:
        if not any(out.first_use for out in member.outs):
            return f"nothing reads what {name_of(member)} writes"
    later = _later(members, chosen)
    if isinstance(later, str):
        return later
    alignment = align(members, mixed=mixed)
    if isinstance(alignment, str):
        return alignment
    partition = _joint_partition(members, alignment)
    if isinstance(partition, str):
        return partition
    aligned = tuple(zip(members, alignment.maps, strict=True))
    index, yielded = alignment.index, read_outside(members)
    plan = Plan(members, index, aligned, yielded, partition, later)
    return why_not_split(plan) or plan


def why_not_split(plan: Plan) -> str | None:
    """Why the group cannot be split as its members are; None when it can."""
    if plan.partition is None:
        return None
    group = make_group(plan, None)[0]
    problems = group.sharding_problems(plan.partition)
    group.erase()
    return "; ".join(problem.message for problem in problems) or None


def read_outside(members: Sequence[loom.OperationOp]) -> tuple[SSAValue, ...]:
    """What members write that others read."""
    chosen = set[Operation](members)
    return tuple(
        out
        for member in members
        for out in member.outs
        if any(use.operation not in chosen for use in out.uses)
    )


def _later(
    members: Sequence[loom.OperationOp], chosen: set[Operation]
) -> tuple[Operation, ...] | str:
    """What stands between members and needs them, in order; why it cannot stand behind them."""
    later: dict[Operation, None] = {}
    between: Operation | None = members[0]
    while between is not None and between is not members[-1].next_op:
        owners = {value.owner for inner in between.walk() for value in inner.operands}
        if between not in chosen:
            if any(owner in chosen or owner in later for owner in owners):
                later[between] = None
                if not is_side_effect_free(between):
                    return f"{name_of(between)} between its members reads what one of them writes"
        elif not owners.isdisjoint(later):
            needed = next(op for op in later if op in owners)
            return f"{name_of(needed)} between its members reads what one of them writes"
        between = between.next_op
    return tuple(later)


def name_of(op: Operation) -> str:
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


def make_group(plan: Plan, label: str | None) -> tuple[loom.FusedOp, Sequence[SSAValue]]:
    """The group of a plan, and the members' results that its outputs stand for."""
    members = plan.members
    inside = set[Operation](members)
    ins = list(dict.fromkeys(v for m in members for v in m.operands if v.owner not in inside))
    outs = plan.yielded
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
        label or _joined_label(members),
        plan.index,
        [place for _, place in plan.aligned],
        ins,
        [tensor_type(out) for out in outs],
        Region(block),
        partition=plan.partition,
    )
    group.location = fuse_locations(*(member.location for member in members))
    return group, outs


def put_group(plan: Plan, label: str | None, rewriter: PatternRewriter) -> loom.FusedOp:
    """Put the group of a plan where its last member is, and take the members away."""
    group, outs = make_group(plan, label)
    place = InsertPoint.after(plan.members[-1])
    for later in plan.later:
        later.detach()
        rewriter.insert(later, place)
    rewriter.insert(group, InsertPoint.before(plan.members[-1]))
    for out, result in zip(outs, group.outs, strict=True):
        result.name_hint = out.name_hint
        rewriter.replace_all_uses_with(out, result)
    for member in reversed(plan.members):
        rewriter.erase(member)
    return group


def _joined_label(members: Sequence[loom.OperationOp]) -> str:
    """All labels, or the last one where that would be unwieldy."""
    joined = "_".join(member.label.data for member in members)
    return joined if len(joined) <= LABEL_LENGTH else members[-1].label.data
