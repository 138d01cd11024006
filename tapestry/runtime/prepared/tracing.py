"""What the functions of a script call, where all are compiled code.

    traced = traced_in_turn(lines, [x, y, *room], results=[5])      # None where one does more

A view of what there is calls nothing. Where it has to be a copy, cells are copied in the order that
they have then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapestry.runtime.arrays.blocks import BlockCells
from tapestry.runtime.cpu.addresses import is_within
from tapestry.runtime.cpu.steps import Step
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.linking import LARGE, Traced, traced_call
from tapestry.runtime.prepared.loops.copying import traced_view


def traced_in_turn(
    lines: Sequence[Any], values: list[Any], results: Sequence[int]
) -> Traced | None:
    """The lines of a script, whose values are in slots."""
    steps, held = list[Step](), list[Array]()
    for line in lines:
        given = [values[slot] for slot in line.ins]
        if line.memory == "view":
            traced = viewed(line.function, *given)
        else:
            traced = traced_call(line.function, given)
        if traced is None:
            return None
        steps += traced.steps
        held += traced.held
        if sum(one.nbytes for one in held) > LARGE:
            return None
        for slot, value in zip(line.outs, traced.made, strict=True):
            values[slot] = value
    return Traced(steps, [values[slot] for slot in results], held)


def viewed(function: Callable[..., Any], array: Any) -> Traced | None:
    """A view, for which nothing is called, or the little that has to be copied for it."""
    made = function(array)
    if is_within(made.data if isinstance(made, BlockCells) else made, array):
        return Traced([], [made], [])
    return traced_view(function, array)
