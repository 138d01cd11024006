"""Parts in turns: each once, on any number of threads, with its own addresses, until one fails."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.native import compiled
from tapestry.runtime.cpu.stealing import Kind, PartQueues
from tapestry.runtime.cpu.steps import Place, Step
from tapestry.runtime.cpu.threads import Workers

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

_ADD = """
define void @loop(ptr %row) {
  %from_at = getelementptr i64, ptr %row, i64 1
  %more_at = getelementptr i64, ptr %row, i64 2
  %into = load ptr, ptr %row
  %from = load ptr, ptr %from_at
  %more = load i64, ptr %more_at
  %x = load i64, ptr %from
  %y = add i64 %x, %more
  store i64 %y, ptr %into
  ret void
}
"""
"""A number somewhere is one that is somewhere else and a constant."""

_FAIL = """
define void @loop(ptr %row) {
  %status = getelementptr i64, ptr %row, i64 1
  %from = load ptr, ptr %row
  %x = load i64, ptr %from
  %odd = and i64 %x, 1
  store i64 %odd, ptr %status
  ret void
}
"""
"""Fails where a number is odd."""


def _add(more: int, into: Place, of: Place) -> Step:
    return Step(compiled(_ADD), (0, 0, more), ((0, into), (1, of)))


def _bases(*arrays: np.ndarray) -> np.ndarray:
    return np.array([array.ctypes.data for array in arrays], np.int64)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 500])
def test_each_part_is_computed_once_where_it_is(threads: int, count: int) -> None:
    rooms = [np.zeros(2, np.int64) for _ in range(threads)]
    # Through the second number of the thread's own memory; the last parts are of another kind.
    first = Kind([_add(5, Place(2, 8), Place(0, 0)), _add(20, Place(1, 0), Place(2, 8))], 3)
    second = Kind([_add(1000, Place(1, 0), Place(0, 0))], 2)
    cut = count - count // 3
    parts = [(0, (8 * n, 8 * n, 0)) if n < cut else (1, (8 * n, 8 * n)) for n in range(count)]
    queues = PartQueues([first, second], parts)
    for _ in range(3):  # wherever arrays are at a call
        x, y = np.arange(count) ** 2, np.zeros(count, np.int64)
        bases = np.stack([np.concatenate([_bases(x, y, room), _bases(x, y)]) for room in rooms])
        assert queues.run(bases, Workers()) == []
        np.testing.assert_array_equal(y, x + np.where(np.arange(count) < cut, 25, 1000))


@pytest.mark.parametrize("threads", [1, 2])
def test_what_fails_is_named_and_goes_no_further(threads: int) -> None:
    check = Step(compiled(_FAIL), (0, 0), ((0, Place(0, 0)),), may_fail=True)
    kind = Kind([check, _add(1, Place(1, 0), Place(0, 0))], 2)
    queues = PartQueues([kind], [(0, (8 * n, 8 * n)) for n in range(6)])
    for x in (np.array([2, 3, 4, 5, 7, 8]), np.array([1, 2, 2, 2, 2, 2])):
        y = np.zeros(6, np.int64)
        assert queues.run(np.stack([_bases(x, y)] * threads), Workers()) == list(
            np.flatnonzero(x % 2)
        )
        np.testing.assert_array_equal(y, np.where(x % 2, 0, x + 1))


def test_who_calls_again_before_a_call_is_done_has_memory_of_its_own() -> None:
    """As the handler of a signal may."""
    queues = PartQueues([Kind([_add(5, Place(1, 0), Place(0, 0))], 2)], [(0, (8, 8)), (0, (0, 0))])
    inner = np.arange(2), np.zeros(2, np.int64)
    outer = np.arange(2) + 10, np.zeros(2, np.int64)

    class Interrupted(Workers):
        def run(self, function: int, rows: np.ndarray) -> None:
            assert queues.run(np.stack([_bases(*inner)] * 2), Workers()) == []
            super().run(function, rows)

    for _ in range(2):
        assert queues.run(np.stack([_bases(*outer)] * 2), Interrupted()) == []
    for x, y in (inner, outer):
        np.testing.assert_array_equal(y, x + 5)
