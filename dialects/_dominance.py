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
from xdsl.utils.exceptions import VerifyException


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
        block = op.parent
        if block is None:
            return
        _visited.advance(op)
        for position, operand in enumerate(op.operands):
            owner = operand.owner
            if isinstance(owner, Block) or owner.parent is not block:
                continue
            if owner not in _visited.seen:
                name = f" (%{operand.name_hint})" if operand.name_hint else ""
                raise VerifyException(f"operand {position}{name} is used before it is defined")
