"""Threads of a host's as one thread, for tests: what each would do comes one after another.

library = Library(loops=Loops(1, OneByOne(3)))      # loops are shared by three
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tapestry.runtime.cpu.steps import Row, Step, in_a_row


class OneByOne:
    """So many threads, the last one first; `rows` counts how many had something to do."""

    def __init__(self, threads: int) -> None:
        self.threads, self.rows = threads, 0

    def count(self) -> int:
        return self.threads

    def run(self, function: int, rows: NDArray[np.int64]) -> None:
        self.rows += len(rows)
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
        for row in reversed(rows):
            call(np.ascontiguousarray(row).ctypes.data)

    def step(self, rows: Sequence[Sequence[Step]]) -> Step | None:
        every = [step for row in reversed(rows) for step in row]
        may_fail, shared = any(s.may_fail for s in every), any(s.shared for s in every)
        assert not may_fail  # or else the first number of the row would have to be its last
        row = Row.of(every)
        given = tuple(row.numbers), tuple(row.places)
        return Step(in_a_row(), *given, may_fail, shared, self.threads, self.count)
