"""One array from parts, each of which fills cells of its own.

first, second = itemgetter(slice(0, 2)), itemgetter(slice(2, 5))
joined = Assembled((5,), np.dtype("f4"), (first, second))
joined(np.zeros(2, "f4"), np.ones(3, "f4"))         # [0, 0, 1, 1, 1]

Some functions make a part in its place (`Filler`), which is not copied then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tapestry.runtime.cpu.steps import Step
from tapestry.runtime.cpu.threads import Team
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.linking import Traced
from tapestry.runtime.prepared.loops.copying import copy_to, traced_copy
from tapestry.runtime.prepared.memory import empty, reserved
from tapestry.runtime.prepared.views import View


@dataclass(frozen=True, eq=False)
class Assembled:
    """Views of a new array, one per part, which the parts fill; None for a part without cells."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    places: tuple[View | None, ...]
    team: Team | None = None

    def __call__(self, *parts: Array) -> Array:
        """The array, on memory of its own."""
        made = empty(self.shape, self.dtype)
        for place, part in zip(self.places, parts, strict=True):
            if place is not None:
                copy_to(place(made), part, self.team)
        return made

    def traced(self, given: Sequence[Array]) -> Traced | None:
        """The compiled functions that copy."""
        return Filled(self, ((None, 1),) * len(self.places)).traced(given)


@runtime_checkable
class Filler(Protocol):
    """A function of a list of arrays that can write its only result to a place."""

    def fill(self, place: Array, given: Sequence[Any]) -> None:
        """Write it there, however the place's cells lie."""
        ...

    def traced_to(self, place: Array, given: Sequence[Array]) -> Traced | None:
        """The compiled functions that do it; None where it is more."""
        ...


@dataclass(frozen=True, eq=False)
class Filled:
    """The array `whole`, some parts of which are made in their places.

    `makers` has for each part what makes it, if anything does, and how many of what is given it
    takes; a part that is there is one of that.
    """

    whole: Assembled
    makers: tuple[tuple[Filler | None, int], ...]

    def __call__(self, given: Sequence[Any]) -> list[Array]:
        """The array, on memory of its own."""
        made, left = empty(self.whole.shape, self.whole.dtype), iter(given)
        for place, (maker, count) in zip(self.whole.places, self.makers, strict=True):
            own = [next(left) for _ in range(count)]
            if place is None:
                continue
            if maker is None:
                copy_to(place(made), own[0], self.whole.team)
            else:
                maker.fill(place(made), own)
        return [made]

    def traced(self, given: Sequence[Array]) -> Traced | None:
        """The compiled functions that fill and copy."""
        made, left = reserved(self.whole.shape, self.whole.dtype), iter(given)
        steps, held = list[Step](), [made]
        for place, (maker, count) in zip(self.whole.places, self.makers, strict=True):
            own = [next(left) for _ in range(count)]
            if place is None:
                continue
            at = place(made)
            traced = (
                traced_copy(at, own[0], self.whole.team)
                if maker is None
                else maker.traced_to(at, own)
            )
            if traced is None:
                return None
            steps += traced.steps
            held += traced.held
        return Traced(steps, [made], held)
