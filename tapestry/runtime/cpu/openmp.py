"""The threads of the process's OpenMP, for compiled functions.

    team = find_team(torch._C.__file__, torch.get_num_threads)      # None without OpenMP
    team.run(address, rows)         # the function at an address, called with that of each row
    team.step([[one], [other]])     # the same from compiled code: each thread has steps of its own

A library that computes by OpenMP, as PyTorch does on the CPU, has threads that wait for its next
work by spinning. Threads of ours beside them would find the cores taken; these are there already,
and begin at once. They are asked for as compiled code asks: by `GOMP_parallel`, which OpenMP of GCC
has, and those of LLVM and Intel too.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapestry.runtime.cpu.addresses import address
from tapestry.runtime.cpu.native import address_of, compiled
from tapestry.runtime.cpu.steps import Place, Row, Step, in_a_row

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

_FIRST = 7
"""The numbers of `_TOGETHER` before rows."""

_TOGETHER = f"""
define void @loop(ptr %given) {{
entry:
  %team = alloca [6 x i64]
  %each_at = getelementptr i64, ptr %given, i64 1
  %number_at = getelementptr i64, ptr %given, i64 2
  %threads_at = getelementptr i64, ptr %given, i64 3
  %function_at = getelementptr i64, ptr %given, i64 4
  %count_at = getelementptr i64, ptr %given, i64 5
  %size_at = getelementptr i64, ptr %given, i64 6
  %first = getelementptr i64, ptr %given, i64 {_FIRST}
  %parallel = load ptr, ptr %given
  %each = load ptr, ptr %each_at
  %number = load i64, ptr %number_at
  %threads = load i64, ptr %threads_at
  %function = load i64, ptr %function_at
  %count = load i64, ptr %count_at
  %size = load i64, ptr %size_at
  %bytes = mul i64 %size, 8
  %rows = ptrtoint ptr %first to i64
  %team_1 = getelementptr i64, ptr %team, i64 1
  %team_2 = getelementptr i64, ptr %team, i64 2
  %team_3 = getelementptr i64, ptr %team, i64 3
  %team_4 = getelementptr i64, ptr %team, i64 4
  %team_5 = getelementptr i64, ptr %team, i64 5
  store i64 %number, ptr %team
  store i64 %threads, ptr %team_1
  store i64 %function, ptr %team_2
  store i64 %rows, ptr %team_3
  store i64 %count, ptr %team_4
  store i64 %bytes, ptr %team_5
  %working = trunc i64 %count to i32
  call void %parallel(ptr %each, ptr %team, i32 %working, i32 0)
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %n_next, %look ]
  %failed = phi i64 [ 0, %entry ], [ %either, %look ]
  %away = mul i64 %n, %size
  %row = getelementptr i64, ptr %first, i64 %away
  %is_left = icmp slt i64 %n, %count
  br i1 %is_left, label %look, label %done
look:
  %status = load i64, ptr %row
  %either = or i64 %failed, %status
  %n_next = add i64 %n, 1
  br label %head
done:
  store i64 %failed, ptr %row
  ret void
}}
"""
"""What asks for a team, as `OpenMP.run` does. Given are where `GOMP_parallel`, `_EACH` and its
questions are, and `in_a_row`; how many rows there are, of how many numbers; these; and last whether
one failed.
"""


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

    def step(self, rows: Sequence[Sequence[Step]]) -> Step | None:
        """A thread for the steps of each row, at the same time, as one step.

        None where nothing is compiled.
        """
        each, together, row_of = _each(), compiled(_TOGETHER, "that asks for threads"), in_a_row()
        if each is None or together is None or row_of is None:
            return None
        size = max(map(Row.size, rows))
        numbers = [address_of(self.parallel), each, *self.questions]
        numbers += [address_of(row_of), len(rows), size]
        places = list[tuple[int, Place]]()
        for one in map(Row.of, rows):
            places += [(len(numbers) + at, place) for at, place in one.places]
            numbers += [*one.numbers, *[0] * (size - len(one.numbers))]
        steps = [step for own in rows for step in own]
        may_fail, shared = any(s.may_fail for s in steps), any(s.shared for s in steps)
        given = (*numbers, 0), tuple(places)
        return Step(together, *given, may_fail, shared, self.count(), self.count)


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
