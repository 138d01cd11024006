"""What a derived operation is instead of: the folds it makes needless, and what has to stand later.

    %m = max of %x      %e = exp(%x - %m)      %l = sum of %e      %p = %e / %l

With `%m, %l` derived at once where `%l` stands, `%e` is read by `%p` alone and moves behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from tapestry.dialects import loom

_PURE = (loom.OperationOp, loom.ViewOp, loom.ReshapeOp, loom.AssembleOp, loom.ExternalOp)


@dataclass
class Replacing:
    """The plan for a chain of operations whose last becomes the derived one.

    `dead` are the operations that nothing needs any more, later ones first; `kept` the values of
    earlier folds that others need, which the derived operation is to write; `later` what has to
    move behind it, in order.
    """

    dead: list[Operation] = field(default_factory=list[Operation])
    kept: list[SSAValue] = field(default_factory=list[SSAValue])
    later: list[Operation] = field(default_factory=list[Operation])


def plan_replacing(
    last: loom.OperationOp,
    earlier: set[Operation],
    read: set[Operation],
    can_write: Callable[[SSAValue], bool],
) -> Replacing:
    """How the last fold of a chain stands in for `earlier` ones, as far as it can.

    An earlier fold is needed no more when all that reads it goes too, or comes after the derived
    operation, which writes it (`can_write`). What is pure and read only after it can move there;
    what the derived operation itself may `read` stays where it is.
    """
    plan = Replacing(dead=[last])
    dead: set[Operation] = {last}
    movable: set[Operation] = set()
    order: list[Operation] = []
    seen: set[Operation] = {last}
    missing = set(earlier)
    op = last.prev_op
    while missing and op is not None:
        missing.discard(op)
        order.append(op)
        seen.add(op)
        left = [
            (result, [user for user in _users(result, op) if user not in dead])
            for result in op.results
        ]
        is_late = all(user in movable or user not in seen for _, users in left for user in users)
        needed = [result for result, users in left if users]
        if isinstance(op, _PURE) and op not in read:
            if not needed:
                dead.add(op)
                plan.dead.append(op)
            elif op in earlier:
                if is_late and all(map(can_write, needed)):
                    dead.add(op)
                    plan.dead.append(op)
                    plan.kept += needed
            elif is_late:
                movable.add(op)
        op = op.prev_op
    moved = set(plan.kept)
    for step in reversed(order):
        if step in movable and not moved.isdisjoint(step.operands):
            plan.later.append(step)
            moved |= set(step.results)
    return plan


def _users(value: SSAValue, op: Operation) -> set[Operation]:
    """What reads a value, as operations of the block that its own operation stands in."""
    found: set[Operation] = set()
    for use in value.uses:
        user: Operation | None = use.operation
        while user is not None and user.parent is not op.parent:
            user = user.parent_op()
        assert user is not None
        found.add(user)
    return found
