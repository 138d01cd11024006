"""Which of two operations comes first, while operations are inserted and erased around them.

    order = BlockOrder(block)
    order.is_before(a, b)

Operations that were there at first are numbered; a new one is found by walking back to one of
those, which takes as long as there are new ones on the way.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation


class BlockOrder:
    """The order of the operations of a block."""

    def __init__(self, block: Block) -> None:
        self._places = {op: place for place, op in enumerate(block.ops)}

    def is_before(self, one: Operation, other: Operation) -> bool:
        """Whether `one` comes before `other`, which is another operation."""
        return self._place(one) < self._place(other)

    def _place(self, op: Operation) -> tuple[int, int]:
        steps = 0
        earlier: Operation | None = op
        while earlier is not None and earlier not in self._places:
            earlier = earlier.prev_op
            steps += 1
        return (-1 if earlier is None else self._places[earlier]), steps
