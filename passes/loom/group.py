"""`loom-group`: operations put into a `loom.fused`, to become one kernel.

    %e = loom.operation @exp ...
    %s = loom.operation @sum over <[0, 0] : [4, 8]> [map, fold] by @add ins(%e : ...) ...

becomes

    %s = loom.fused @exp_sum over <[0, 0] : [4, 8]>
           aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1)) ins(%x) group (%a: !x) {
             %e = loom.operation @exp ...   %s = loom.operation @sum ...   loom.yield %s : !y } ...

Options: `ops=exp,sum` names the members by label (one operation each), `label` the group. Without
`ops`, operations are put together as long as one kernel can be made of them: folds with the maps
that read what they folded for every cell, and with what feeds them (`grouping.one_kernel` has the
conditions, of which `resident`, `row` and `programs` are the limits). What is larger than all that
it is computed of is computed again by each group that reads it, or with `recompute=false` stored.

Input: any verified loom program. Output: the same values: members are whole operations, and
`loom-ungroup` puts them back. What stands between members and reads what they write moves behind
the group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import loom
from tapestry.locations import location_of
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.grouping.clusters import find_clusters
from tapestry.passes.loom.grouping.one_kernel import Limits, read_alike, why_not_one_kernel
from tapestry.passes.loom.grouping.plan import Plan, plan_group, put_group
from tapestry.passes.loom.grouping.recomputing import RecomputeForReaders
from tapestry.passes.loom.rebuilding.labels import operation_named


class IllegalGroupError(InvalidProgramError):
    """Operations that cannot be a group."""

    kind = "illegal_group"


@dataclass(frozen=True)
class GroupChosen(RewritePattern):
    """Given operations become a group, where the last of them stands.

    Legal when there is a `plan`. `chosen` has the members of each group by the
    last one.
    """

    chosen: Mapping[Operation, Sequence[loom.OperationOp]]
    plan: Callable[[Sequence[loom.OperationOp]], Plan | str]
    label: str | None = None

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op in self.chosen:
            plan = self.plan(self.chosen[op])
            if isinstance(plan, Plan):
                put_group(plan, self.label, rewriter)


@dataclass(frozen=True)
class LoomGroup(ModulePass):
    """Put operations into groups."""

    name = "loom-group"

    ops: tuple[str, ...] | None = None
    label: str | None = None
    resident: int = Limits.resident
    row: int = Limits.row
    programs: int = Limits.programs
    recompute: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Group the named operations, or all that make one kernel."""
        with collection_paused():
            limits = Limits(self.resident, self.row, self.programs)
            named = None if self.ops is None else self._named(op, self.ops)
            groups = self._found(op, limits) if named is None else [named]
            chosen: dict[Operation, Sequence[loom.OperationOp]] = {g[-1]: g for g in groups}
            plan = plan_group if named is not None else partial(plan_kernel, limits=limits)
            pattern = GroupChosen(chosen, plan, self.label)
            PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(op)

    def _found(self, module: ModuleOp, limits: Limits) -> list[Sequence[loom.OperationOp]]:
        """The groups of all functions."""
        why = partial(why_apart, limits=limits)
        again = RecomputeForReaders(why)
        if self.recompute:
            walker = PatternRewriteWalker(again, walk_reverse=True, apply_recursively=False)
            walker.rewrite_module(module)
        groups: list[Sequence[loom.OperationOp]] = []
        for function in module.walk():
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                block = function.body.block
                start = {op: ops for op, ops in again.clusters.items() if op.parent is block}
                groups += find_clusters(block, why, _are_beside, start)
        return groups

    def _named(self, module: ModuleOp, labels: Sequence[str]) -> Sequence[loom.OperationOp]:
        """The named operations, in program order; IllegalGroupError if they are no group."""
        found = {operation_named(module, label, self.name) for label in labels}
        members = [op for op in module.walk() if isinstance(op, loom.OperationOp) and op in found]
        plan = plan_group(members)
        if isinstance(plan, str):
            raise IllegalGroupError(
                f"{', '.join(f'@{name}' for name in labels)} cannot be a group: {plan}",
                location=location_of(operation_named(module, labels[-1], self.name)),
            )
        return members


def _are_beside(first: loom.OperationOp, second: loom.OperationOp) -> bool:
    """Whether two operations read a tensor alike, so that a group of both reads it once."""
    plan = plan_group([first, second])
    return isinstance(plan, Plan) and read_alike(plan)


def why_apart(members: Sequence[loom.OperationOp], limits: Limits) -> str | None:
    """Why operations are not put into one group, None when they are."""
    plan = plan_kernel(members, limits)
    return plan if isinstance(plan, str) else None


def plan_kernel(members: Sequence[loom.OperationOp], limits: Limits) -> Plan | str:
    """How operations become a group that is one kernel, or why they do not.

    Members that read one tensor share its dimensions, unless only without that they are one: where
    one folds what another keeps, as matrix products do of a factor that both have.
    """
    reason: str | None = None
    for mixed in (True, False):
        plan = plan_group(members, mixed=mixed)
        why = plan if isinstance(plan, str) else why_not_one_kernel(plan, limits)
        if why is None:
            return plan
        reason = reason or why
    return reason or ""
