"""Threads that share work: every item once, the caller's context, errors, one thread of BLAS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tapestry
from tapestry.diagnostics import UsageError
from tapestry.runtime.cpu import blas
from tapestry.runtime.cpu.threads import VARIABLE, share, thread_count


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_item_is_done_once(threads: int) -> None:
    done: list[int] = []
    share(done.append, range(100), threads)
    assert sorted(done) == list(range(100))


def test_two_threads_work_at_the_same_time() -> None:
    meet = threading.Barrier(2, timeout=60)  # which one thread would never leave
    share(lambda _: meet.wait(), [0, 1], 2)


def test_an_error_ends_the_work_and_is_the_callers() -> None:
    done: list[int] = []

    def work(item: int) -> None:
        if item == 3:
            raise ValueError(item)
        done.append(item)

    for threads in (1, 2):
        with pytest.raises(ValueError, match="3"):
            share(work, range(10_000_000), threads)
    assert len(done) < 10_000_000


def test_a_caller_that_is_interrupted_waits_for_the_others() -> None:
    """They may be in compiled functions, which write to what the caller would let go of."""
    begun, ended = threading.Event(), threading.Event()

    def work(_: int) -> None:
        if threading.current_thread() is threading.main_thread():
            begun.wait(60)
            return
        begun.set()
        time.sleep(0.5)
        ended.set()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            share(work, [0, 1], 2)
        assert ended.is_set()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_caller_does_all_where_no_thread_starts_any_more() -> None:
    """When a process exits, pools take no work; what is called then works as ever."""
    program = """
import atexit
from tapestry.runtime.cpu.threads import share

done = []

def last():
    share(done.append, range(9), 3)
    print(len(done))

atexit.register(last)
share(done.append, range(9), 3)
"""
    made = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert (made.stdout.strip(), made.stderr) == ("18", "")


def test_no_thread_is_woken_without_an_item(monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[int] = []

    def pool(threads: int) -> None:
        woken.append(threads)
        raise RuntimeError

    monkeypatch.setattr("tapestry.runtime.cpu.threads._pool", pool)
    done: list[int] = []
    for items in ([], [7]):
        share(done.append, items, 3)
    assert done == [7]
    assert not woken
    with pytest.raises(RuntimeError):
        share(done.append, [1, 2], 3)
    assert woken == [1]


def test_threads_have_the_callers_context() -> None:
    seen: list[str] = []
    with np.errstate(all="ignore", over="raise"):
        share(lambda _: seen.append(np.geterr()["over"]), range(50), 3)
    assert set(seen) == {"raise"}


def test_work_inside_work_is_done_by_the_thread_that_asks() -> None:
    names: list[tuple[str, str]] = []

    def inner(outer: str) -> None:
        names.append((outer, threading.current_thread().name))

    def work(_: int) -> None:
        share(inner, [threading.current_thread().name] * 2, 4)

    share(work, range(20), 2)
    assert all(outer == here for outer, here in names)
    assert len(names) == 40


def test_the_environment_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "3")
    assert thread_count() == 3
    monkeypatch.setenv(VARIABLE, "none")
    with pytest.raises(UsageError, match="TAPESTRY_THREADS is 'none'"):
        thread_count()
    monkeypatch.delenv(VARIABLE)
    assert thread_count() == len(os.sched_getaffinity(0))


def test_blas_has_one_thread_inside_and_what_it_had_after() -> None:
    found = blas.thread_functions()
    if found is None:
        pytest.skip("NumPy multiplies by another library than OpenBLAS")
    before = found.get()
    found.set(2)
    try:
        with blas.single_threaded():
            assert found.get() == 1
            with blas.single_threaded():
                assert found.get() == 1
            assert found.get() == 1
        assert found.get() == 2
    finally:
        found.set(before)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen")
def test_helpers_stay_within_the_cores_of_the_caller():
    allowed, seen = os.sched_getaffinity(0), list[set[int]]()
    barrier = threading.Barrier(2)

    def look(_: int) -> None:
        barrier.wait(10)  # so that both threads take part
        seen.append(os.sched_getaffinity(0))

    for _ in range(3):
        share(look, range(2), threads=2)
    assert all(own and own <= allowed for own in seen)
    assert os.sched_getaffinity(0) == allowed
    if len(allowed) > 1:
        assert any(own < allowed for own in seen[2:]), "the helper may be on the caller's core"


@pytest.mark.parametrize(
    ("name", "value"),
    [("TAPESTRY_THREADS", "foo"), ("TAPESTRY_THREADS", "0"), ("TAPESTRY_COMPILE", "yes")],
)
def test_an_environment_that_has_no_sense(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small the program is."""
    monkeypatch.setenv(name, value)
    x = tapestry.input("x", (2,))
    for run in (tapestry.run, lambda made, x: tapestry.compile(made)(x)):
        with pytest.raises(UsageError, match=f"{name} is '{value}'"):
            run(x + 1, x=np.zeros(2, "f4"))
