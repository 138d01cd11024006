"""Arrays with a number outside of what they have, so that all reads of them are views.

    padded = Padding(Range.of((4,)), Range((-1,), (5,)), np.asarray(0, "f4"))
    padded(np.ones(4, "f4"))        # [0, 1, 1, 1, 1, 0]

The cells between, and each side that there is, are copies of their own, by compiled functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from tapestry.runtime.cpu.steps import Step
from tapestry.runtime.cpu.threads import Team
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.linking import Traced
from tapestry.runtime.prepared.loops.copying import copy_to, traced_copy
from tapestry.runtime.prepared.memory import empty, reserved
from tapestry.zspace import Range

_Slices: TypeAlias = tuple[slice, ...]


@dataclass(frozen=True, eq=False)
class Padding:
    """From arrays of the cells of `box` to those of `over`, elsewhere the cell `fill`.

    That has no axes, and the dtype of the arrays.
    """

    box: Range
    over: Range
    fill: Array
    team: Team | None = None

    def __call__(self, array: Array) -> Array:
        """The padded array, on memory of its own."""
        made = empty(self.over.shape, array.dtype)
        for place in self._sides:
            made[place] = self._cell
        if self._between is not None:
            to, at = self._between
            copy_to(made[to], array[at], self.team)
        return made

    def traced(self, given: Sequence[Array]) -> Traced | None:
        """The compiled functions that copy."""
        (array,) = given
        made, steps = reserved(self.over.shape, array.dtype), list[Step]()
        pairs = [(made[at], np.broadcast_to(self._cell, made[at].shape)) for at in self._sides]
        if self._between is not None:
            to, at = self._between
            pairs.append((made[to], array[at]))
        for place, cells in pairs:
            copied = traced_copy(place, cells, self.team)
            if copied is None:
                return None
            steps += copied.steps
        return Traced(steps, [made], [made])

    @cached_property
    def _cell(self) -> Array:
        """The fill as an array, which stays where it is: a number would be gone."""
        return np.asarray(self.fill)

    @cached_property
    def _between(self) -> tuple[_Slices, _Slices] | None:
        """Where the cells that there are go, and which ones; None if there are none."""
        inside = self.box.intersection(self.over)
        if inside is None:
            return None
        return inside.slices(self.over), inside.slices(self.box)

    @cached_property
    def _sides(self) -> list[_Slices]:
        """What is outside of the box: two sides along each dimension, of what is left."""
        inside, left = self.box.intersection(self.over), self.over
        if inside is None:
            return [left.slices(self.over)]
        found: list[_Slices] = []
        for dim, ((first, last), (low, high)) in enumerate(
            zip(self.over.sides, inside.sides, strict=True)
        ):
            sides = [side for side in ((first, low), (high, last)) if side[0] < side[1]]
            found += [left.with_sides({dim: side}).slices(self.over) for side in sides]
            left = left.with_sides({dim: (low, high)})
        return found
