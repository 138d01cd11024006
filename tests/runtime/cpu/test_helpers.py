"""Helpers: each row once, on whatever thread, and one caller at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import sleep

import numpy as np
import pytest

from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.helpers import Helpers, find_helpers
from tapestry.runtime.cpu.native import address_of, compiled
from tapestry.runtime.cpu.threads import Workers

pytestmark = pytest.mark.skipif(
    not native.is_ready() or find_helpers() is None, reason="there are no helpers here"
)

_COUNT = """
define void @loop(ptr %row) {
entry:
  %times_at = getelementptr i64, ptr %row, i64 1
  %times = load i64, ptr %times_at
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %next, %head ]
  %old = atomicrmw add ptr %row, i64 1 monotonic
  %next = add i64 %n, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %head, label %done
done:
  ret void
}
"""
"""Counts to a number, in memory."""


def _function() -> int:
    function: Callable[[int], object] | None = compiled(_COUNT)
    assert function is not None
    return address_of(function)


def _helpers() -> Helpers:
    helpers = find_helpers()
    assert helpers is not None
    return helpers


@pytest.mark.parametrize("count", [1, 2, 3, 7, 4])
@pytest.mark.parametrize("pause", [0, 1e-5, 1e-2])
def test_each_row_is_done_once(count: int, pause: float) -> None:
    """Whether a helper begins in time or not, and sleeps; also where there were fewer before."""
    function = _function()
    for times in (1, 10, 10, 100_000, 1, 1):
        sleep(pause)
        rows = np.zeros((count, 8), np.int64)
        rows[:, 1] = times
        assert _helpers().run(function, rows)
        np.testing.assert_array_equal(rows[:, 0], times)


def test_many_calls_one_after_another() -> None:
    function, rows = _function(), np.zeros((2, 8), np.int64)
    rows[:, 1] = 1
    for _ in range(20_000):
        assert _helpers().run(function, rows)
    np.testing.assert_array_equal(rows[:, 0], 20_000)


def test_one_caller_at_a_time_has_helpers() -> None:
    function, failed = _function(), list[str]()

    def call() -> None:
        for _ in range(300):
            rows = np.zeros((2, 8), np.int64)
            rows[:, 1] = 500
            Workers().run(function, rows)
            if (rows[:, 0] != 500).any():
                failed.append(str(rows[:, 0]))

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_without_helpers_to_spare_nothing_is_done() -> None:
    helpers = _helpers()
    rows = np.ones((2, 8), np.int64)
    with helpers._lock:
        assert not helpers.run(_function(), rows)
    np.testing.assert_array_equal(rows, 1)


def test_where_no_thread_starts_the_caller_works(monkeypatch: pytest.MonkeyPatch) -> None:
    helpers = Helpers(_helpers()._wait, _helpers()._share)

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    function, rows = _function(), np.ones((3, 8), np.int64)
    monkeypatch.setattr(threading.Thread, "start", fail)
    monkeypatch.setattr("tapestry.runtime.cpu.threads.find_helpers", lambda: helpers)
    for times in (2, 3):
        Workers().run(function, rows)
        np.testing.assert_array_equal(rows[:, 0], times)
    assert not helpers.run(function, rows)


def test_more_helpers_are_many_more() -> None:
    helpers = Helpers(_helpers()._wait, _helpers()._share)
    before = threading.active_count()
    for count in range(2, 10):
        assert helpers.run(_function(), np.ones((count, 8), np.int64))
    assert threading.active_count() - before <= 2 * 16
