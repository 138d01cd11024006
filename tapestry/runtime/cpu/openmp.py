"""The threads of the process's OpenMP, for compiled functions.

    team = find_team(torch._C.__file__, torch.get_num_threads)      # None without OpenMP
    team.run(address, rows)         # the function at an address, called with that of each row

A library that computes by OpenMP, as PyTorch does on the CPU, has threads that wait for its next
work by spinning. Threads of ours beside them would find the cores taken; these are there already,
and begin at once. They are asked for as compiled code asks: by `GOMP_parallel`, which OpenMP of GCC
has, and those of LLVM and Intel too.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapestry.runtime.cpu.addresses import address
from tapestry.runtime.cpu.native import address_of, compiled

Rows = NDArray[np.int64]
"""Arguments of a compiled function, row by row."""

_NAMES = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads", "omp_in_parallel")

_EACH = """
define void @loop(ptr %team) {
entry:
  %number_at = getelementptr i64, ptr %team, i64 0
  %threads_at = getelementptr i64, ptr %team, i64 1
  %function_at = getelementptr i64, ptr %team, i64 2
  %first_at = getelementptr i64, ptr %team, i64 3
  %end_at = getelementptr i64, ptr %team, i64 4
  %size_at = getelementptr i64, ptr %team, i64 5
  %ask_number = load ptr, ptr %number_at
  %ask_threads = load ptr, ptr %threads_at
  %function = load ptr, ptr %function_at
  %first = load ptr, ptr %first_at
  %end = load i64, ptr %end_at
  %size = load i64, ptr %size_at
  %number = call i32 %ask_number()
  %threads = call i32 %ask_threads()
  %start = zext i32 %number to i64
  %step = zext i32 %threads to i64
  br label %head
head:
  %at = phi i64 [ %start, %entry ], [ %next, %body ]
  %more = icmp slt i64 %at, %end
  br i1 %more, label %body, label %done
body:
  %offset = mul i64 %at, %size
  %row = getelementptr i8, ptr %first, i64 %offset
  call void %function(ptr %row)
  %next = add i64 %at, %step
  br label %head
done:
  ret void
}
"""
"""What each thread of a team runs: every so many rows, from the one of its number on."""


_forked = False
"""Whether this process was forked: the library takes its team for alive, and would wait."""


def _note_fork() -> None:
    global _forked  # noqa: PLW0603
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


@dataclass(frozen=True, eq=False)
class OpenMP:
    """A team of as many threads as `ask` says at the time, of a library that has OpenMP.

    The calling thread is one of them. A function that is called here must not ask for a team.
    """

    ask: Callable[[], int]
    parallel: Callable[..., object]
    within: Callable[[], int]
    questions: tuple[int, int]

    def count(self) -> int:
        """How many threads work, with the caller; 1 where nothing can be shared."""
        count = self.ask()
        return 1 if count < 2 or _forked or self.within() else count

    def run(self, function: int, rows: Rows) -> None:
        """Call the function with the address of each row; rows are contiguous."""
        count = min(len(rows), self.count())
        each = _each()
        if each is None or count < 2:
            call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
            for row in rows:
                call(address(row))
            return
        team = (ctypes.c_int64 * 6)(
            *self.questions, function, address(rows), len(rows), rows.strides[0]
        )
        self.parallel(each, team, count, 0)


def find_team(library: str, ask: Callable[[], int]) -> OpenMP | None:
    """The team of a shared library that is loaded, or of those that it needs; None without one."""
    try:
        loaded = ctypes.CDLL(library)
    except OSError:
        return None
    if not all(hasattr(loaded, name) for name in _NAMES):
        return None
    parallel, number, threads, within = (getattr(loaded, name) for name in _NAMES)
    parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    parallel.restype = None
    return OpenMP(ask, parallel, within, (address_of(number), address_of(threads)))


_known: list[int] = []
"""Where `_EACH` is, once it was compiled: to ask for it takes longer than to wake a thread."""


def _each() -> int | None:
    """Where `_EACH` is, compiled; None where nothing is."""
    if not _known:
        function: Any = compiled(_EACH, "that shares loops among threads")
        if function is None:
            return None
        _known.append(address_of(function))
    return _known[0]
