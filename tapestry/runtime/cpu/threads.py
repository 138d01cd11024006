"""Threads that share the work of one call.

    >>> found = []
    >>> share(found.append, range(5), threads=2)
    >>> sorted(found)
    [0, 1, 2, 3, 4]

NumPy lets go of the interpreter's lock while it computes, so threads on parts of arrays run at the
same time. The caller works too, and whoever is done takes the next item, so that a core that others
use costs as little as it can. BLAS has threads of its own, which would meet ours, and wait for
work by spinning: while ours work, it has one (`tapestry.runtime.cpu.blas`).

There are as many as the process may use cores; the environment's TAPESTRY_THREADS says otherwise.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import cache
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tapestry.diagnostics import UsageError
from tapestry.runtime.cpu.addresses import address
from tapestry.runtime.cpu.blas import single_threaded
from tapestry.runtime.cpu.helpers import core, find_helpers
from tapestry.runtime.cpu.native import is_available
from tapestry.runtime.cpu.steps import Step

VARIABLE = "TAPESTRY_THREADS"

Item = TypeVar("Item")


class _Here(threading.local):
    """Whether this thread is at work for a call of `share`."""

    busy = False


_here = _Here()


def thread_count() -> int:
    """How many threads a call may use."""
    asked = os.environ.get(VARIABLE) or None
    if asked is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if not asked.isdecimal() or int(asked) < 1:
        raise UsageError(f"{VARIABLE} is {asked!r}", hint="a number of threads, at least 1")
    return int(asked)


def check_environment() -> None:
    """Raise UsageError where the environment says of threads, or of compiling, what has no sense.

    Small programs would ask for neither.
    """
    thread_count()
    is_available()


def share(work: Callable[[Item], object], items: Sequence[Item], threads: int) -> None:
    """Do some work on every item, on so many threads; the first error of one ends all.

    No thread is woken for which there is no item: it would hold the work, and arrays with that,
    until it is awake.
    """
    threads, left = min(threads, len(items)), iter(items)
    if threads < 2 or _here.busy:
        with single_threaded():
            for item in left:
                work(item)
        return
    errors: list[BaseException | None] = []
    with single_threaded():
        pool = _pool(threads - 1)
        pool.leave_core()
        helpers: list[Future[None]] = []
        try:
            with suppress(RuntimeError):  # no thread starts any more, as when a process exits
                # Each has the caller's context: how NumPy reports errors is part of it.
                helpers.extend(
                    pool.submit(copy_context().run, _work, work, left) for _ in range(threads - 1)
                )
            _work(work, left)
        finally:
            errors += _ended(helpers, left)
    for error in errors:
        if error is not None:
            raise error


def _ended(helpers: Sequence[Future[None]], left: Iterator[Any]) -> list[BaseException | None]:
    """What helpers failed with, all of which have ended.

    Also where a signal interrupts the caller: compiled functions write to arrays that it would let
    go of.
    """
    interrupted: BaseException | None = None
    while True:
        try:
            for _ in left:
                """What is left after an error is nobody's."""
            waiting = [helper for helper in helpers if not helper.cancel()]
            errors = [helper.exception() for helper in waiting]
            break
        except BaseException as error:  # noqa: BLE001 - whatever a signal's handler raises
            interrupted = error
    if interrupted is not None:
        raise interrupted
    return errors


class Team(Protocol):
    """Threads that call compiled functions."""

    def count(self) -> int:
        """How many there are at the moment."""
        ...

    def run(self, function: int, rows: NDArray[np.int64]) -> None:
        """Call the function at an address with the address of each row, on any of them."""
        ...

    def step(self, rows: Sequence[Sequence[Step]]) -> Step | None:
        """Some steps each, at the same time, as one; None where no compiled code asks for them."""
        ...


class Workers:
    """These threads, as a team."""

    def count(self) -> int:
        """How many threads work, with the caller; 1 where they are at work already."""
        return 1 if _here.busy else thread_count()

    def run(self, function: int, rows: NDArray[np.int64]) -> None:
        """Call the function at an address with the address of each row; rows are contiguous."""
        helpers = find_helpers() if len(rows) > 1 and not _here.busy else None
        if helpers is not None:
            with single_threaded():
                if helpers.run(function, rows):
                    return
        call: Callable[[int], Any] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
        share(call, [address(row) for row in rows], self.count())

    def step(self, rows: Sequence[Sequence[Step]]) -> Step | None:
        """None: it is the interpreter that wakes these threads."""
        del rows


def _work(work: Callable[[Item], object], left: Iterator[Item]) -> None:
    _here.busy = True
    try:
        for item in left:
            work(item)
    except BaseException:
        for _ in left:
            """The others stop."""
        raise
    finally:
        _here.busy = False


class _Pool(ThreadPoolExecutor):
    """Threads that wait for work, and know how the system calls them."""

    def __init__(self, threads: int) -> None:
        self._numbers: list[int] = []
        super().__init__(
            threads, "tapestry", lambda: self._numbers.append(threading.get_native_id())
        )

    def leave_core(self) -> None:
        """Keep the threads off the core that the caller runs on.

        Linux may wake a thread on the core of the one that wakes it, and take milliseconds to move
        one of the two: as long as all of the work may take.
        """
        if not hasattr(os, "sched_setaffinity"):
            return
        own = core()
        others = os.sched_getaffinity(0) - {own}
        if others and own is not None:
            with suppress(OSError):  # then they stay where they are
                for number in self._numbers:
                    os.sched_setaffinity(number, others)


@cache
def _pool(threads: int) -> _Pool:
    return _Pool(threads)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork
