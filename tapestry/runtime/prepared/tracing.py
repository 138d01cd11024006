"""What the functions of a script call, where all are compiled code.

    traced = traced_in_turn(lines, [x, y, *room], results=[5])      # None where one does more

A view of what there is calls nothing. One that has to be a copy is that of its cells in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapestry.runtime.arrays.blocks import BlockCells
from tapestry.runtime.cpu.addresses import is_within
from tapestry.runtime.cpu.steps import Step
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.linking import LARGE, Traced, traced_call
from tapestry.runtime.prepared.loops.copying import traced_view

COPIED = 1 << 16
"""Bytes up to which something is copied rather than that a program is more than one call."""


def traced_in_turn(
    lines: Sequence[Any], values: list[Any], results: Sequence[int]
) -> Traced | None:
    """The lines of a script, whose values are in slots."""
    steps, held = list[Step](), list[Array]()
    for line in lines:
        given = [values[slot] for slot in line.ins]
        if line.memory == "view":
            (array,) = given
            made = [line.function(array)]
            held_by = made[0].data if isinstance(made[0], BlockCells) else made[0]
            if not is_within(held_by, array):
                copied = traced_view(line.function, array) if array.nbytes <= COPIED else None
                if copied is None:
                    return None
                steps += copied.steps
                held += copied.held
                made = copied.made
        else:
            traced = traced_call(line.function, given)
            if traced is None:
                return None
            steps += traced.steps
            held += traced.held
            made = traced.made
            if sum(one.nbytes for one in held) > LARGE:
                return None
        for slot, value in zip(line.outs, made, strict=True):
            values[slot] = value
    return Traced(steps, [values[slot] for slot in results], held)
