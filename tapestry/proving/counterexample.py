"""A counterexample made small, and fit to be replayed.

Inputs that part two programs are first rounded to the types of their arguments, so that any
executor can take them. Then what is not needed for the programs to part is set to zero: whole
inputs, groups of them before single ones, and cells of those that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from tapestry.proving.comparing import Difference
from tapestry.proving.inputs import Draw

Part = Callable[[Sequence[Draw]], Difference | None]
"""Where the programs part on some inputs; None where they agree, or nothing can be said."""


@dataclass(frozen=True, eq=False)
class Counterexample:
    """Inputs on which two programs part; `exact` when the arguments' own types hold them.

    `programs` are the ones that part, which may be smaller copies of those compared; `where` names
    the first operation at which they do, where that is known.
    """

    kind: str
    seed: int
    sizes: str
    programs: tuple[ModuleOp, ModuleOp]
    names: tuple[str, ...]
    inputs: tuple[Draw, ...]
    difference: Difference
    exact: bool
    where: str = ""


@dataclass(frozen=True)
class Budget:
    """How often programs may run to make a counterexample smaller, and for how long."""

    runs: int
    seconds: float


def shrink(found: Counterexample, part: Part, budget: Budget) -> Counterexample:
    """The smallest counterexample that is found within a budget, or `found` itself."""
    rounded = tuple(draw.rounded() for draw in found.inputs)
    parted = part(rounded)
    if parted is not None:
        found = replace(found, inputs=rounded, difference=parted, exact=True)
    search = _Search(list(found.inputs), found.difference, part, budget)
    search.clear([place for place, draw in enumerate(search.best) if draw.numbers.any()], _whole)
    for place in range(len(search.best)):
        cells = np.flatnonzero(search.best[place].numbers)
        search.clear([(place, int(cell)) for cell in cells], _cells)
    return replace(found, inputs=tuple(search.best), difference=search.difference)


_T = TypeVar("_T")

_Cleared = Callable[[list[Draw], Sequence[_T]], list[Draw]]
"""Inputs with some of their parts set to zero."""


class _Search:
    """The smallest inputs so far, and what is left of the budget."""

    def __init__(
        self, best: list[Draw], difference: Difference, part: Part, budget: Budget
    ) -> None:
        self.best, self.difference = best, difference
        self._part = part
        self._left = budget.runs
        self._end = monotonic() + budget.seconds

    def clear(self, parts: Sequence[_T], cleared: _Cleared[_T]) -> None:
        """Set parts to zero where the programs still part: all of them, halves, quarters, ..."""
        left = list(parts)
        size = len(left)
        while size:
            kept: list[_T] = []
            for first in range(0, len(left), size):
                group = left[first : first + size]
                if not self._try(cleared(self.best, group)):
                    kept += group
            left = kept
            size = min(size, len(left) + 1) // 2

    def _try(self, inputs: list[Draw]) -> bool:
        """Whether the programs part on some inputs, which are the best then."""
        if self._left <= 0 or monotonic() > self._end:
            return False
        self._left -= 1
        parted = self._part(inputs)
        if parted is not None:
            self.best, self.difference = inputs, parted
        return parted is not None


def _whole(inputs: list[Draw], places: Sequence[int]) -> list[Draw]:
    """Inputs with some of them all zero."""
    chosen = set(places)
    return [
        draw.zeroed(np.ones(draw.numbers.shape, np.bool_)) if place in chosen else draw
        for place, draw in enumerate(inputs)
    ]


def _cells(inputs: list[Draw], cells: Sequence[tuple[int, int]]) -> list[Draw]:
    """Inputs with some cells of one of them zero."""
    place = cells[0][0]
    where = _mask(inputs[place], np.asarray([cell for _, cell in cells], np.intp))
    return [*inputs[:place], inputs[place].zeroed(where), *inputs[place + 1 :]]


def _mask(draw: Draw, cells: NDArray[np.intp]) -> NDArray[np.bool_]:
    mask = np.zeros(draw.numbers.size, np.bool_)
    mask[cells] = True
    return mask.reshape(draw.numbers.shape)
