"""Where in a block two operations can stand as one."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from tapestry.dialects import loom


class Order:
    """The places of operations in their blocks, kept up as operations are joined."""

    def __init__(self, module: ModuleOp) -> None:
        self._place: dict[Operation, int] = {op: n for n, op in enumerate(module.walk())}

    def first(self, one: loom.OperationOp, other: loom.OperationOp) -> loom.OperationOp:
        """The one that stands first."""
        return one if self._place[one] < self._place[other] else other

    def joined(
        self, first: loom.OperationOp, second: loom.OperationOp, *, feeds: bool = False
    ) -> loom.OperationOp | None:
        """In whose place both can stand; None where what stands between needs to be between.

        Either all that the second needs is there before the first (which may feed it), or nothing
        needs the first before the second.
        """
        start, end = self._place[first], self._place[second]
        needed = (v.owner for v in second.operands if not isinstance(v.owner, Block))
        if all(self._place[op] < start or (feeds and op is first) for op in needed):
            return first
        users = (use.operation for out in first.outs for use in out.uses)
        if all(self._place[op] > end or (feeds and op is second) for op in users):
            return second
        return None

    def put(self, new: loom.OperationOp, place: loom.OperationOp) -> None:
        """Say that an operation stands in the place of another."""
        self._place[new] = self._place[place]
