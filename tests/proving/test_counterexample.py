"""Counterexamples get small within a budget: whole inputs first, then cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry.proving.comparing import Difference
from tapestry.proving.counterexample import Budget, Counterexample, shrink
from tapestry.proving.inputs import Draw

_DIFFERENCE = Difference(0, (0,), 1.0, 2.0, 0.0, 1, 1)


def _found(inputs: int, cells: int) -> Counterexample:
    draws = tuple(Draw(np.dtype(np.float32), np.ones(cells, np.int64)) for _ in range(inputs))
    programs, names = (ModuleOp([]), ModuleOp([])), tuple(f"x{n}" for n in range(inputs))
    return Counterexample("generic", 0, "", programs, names, draws, _DIFFERENCE, False)


def _needs(*cells: tuple[int, int]):
    """Programs that part where some cells are not zero, and how often they were run."""
    runs: list[None] = []

    def part(tried: Sequence[Draw]) -> Difference | None:
        runs.append(None)
        parted = all(tried[place].numbers[cell] for place, cell in cells)
        return _DIFFERENCE if parted else None

    return part, runs


def _left(found: Counterexample) -> list[tuple[int, int]]:
    return [(n, int(c)) for n, x in enumerate(found.inputs) for c in np.flatnonzero(x.numbers)]


def test_what_is_needed_is_found_among_many_inputs() -> None:
    part, runs = _needs((7, 3), (180, 60))
    small = shrink(_found(194, 64), part, Budget(200, 60.0))
    assert _left(small) == [(7, 3), (180, 60)]
    assert small.exact
    assert len(runs) <= 90


def test_the_budget_is_kept() -> None:
    part, runs = _needs((7, 3))
    assert len(_left(shrink(_found(20, 8), part, Budget(5, 60.0)))) < 160
    assert len(runs) == 6  # and once on rounded inputs
    part, runs = _needs((7, 3))
    assert len(_left(shrink(_found(20, 8), part, Budget(200, -1.0)))) == 160
    assert len(runs) == 1
