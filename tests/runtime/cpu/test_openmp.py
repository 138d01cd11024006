"""Compiled functions on the threads of PyTorch's OpenMP."""

from __future__ import annotations

import multiprocessing
import os

import numpy as np
import pytest

from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.chains import Chain
from tapestry.runtime.cpu.native import address_of, compiled
from tapestry.runtime.cpu.openmp import OpenMP, find_team
from tapestry.runtime.cpu.steps import Place, Step

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

_SQUARE = """
declare i32 @unused()
define void @loop(ptr %row) {
  %at = getelementptr i64, ptr %row, i64 1
  %x = load i64, ptr %row
  %y = mul i64 %x, %x
  store i64 %y, ptr %at
  ret void
}
"""
"""The square of a row's first number is its second one."""


def _team(count: int) -> OpenMP:
    team = find_team(torch._C.__file__, lambda: count)
    if team is None:
        pytest.skip("this PyTorch has no OpenMP of the kind")
    return team


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_the_function_is_called_with_each_row_once(threads: int, count: int) -> None:
    function = compiled(_SQUARE)
    rows = np.zeros((count, 2), np.int64)
    rows[:, 0] = np.arange(count)
    for _ in range(20):
        rows[:, 1] = -1
        _team(threads).run(address_of(function), rows)
        np.testing.assert_array_equal(rows[:, 1], np.arange(count) ** 2)


_INCREASE = """
define void @loop(ptr %row) {
  %status = getelementptr i64, ptr %row, i64 2
  %most_at = getelementptr i64, ptr %row, i64 1
  %at = load ptr, ptr %row
  %most = load i64, ptr %most_at
  %x = load i64, ptr %at
  %y = add i64 %x, 1
  store i64 %y, ptr %at
  %is_more = icmp sgt i64 %y, %most
  %failed = zext i1 %is_more to i64
  store i64 %failed, ptr %status
  ret void
}
"""
"""Adds one to a number somewhere, which fails if that is more than another one then."""


@pytest.mark.parametrize("counts", [(1,), (2, 2), (0, 3), (3, 1, 2), (5, 5, 5, 5)])
def test_compiled_code_asks_for_a_team(counts: tuple[int, ...]) -> None:
    """Each row of steps is one thread's, whose numbers the others do not touch."""
    team, most = _team(len(counts)), 4
    increase = compiled(_INCREASE)
    rows = [
        [Step(increase, (0, most, 0), ((0, Place(0, 8 * row)),), may_fail=True)] * count
        for row, count in enumerate(counts)
    ]
    step = team.step(rows)
    assert step is not None
    assert (step.threads, step.ask, step.may_fail) == (len(counts), team.count, True)
    chain = Chain([step, step], 1)
    for start in (0, -100):
        numbers = np.full(len(counts), start)
        is_done = chain.run([numbers])
        assert is_done == (start + 2 * max(counts) <= most)
        if is_done:
            assert numbers.tolist() == [start + 2 * count for count in counts]


def test_what_may_not_fail_has_nothing_to_say() -> None:
    square = compiled(_SQUARE)
    step = _team(2).step([[Step(square, (7, 0), ())], [Step(square, (8, 0), ())]])
    assert step is not None
    assert not step.may_fail


def test_there_are_as_many_threads_as_the_library_uses() -> None:
    team = find_team(torch._C.__file__, torch.get_num_threads)
    if team is None:
        pytest.skip("this PyTorch has no OpenMP of the kind")
    before = torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            assert team.count() == count
    finally:
        torch.set_num_threads(before)


def test_a_library_without_openmp_has_no_team() -> None:
    assert find_team("/nowhere/lib.so", lambda: 2) is None
    multiarray = np._core._multiarray_umath.__file__
    assert find_team(multiarray, lambda: 2) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_works_alone() -> None:
    """A fork has no threads but one, and the library does not know."""
    function = address_of(compiled(_SQUARE))
    rows = np.array([[3, -1], [4, -1]], np.int64)
    team = _team(2)
    team.run(function, rows)
    child = multiprocessing.get_context("fork").Process(target=_squares, args=(team, function))
    child.start()
    child.join(30)
    try:
        assert child.exitcode == 0
    finally:
        child.kill()


def _squares(team: OpenMP, function: int) -> None:
    rows = np.array([[5, -1], [6, -1]], np.int64)
    team.run(function, rows)
    os._exit(0 if team.count() == 1 and list(rows[:, 1]) == [25, 36] else 1)
