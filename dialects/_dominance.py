"""The trait that keeps values defined before they are used.

xDSL's verifier does not check SSA dominance. `DefinedBeforeUse` does, for operations in one block
(Tapestry's programs are straight-line code), in time linear in the block: `verify` visits a block
in order, so it is enough to remember which operations stand before the last one visited.

    %y = weft.apply @relu(%x) : ...     // error: operand 0 (%x) is used before it is defined
    %x = weft.apply @exp(%a) : ...
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation
from xdsl.traits import OpTrait

from tapestry.issues import Problem, Violations


class _Visited:
    """The operations of one block from its first up to `last`."""

    def __init__(self) -> None:
        self.last: Operation | None = None
        self.seen: set[Operation] = set()

    def advance(self, op: Operation) -> None:
        """Make `seen` hold exactly the operations that stand before `op` in its block."""
        between: list[Operation] = []
        earlier = op.prev_op
        while earlier is not None and earlier is not self.last:
            between.append(earlier)
            earlier = earlier.prev_op
        if earlier is None:
            self.seen = set()
        elif self.last is not None:
            self.seen.add(self.last)
        self.seen.update(between)
        self.last = op


_visited = _Visited()


@dataclass(frozen=True)
class DefinedBeforeUse(OpTrait):
    """Every operand is a block argument, or the result of an earlier operation of the block."""

    def verify(self, op: Operation) -> None:
        problems = self.problems(op)
        if problems:
            raise Violations(op.name, problems)

    def problems(self, op: Operation) -> list[Problem]:
        """Every operand that is not defined where `op` is."""
        block = op.parent
        if block is None:
            return []
        _visited.advance(op)
        problems: list[Problem] = []
        for position, operand in enumerate(op.operands):
            owner = operand.owner
            name = f"operand {position}" + (f" (%{operand.name_hint})" if operand.name_hint else "")
            home = owner if isinstance(owner, Block) else owner.parent
            if home is block:
                if owner is not home and owner not in _visited.seen:
                    problems.append(Problem("dominance", f"{name} is used before it is defined"))
            elif home is None or not home.is_ancestor(op):
                message = f"{name} is defined in another region, which is not around this one"
                problems.append(Problem("dominance", message))
        return problems
