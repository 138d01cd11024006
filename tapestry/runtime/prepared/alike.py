"""Operations that do the same: what one of them was made ready to is what all of them do.

known = Alike()
run = known.of(layer_1, prepare)        # prepares it
run = known.of(layer_2, prepare)        # the same function: the layers differ in operands alone
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from xdsl.ir import Operation

from tapestry.dialects import loom
from tapestry.repeats import structure
from tapestry.runtime.prepared.script import Run

_Op = TypeVar("_Op", bound=Operation)


class Alike:
    """What operations were made ready to, by what they do."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Run | None] = {}

    def of(self, op: _Op, prepare: Callable[[_Op], Run | None]) -> Run | None:
        """What `prepare` makes of an operation, or made of one that does the same.

        A function of arrays is the same for both, whichever arrays they are: `prepare` asks for no
        more than types and bodies, and which operands are one value, which is read once. Only a
        read outside of a block says where it is written.
        """
        reads = [inner.location for inner in op.walk() if isinstance(inner, loom.ReadOp)]
        first = {value: number for number, value in reversed([*enumerate(op.operands)])}
        same = tuple(first[value] for value in op.operands)
        key = (structure(op), same, tuple(reads))
        if key not in self._known:
            self._known[key] = prepare(op)
        return self._known[key]
