"""Compiled functions one after another, by one call.

    chain = Chain([Step(scale, (0, 0, n), ((0, Place(0, 0)), (1, Place(1, 0))))], 2)
    chain.run([x, y])           # the same as `scale` of the addresses of two arrays

`tapestry.runtime.cpu.turns` does the same for many parts, on threads, which takes memory that
they all look into. Here there is one part, and a call is told where arrays are, and nothing else:
compiled code has what functions are given otherwise, and puts addresses in.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

import numpy as np

from tapestry.runtime.cpu.addresses import FIELD, IS_READABLE, address
from tapestry.runtime.cpu.native import Compiled, address_of, compiled
from tapestry.runtime.cpu.turns import Step
from tapestry.runtime.executor import Array

LARGEST = 1 << 12
"""Numbers that functions may be given in all, which are on the stack: 32 KB."""

_READ = f"""\
  %field = getelementptr i8, ptr %array, i64 {FIELD}
  %there = load i64, ptr %field"""
"""An array is given as the object that it is, which knows its address."""

_SAID = """\
  %there = ptrtoint ptr %array to i64"""
"""It is given as its address."""

_TEXT = """
define void @loop(ptr %given) {
entry:
  %table = load ptr, ptr %given
  %arrays = getelementptr i64, ptr %given, i64 1
  %size = load i64, ptr %table
  %place_count_at = getelementptr i64, ptr %table, i64 1
  %count_at = getelementptr i64, ptr %table, i64 2
  %known_at = getelementptr i64, ptr %table, i64 3
  %places_at = getelementptr i64, ptr %table, i64 4
  %place_count = load i64, ptr %place_count_at
  %count = load i64, ptr %count_at
  %known = load ptr, ptr %known_at
  %places = load ptr, ptr %places_at
  %row = alloca i64, i64 %size
  br label %copy
copy:
  %i = phi i64 [ 0, %entry ], [ %i_next, %copied ]
  %is_known = icmp slt i64 %i, %size
  br i1 %is_known, label %copied, label %place
copied:
  %from = getelementptr i64, ptr %known, i64 %i
  %to = getelementptr i64, ptr %row, i64 %i
  %number = load i64, ptr %from
  store i64 %number, ptr %to
  %i_next = add i64 %i, 1
  br label %copy
place:
  %p = phi i64 [ 0, %copy ], [ %p_next, %put ]
  %is_place = icmp slt i64 %p, %place_count
  br i1 %is_place, label %put, label %head
put:
  %place_row = mul i64 %p, 3
  %argument_at = getelementptr i64, ptr %places, i64 %place_row
  %base_at = getelementptr i64, ptr %argument_at, i64 1
  %offset_at = getelementptr i64, ptr %argument_at, i64 2
  %argument = load i64, ptr %argument_at
  %base = load i64, ptr %base_at
  %offset = load i64, ptr %offset_at
  %array_at = getelementptr i64, ptr %arrays, i64 %base
  %array = load ptr, ptr %array_at
READ
  %value = add i64 %there, %offset
  %into = getelementptr i64, ptr %row, i64 %argument
  store i64 %value, ptr %into
  %p_next = add i64 %p, 1
  br label %place
head:
  %n = phi i64 [ 0, %place ], [ %n_next, %call ]
  %at = phi ptr [ %row, %place ], [ %at_next, %call ]
  %is_left = icmp slt i64 %n, %count
  br i1 %is_left, label %call, label %done
call:
  %own_at = getelementptr i64, ptr %at, i64 1
  %arguments = getelementptr i64, ptr %at, i64 2
  %function = load ptr, ptr %at
  %own = load i64, ptr %own_at
  call void %function(ptr %arguments)
  %n_next = add i64 %n, 1
  %at_next = getelementptr i64, ptr %arguments, i64 %own
  br label %head
done:
  ret void
}
"""
"""What is given is a table, and the arrays. The table has how many numbers are in a row, places in
it, and functions; the row, which for each function has where that is, how many arguments it takes,
and these; and the places: of an argument, the array whose address it is, and the bytes after that.
"""


class Chain:
    """Steps, none of which may fail: nobody looks whether one did.

    `Place.base` is the number of an array, and what `Place.offset` counts from is its first cell.
    """

    def __init__(self, steps: Sequence[Step], arrays: int) -> None:
        """For so many arrays; `fits` says whether the steps are not too many."""
        assert not any(step.may_fail for step in steps)
        self.steps = steps
        self._function = _function(_READ if IS_READABLE else _SAID)
        self._function_of_addresses = _function(_SAID)
        row, places = list[int](), list[tuple[int, int, int]]()
        for step in steps:
            row += [address_of(step.function), len(step.arguments)]
            places += [(len(row) + at, one.base, one.offset) for at, one in step.places]
            row += step.arguments
        known, found = np.array(row, np.int64), np.array(places, np.int64)
        table = [len(row), len(places), len(steps), address(known), address(found)]
        self._table = np.array(table, np.int64)
        self._held = known, found
        self._at = address(self._table)
        self._packed = Struct(f"{arrays + 1}q").pack

    @staticmethod
    def fits(steps: Sequence[Step]) -> bool:
        """Whether such steps can be a chain."""
        numbers = sum(len(step.arguments) + 2 for step in steps)
        return numbers <= LARGEST and not any(step.may_fail for step in steps)

    def run(self, arrays: Sequence[Array]) -> None:
        """Call all, with addresses in these arrays."""
        self._function(self._packed(self._at, *map(_given, arrays)))

    def run_at(self, addresses: Sequence[int]) -> None:
        """The same, where the first cells of arrays are at some addresses."""
        self._function_of_addresses(self._packed(self._at, *addresses))


def _function(read: str) -> Compiled:
    """What calls steps, and takes the address of what it is given so."""
    function = compiled(_TEXT.replace("READ", read), "that calls others one after another")
    assert function is not None
    return function


_given = id if IS_READABLE else address
