"""Compiled functions of integers, and several of them one after another.

    step = Step(scale, (0, 0, n), ((0, Place(0, 0)), (1, Place(1, 0))))
    step.at([x, y])             # the same, which knows the addresses of two arrays
    Row.of([step, other])       # both as numbers, for a function that calls them: `in_a_row`

Between two functions of a library, a thread of Python's asks for the interpreter's lock, and comes
back to code and data that no cache has any more. So what calls them is compiled, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapestry.runtime.cpu.native import address_of, compiled


@dataclass(frozen=True)
class Place:
    """An address: so many bytes after a base, which has a number, or is an address by itself."""

    base: int
    offset: int


@dataclass(frozen=True)
class Step:
    """A compiled function, what it takes, and which of that are addresses.

    If it `may_fail`, the last of what it takes is not zero afterwards if it did. What it calls may
    be `shared` by threads of a library's own, unless these are told to leave it alone. It may be
    for some `threads`, which are as many as `ask` must say whenever it is called.
    """

    function: Any
    arguments: tuple[int, ...]
    places: tuple[tuple[int, Place], ...]
    may_fail: bool = False
    shared: bool = False
    threads: int = 1
    ask: Callable[[], int] | None = None

    def at(self, bases: Sequence[int]) -> Step:
        """The same where the addresses of bases are known: they are its bases then."""
        arguments, places = list(self.arguments), list[tuple[int, Place]]()
        for number, place in self.places:
            arguments[number] = bases[place.base] + place.offset
            places.append((number, Place(bases[place.base], place.offset)))
        return replace(self, arguments=tuple(arguments), places=tuple(places))

    def of_rows(self, rows: NDArray[np.int64] | None) -> list[Step]:
        """A step for each of some rows, which is added to what this one takes; itself without any.

        What is added to an address is away from where it was.
        """
        if rows is None:
            return [self]
        return [
            replace(
                self,
                arguments=tuple((row + self.arguments).tolist()),
                places=tuple((at, Place(p.base, p.offset + int(row[at]))) for at, p in self.places),
            )
            for row in rows
        ]


@dataclass(frozen=True)
class Row:
    """Steps as the numbers that `in_a_row` takes, and which of these are addresses."""

    numbers: list[int]
    places: list[tuple[int, Place]]

    @staticmethod
    def of(steps: Sequence[Step]) -> Row:
        """All of some steps."""
        numbers, places = [0, len(steps)], list[tuple[int, Place]]()
        for step in steps:
            numbers += [address_of(step.function), len(step.arguments), int(step.may_fail)]
            places += [(len(numbers) + at, place) for at, place in step.places]
            numbers += step.arguments
        return Row(numbers, places)

    @staticmethod
    def size(steps: Sequence[Step]) -> int:
        """How many numbers that are."""
        return 2 + sum(3 + len(step.arguments) for step in steps)


_TEXT = """
define void @loop(ptr %row) {
entry:
  %count_at = getelementptr i64, ptr %row, i64 1
  %first = getelementptr i64, ptr %row, i64 2
  %count = load i64, ptr %count_at
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %n_next, %next ]
  %at = phi ptr [ %first, %entry ], [ %at_next, %next ]
  %is_left = icmp slt i64 %n, %count
  br i1 %is_left, label %call, label %done
call:
  %own_at = getelementptr i64, ptr %at, i64 1
  %may_fail_at = getelementptr i64, ptr %at, i64 2
  %arguments = getelementptr i64, ptr %at, i64 3
  %function = load ptr, ptr %at
  %own = load i64, ptr %own_at
  call void %function(ptr %arguments)
  %at_next = getelementptr i64, ptr %arguments, i64 %own
  %may_fail = load i64, ptr %may_fail_at
  %is_looked_at = icmp ne i64 %may_fail, 0
  br i1 %is_looked_at, label %look, label %next
look:
  %status_at = getelementptr i64, ptr %at_next, i64 -1
  %status = load i64, ptr %status_at
  %is_wrong = icmp ne i64 %status, 0
  br i1 %is_wrong, label %wrong, label %next
next:
  %n_next = add i64 %n, 1
  br label %head
wrong:
  store i64 1, ptr %row
  ret void
done:
  ret void
}
"""
"""A row has whether a step failed, after which there are no others, and how many steps there are;
for each where its function is, how many arguments it takes, whether it may fail, and these.
"""


def in_a_row() -> Any:
    """The function that calls the steps of a row; None where nothing is compiled."""
    return compiled(_TEXT, "that calls others one after another")
