"""One array from parts, each of which fills cells of its own.

first, second = itemgetter(slice(0, 2)), itemgetter(slice(2, 5))
joined = Assembled((5,), np.dtype("f4"), (first, second))
joined(np.zeros(2, "f4"), np.ones(3, "f4"))         # [0, 0, 1, 1, 1]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tapestry.runtime.cpu.threads import Team
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops.copying import copy_to
from tapestry.runtime.prepared.memory import empty
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
