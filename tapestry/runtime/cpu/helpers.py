"""Threads that wait in compiled code, and call compiled functions.

    helpers = find_helpers()
    helpers.run(address, rows)      # the function with the address of each of four rows, on four

A thread of Python's that is woken asks for the interpreter's lock before it does anything, and the
one that woke it asks for it again when it is done. Where all of the work takes some tens of
microseconds, that is most of it. These threads enter compiled code once, and never leave it: they
wait for a semaphore there, as does who waits for them. What a helper has not begun when the caller
is done with its own row, the caller takes back.

That is for Linux, whose semaphores these are. Elsewhere there are no helpers.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapestry.runtime.cpu.addresses import address
from tapestry.runtime.cpu.native import compiled

Rows = NDArray[np.int64]
"""Arguments of a compiled function, row by row."""

_NUMBERS = 32
"""The numbers of a helper: two semaphores and a state in lines of the cache of their own."""

_FIELDS = """
  %wake = getelementptr i64, ptr %helper, i64 0
  %done = getelementptr i64, ptr %helper, i64 8
  %state = getelementptr i64, ptr %helper, i64 16
  %function_at = getelementptr i64, ptr %helper, i64 24
  %row_at = getelementptr i64, ptr %helper, i64 25
"""

_LOOKS = 4000
"""How often to look for a post before sleeping: for 0.1 ms on a Zen 5, at 25 ns each."""

_PAUSE = (
    ("@llvm.aarch64.hint(i32", " 1)")
    if platform.machine() in ("aarch64", "arm64")
    else ("@llvm.x86.sse2.pause(", ")")
)
"""What leaves a core to its other threads for a moment: a function, and what it is given."""

_LOOK = f"""
declare i32 @sem_wait(ptr)
declare i32 @sem_trywait(ptr)
declare i32 @sem_post(ptr)
declare void {_PAUSE[0]})
define internal void @wait_for(ptr %semaphore) {{
entry:
  br label %look
look:
  %n = phi i64 [ 0, %entry ], [ %n_next, %pause ]
  %missed = call i32 @sem_trywait(ptr %semaphore)
  %is_there = icmp eq i32 %missed, 0
  br i1 %is_there, label %end, label %again
again:
  %n_next = add i64 %n, 1
  %is_left = icmp slt i64 %n_next, {_LOOKS}
  br i1 %is_left, label %pause, label %sleep
pause:
  call void {"".join(_PAUSE)}
  br label %look
sleep:
  %failed = call i32 @sem_wait(ptr %semaphore)
  %is_interrupted = icmp ne i32 %failed, 0
  br i1 %is_interrupted, label %sleep, label %end
end:
  ret void
}}
"""
"""Waiting for a semaphore, first awake: who sleeps is woken by the system, which takes long."""

_WAIT = f"""
{_LOOK}
define void @loop(ptr %helper) {{
entry:
  {_FIELDS}
  br label %wait
wait:
  call void @wait_for(ptr %wake)
  %met = cmpxchg ptr %state, i64 1, i64 2 acq_rel acquire
  %is_work = extractvalue {{ i64, i1 }} %met, 1
  br i1 %is_work, label %work, label %wait
work:
  %function = load ptr, ptr %function_at
  %row = load ptr, ptr %row_at
  call void %function(ptr %row)
  store atomic i64 0, ptr %state release, align 8
  %posted = call i32 @sem_post(ptr %done)
  br label %wait
}}
"""
"""What a helper does. Its state is 0 without work, 1 when there is some, and 2 while it is done."""

_SHARE = f"""
{_LOOK}
define void @loop(ptr %given) {{
entry:
  %helpers_at = getelementptr i64, ptr %given, i64 1
  %rows_at = getelementptr i64, ptr %given, i64 2
  %size_at = getelementptr i64, ptr %given, i64 3
  %count_at = getelementptr i64, ptr %given, i64 4
  %call = load ptr, ptr %given
  %helpers = load ptr, ptr %helpers_at
  %rows = load ptr, ptr %rows_at
  %size = load i64, ptr %size_at
  %count = load i64, ptr %count_at
  br label %next
next:
  %n = phi i64 [ 0, %entry ], [ %n_next, %give ]
  %is_more = icmp slt i64 %n, %count
  br i1 %is_more, label %give, label %own
give:
  %n_next = add i64 %n, 1
  %offset = mul i64 %n_next, %size
  %row = getelementptr i8, ptr %rows, i64 %offset
  %place = mul i64 %n, {_NUMBERS}
  %helper = getelementptr i64, ptr %helpers, i64 %place
  {_FIELDS}
  store ptr %call, ptr %function_at
  store ptr %row, ptr %row_at
  store atomic i64 1, ptr %state release, align 8
  %posted = call i32 @sem_post(ptr %wake)
  br label %next
own:
  call void %call(ptr %rows)
  br label %after
after:
  %m = phi i64 [ 0, %own ], [ %m_next, %taken ], [ %m_next, %waited ]
  %is_given = icmp slt i64 %m, %count
  br i1 %is_given, label %look, label %end
look:
  %m_next = add i64 %m, 1
  %m_place = mul i64 %m, {_NUMBERS}
  %m_helper = getelementptr i64, ptr %helpers, i64 %m_place
  %m_state = getelementptr i64, ptr %m_helper, i64 16
  %m_done = getelementptr i64, ptr %m_helper, i64 8
  %met = cmpxchg ptr %m_state, i64 1, i64 0 acq_rel acquire
  %is_back = extractvalue {{ i64, i1 }} %met, 1
  br i1 %is_back, label %taken, label %waited
taken:
  %m_offset = mul i64 %m_next, %size
  %m_row = getelementptr i8, ptr %rows, i64 %m_offset
  call void %call(ptr %m_row)
  br label %after
waited:
  call void @wait_for(ptr %m_done)
  br label %after
end:
  ret void
}}
"""
"""What the caller does: it gives work, does its own, and takes back what is not begun."""

_ABOUT = "that shares rows with helpers"


class Helpers:
    """Threads that are there for one caller at a time."""

    def __init__(self, wait: Callable[[int], object], share: Callable[[int], object]) -> None:
        self._wait, self._share = wait, share
        self._lock = threading.Lock()
        self._memory = np.zeros((0, _NUMBERS), np.int64)
        self._numbers: list[int] = []
        self._core: int | None = None
        self._possible = True

    def run(self, function: int, rows: Rows) -> bool:
        """Call the function at an address with the address of each row; rows are contiguous.

        False where the helpers are at work for another thread, or none can start: nothing is done
        then.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            count = len(rows) - 1
            if len(self._memory) < count:
                self._start(max(count, 2 * len(self._memory)))
            if len(self._memory) < count:
                return False
            self._leave_core()
            memory, begin = address(self._memory), address(rows)
            given = np.array([function, memory, begin, rows.strides[0], count], np.int64)
            self._share(address(given))
        finally:
            self._lock.release()
        return True

    def _start(self, count: int) -> None:
        """Have so many helpers instead of those that there are, which wait forever.

        Where a thread cannot start, there are no more, now and later.
        """
        if not self._possible:
            return
        memory, library = np.zeros((count, _NUMBERS), np.int64), _library()
        _kept.append(memory)  # a helper is asleep on its semaphore for as long as it lives
        numbers: list[int] = []
        for own in memory:
            first = address(own)
            for semaphore in (first, first + 8 * own.itemsize):
                library.sem_init(ctypes.c_void_p(semaphore), 0, 0)
            thread = threading.Thread(
                target=self._enter, args=(first,), name="tapestry helper", daemon=True
            )
            try:
                thread.start()
            except RuntimeError:
                self._possible = False
                return
            if thread.native_id is not None:
                numbers.append(thread.native_id)
        self._memory, self._numbers, self._core = memory, numbers, None

    def _enter(self, helper: int) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        self._wait(helper)

    def _leave_core(self) -> None:
        """Keep the helpers off the core that the caller runs on.

        Linux may wake a thread on the core of the one that wakes it, and take milliseconds to move
        one of the two: as long as all of the work may take.
        """
        own = core()
        if own == self._core or own is None:
            return
        others = os.sched_getaffinity(0) - {own}
        if others:
            with suppress(OSError):  # then they stay where they are
                for number in self._numbers:
                    os.sched_setaffinity(number, others)
        self._core = own


_kept: list[NDArray[np.int64]] = []
"""The memory of all helpers that there ever were."""


@cache
def find_helpers() -> Helpers | None:
    """The helpers of this process; None where there are none."""
    if sys.platform != "linux" or not hasattr(_library(), "sem_init"):
        return None
    wait, share = compiled(_WAIT, _ABOUT), compiled(_SHARE, _ABOUT)
    return None if wait is None or share is None else Helpers(wait, share)


def core() -> int | None:
    """The core that this thread runs on, if the C library can say."""
    ask: Callable[[], int] | None = getattr(_library(), "sched_getcpu", None)
    number = -1 if ask is None else ask()
    return None if number < 0 else number


@cache
def _library() -> Any:
    return ctypes.CDLL(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=find_helpers.cache_clear)  # threads do not survive a fork
