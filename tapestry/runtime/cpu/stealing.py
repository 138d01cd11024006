"""Compiled functions one after another, for parts that threads take: work stealing.

    kind = Kind([Step(scale, (0, 0, n), ((0, Place(0, 0)), (1, Place(1, 0))))], bases=2)
    queues = PartQueues([kind], [(0, (0, 0)), (0, (4 * n, 4 * n))])   # two parts: of x, and of y
    failed = queues.run(np.array([[x, y]]), Workers())           # on one thread, by their addresses

Between two functions of a library, a thread of Python's asks for the interpreter's lock, which
another may have: where functions take some tens of microseconds, threads wait for each other more
than they compute. Here a thread is in compiled code from its first part to its last.

A *kind* of parts has the steps of each. An address is that of a base, which is known when parts
are run, and what it is away from it: in each part, and for this argument.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapestry.runtime.cpu.addresses import address
from tapestry.runtime.cpu.native import address_of, compiled
from tapestry.runtime.cpu.steps import Step
from tapestry.runtime.cpu.threads import Team

_RUN = 16
"""The numbers of a run of parts: what is next, the end, and the rest of two lines of the cache."""

_TAKE = """
define void @loop(ptr %thread) {
entry:
  %runs_at = getelementptr i64, ptr %thread, i64 0
  %parts_at = getelementptr i64, ptr %thread, i64 1
  %own_at = getelementptr i64, ptr %thread, i64 2
  %arguments_at = getelementptr i64, ptr %thread, i64 3
  %bases_at = getelementptr i64, ptr %thread, i64 4
  %failed_at = getelementptr i64, ptr %thread, i64 5
  %run_count_at = getelementptr i64, ptr %thread, i64 6
  %runs = load ptr, ptr %runs_at
  %parts = load ptr, ptr %parts_at
  %own_run = load i64, ptr %own_at
  %arguments = load ptr, ptr %arguments_at
  %bases = load ptr, ptr %bases_at
  %failed = load ptr, ptr %failed_at
  %run_count = load i64, ptr %run_count_at
  br label %choose
choose:
  %looked = phi i64 [ 0, %entry ], [ %looked_next, %empty ]
  %is_some = icmp slt i64 %looked, %run_count
  br i1 %is_some, label %run, label %done
run:
  %away_from_own = add i64 %own_run, %looked
  %run_number = urem i64 %away_from_own, %run_count
  %run_row = mul i64 %run_number, RUN
  %counter = getelementptr i64, ptr %runs, i64 %run_row
  %end_at = getelementptr i64, ptr %counter, i64 1
  %end = load i64, ptr %end_at
  br label %take
empty:
  %looked_next = add i64 %looked, 1
  br label %choose
take:
  %part = atomicrmw add ptr %counter, i64 1 monotonic
  %is_left = icmp slt i64 %part, %end
  br i1 %is_left, label %taken, label %empty
taken:
  %row = mul i64 %part, 2
  %kind_at = getelementptr i64, ptr %parts, i64 %row
  %away_at = getelementptr i64, ptr %kind_at, i64 1
  %kind = load ptr, ptr %kind_at
  %away = load ptr, ptr %away_at
  %places_at = getelementptr i64, ptr %kind, i64 0
  %place_count_at = getelementptr i64, ptr %kind, i64 1
  %steps_at = getelementptr i64, ptr %kind, i64 2
  %step_count_at = getelementptr i64, ptr %kind, i64 3
  %places = load ptr, ptr %places_at
  %place_count = load i64, ptr %place_count_at
  %steps = load ptr, ptr %steps_at
  %step_count = load i64, ptr %step_count_at
  br label %address
address:
  %n = phi i64 [ 0, %taken ], [ %n_next, %put ]
  %has_place = icmp slt i64 %n, %place_count
  br i1 %has_place, label %put, label %step
put:
  %place_row = mul i64 %n, 4
  %argument_at = getelementptr i64, ptr %places, i64 %place_row
  %base_at = getelementptr i64, ptr %argument_at, i64 1
  %column_at = getelementptr i64, ptr %argument_at, i64 2
  %offset_at = getelementptr i64, ptr %argument_at, i64 3
  %argument = load i64, ptr %argument_at
  %base_number = load i64, ptr %base_at
  %column = load i64, ptr %column_at
  %offset = load i64, ptr %offset_at
  %base_of = getelementptr i64, ptr %bases, i64 %base_number
  %away_of = getelementptr i64, ptr %away, i64 %column
  %base = load i64, ptr %base_of
  %moved = load i64, ptr %away_of
  %there = add i64 %base, %moved
  %value = add i64 %there, %offset
  %into = getelementptr i64, ptr %arguments, i64 %argument
  store i64 %value, ptr %into
  %n_next = add i64 %n, 1
  br label %address
step:
  %s = phi i64 [ 0, %address ], [ %s_next, %next ]
  %has_step = icmp slt i64 %s, %step_count
  br i1 %has_step, label %call, label %take
call:
  %step_row = mul i64 %s, 3
  %function_at = getelementptr i64, ptr %steps, i64 %step_row
  %first_at = getelementptr i64, ptr %function_at, i64 1
  %status_at = getelementptr i64, ptr %function_at, i64 2
  %function = load ptr, ptr %function_at
  %first = load i64, ptr %first_at
  %status = load i64, ptr %status_at
  %own = getelementptr i64, ptr %arguments, i64 %first
  call void %function(ptr %own)
  %may_fail = icmp sge i64 %status, 0
  br i1 %may_fail, label %look, label %next
look:
  %found_at = getelementptr i64, ptr %arguments, i64 %status
  %found = load i64, ptr %found_at
  %is_wrong = icmp ne i64 %found, 0
  br i1 %is_wrong, label %wrong, label %next
wrong:
  %note_at = getelementptr i64, ptr %failed, i64 %part
  store i64 1, ptr %note_at
  br label %take
next:
  %s_next = add i64 %s, 1
  br label %step
done:
  ret void
}
""".replace("RUN", str(_RUN))
"""What a thread does: it takes the next part of its run, then of others', until all are taken."""


