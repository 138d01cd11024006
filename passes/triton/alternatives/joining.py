"""Maps that read what a fold gives for each row, in one kernel with it, where that is faster.

    %s = loom.operation @parts over <[0, 0] : [2048, 4096]> [map, fold] by @add ins(%x ...)
    %y = loom.operation @factor over <[0, 0] : [2048, 4096]> [map, map] ins(%x ..., %s ...)

become one group, which has each row in registers when its fold is done: `%x` is read once. The
default pipeline has put together what was there before; such maps come from alternatives, as the
stored factor of a product that a norm is a part of (`storing.py`). Which are faster as one, the
cost model says. In and out: loom. What has a schedule or shards is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.dialects import loom
from tapestry.passes.loom.group import plan_kernel
from tapestry.passes.loom.grouping.one_kernel import Limits
from tapestry.passes.loom.grouping.plan import Plan, put_group
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.ungroup import name_inside, names_inside, take_apart
from tapestry.passes.triton.alternatives.alone import Scheduled, alone, gains
from tapestry.passes.triton.alternatives.splitting import Predict, seconds
from tapestry.passes.triton.schedules.task import SCHEDULE

GAIN = 1.05
"""How many times as fast one kernel has to be predicted to be."""


@dataclass(frozen=True)
class JoinChosen(RewritePattern):
    """A map becomes a member of the group of a fold that it reads.

    Legal where `loom-group` may make a kernel of the fold's members and the map; else they stay as
    they are.
    """

    chosen: Mapping[loom.OperationOp, Scheduled]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        fold = self.chosen.get(op)
        if fold is None:
            return
        members: Sequence[loom.OperationOp] = [fold] if isinstance(fold, loom.OperationOp) else []
        names = names_inside(fold) if isinstance(fold, loom.FusedOp) else {}
        if isinstance(fold, loom.FusedOp):
            members = take_apart(fold, rewriter)
        plan = plan_kernel([*members, op], Limits())
        if not isinstance(plan, Plan) and isinstance(fold, loom.FusedOp):
            plan = plan_kernel(members, Limits())
        if isinstance(plan, Plan):
            name_inside(put_group(plan, None, rewriter), names)


@dataclass
class JoiningChooser:
    """Chooses maps that join a fold; equal ones are looked at once."""

    predict: Predict
    _known: dict[str, bool] = field(default_factory=dict[str, bool])

    def chosen(self, module: ModuleOp) -> dict[loom.OperationOp, Scheduled]:
        """The maps that are to join a fold, with that; one map for each."""
        order = {op: number for number, op in enumerate(module.walk())}
        found: dict[loom.OperationOp, Scheduled] = {}
        for op in order:
            if isinstance(op, loom.OperationOp) and not op.fold_dims and _is_free(op):
                fold = _last_read(op, order)
                if fold is not None and fold not in found.values() and self._joins(fold, op):
                    found[op] = fold
        return found

    def _joins(self, fold: Scheduled, op: loom.OperationOp) -> bool:
        return gains(alone(fold, op), self._gains, self._known)

    def _gains(self, program: ModuleOp) -> bool:
        joined = program.clone()
        first, last = (one for one in joined.walk() if _is_scheduled(one))
        assert isinstance(last, loom.OperationOp)
        assert isinstance(first, loom.OperationOp | loom.FusedOp)
        apply_joins(joined, {last: first})
        if sum(_is_scheduled(one) for one in joined.walk()) > 1:
            return False
        apart = seconds(self.predict(program, True)) / GAIN
        return seconds(self.predict(joined, True, apart)) <= apart


def apply_joins(module: ModuleOp, chosen: Mapping[loom.OperationOp, Scheduled]) -> None:
    """Join the maps that are chosen."""
    if chosen:
        PatternRewriteWalker(JoinChosen(chosen), apply_recursively=False).rewrite_module(module)


def _last_read(op: loom.OperationOp, order: Mapping[Operation, int]) -> Scheduled | None:
    """The last operation that a map reads, if that is a fold or a group of some.

    What else it reads was there before, and does not wait for the fold.
    """
    owners = [value.owner for value in op.operands]
    last = max(
        (one for one in owners if isinstance(one, Operation)), key=order.__getitem__, default=None
    )
    if not isinstance(last, loom.OperationOp | loom.FusedOp) or last.parent is not op.parent:
        return None
    folds = last.fold_dims if isinstance(last, loom.OperationOp) else last.merged_dims
    return last if folds and _is_free(last) else None


def _is_free(op: Scheduled) -> bool:
    """Whether nothing is said of how an operation is scheduled, or split."""
    said = any(SCHEDULE in one.attributes for one in op.walk())
    return not (said or in_group(op) or op.partition is not None or op.index.is_empty)


def _is_scheduled(op: object) -> bool:
    return isinstance(op, loom.OperationOp | loom.FusedOp) and not in_group(op)