@dataclass(frozen=True)
class Kind:
    """Parts of one kind: as many bases as `bases`, and steps."""

    steps: Sequence[Step]
    bases: int


def can_take() -> bool:
    """Whether threads can take parts: functions are compiled here."""
    return compiled(_TAKE, _ABOUT) is not None


_ABOUT = "in which threads take parts"


@dataclass(frozen=True)
class _Room:
    """Memory that compiled code finds the parts of a call in, and what they are as it begins.

    `rows` has a thread's in each row, with where its `bases` are: so many bytes, `steps`, after the
    first one's.
    """

    function: int
    runs: NDArray[np.int64]
    begun: NDArray[np.int64]
    failed: NDArray[np.int64]
    rows: NDArray[np.int64]
    bases: NDArray[np.int64]
    steps: NDArray[np.int64]
    arguments: NDArray[np.int64]


class _Known(threading.local):
    """The rooms of a thread that calls, none of which is in use, by how many work for it."""

    def __init__(self) -> None:
        self.rooms: dict[int, _Room] = {}


class PartQueues:
    """Parts, each of a kind, with how far what it touches is from each base of its kind."""

    def __init__(self, kinds: Sequence[Kind], parts: Sequence[tuple[int, Sequence[int]]]) -> None:
        self._function: Any = compiled(_TAKE, _ABOUT)
        self._known = _Known()
        self._held: list[Any] = [kinds]
        arguments: list[int] = []
        first_base, rows = 0, list[int]()
        for kind in kinds:
            places: list[tuple[int, int, int, int]] = []
            steps: list[tuple[int, int, int]] = []
            for step in kind.steps:
                start = len(arguments)
                arguments += step.arguments
                places += [
                    (start + argument, first_base + place.base, place.base, place.offset)
                    for argument, place in step.places
                ]
                status = len(arguments) - 1 if step.may_fail else -1
                steps.append((address_of(step.function), start, status))
            tables = self._kept(places), self._kept(steps)
            record = self._kept([tables[0], len(places), tables[1], len(steps)])
            rows.append(record)
            first_base += kind.bases
        self._bases = first_base
        self._may_fail = any(step.may_fail for kind in kinds for step in kind.steps)
        self._arguments = np.array(arguments, np.int64)
        self._parts = np.array(
            [(rows[number], self._kept(away)) for number, away in parts], np.int64
        )

    def run(self, bases: NDArray[np.int64], team: Team) -> list[int]:
        """Run all parts, on as many threads as `bases` has rows; the numbers of what failed.

        Each thread's bases are those of all kinds, one kind after another.
        """
        # Whatever a signal's handler, or the collector, runs meanwhile has a room of its own.
        room = self._known.rooms.pop(len(bases), None) or self._room(len(bases))
        room.runs[...] = room.begun
        np.add(room.steps, address(bases), out=room.bases)
        if self._may_fail:
            room.failed[...] = 0
        if len(bases) == 1:
            self._function(address(room.rows))
        else:
            team.run(room.function, room.rows)
        found = [int(part) for part in np.flatnonzero(room.failed)] if self._may_fail else []
        self._known.rooms[len(bases)] = room
        return found

    def _room(self, threads: int) -> _Room:
        """What so many threads need for a call."""
        count, size = len(self._parts), len(self._arguments)
        failed, runs = np.zeros(count, np.int64), np.zeros((threads, _RUN), np.int64)
        # In each call a thread begins with the same parts, which its core's cache may still have.
        runs[:, 0] = [number * count // threads for number in range(threads)]
        runs[:, 1] = [(number + 1) * count // threads for number in range(threads)]
        arguments = np.tile(self._arguments, (threads, 1))
        rows = np.zeros((threads, 7), np.int64)
        for number in range(threads):
            there = address(arguments) + number * size * arguments.itemsize
            known = (address(runs), address(self._parts), number, there)
            rows[number] = (*known, 0, address(failed), threads)
        steps = np.arange(threads) * self._bases * rows.itemsize
        function = address_of(self._function)
        return _Room(function, runs, runs.copy(), failed, rows, rows[:, 4], steps, arguments)

    def _kept(self, numbers: Sequence[Any]) -> int:
        """The address of numbers in memory that stays."""
        array = np.array(numbers, np.int64)
        self._held.append(array)
        return address(array)
