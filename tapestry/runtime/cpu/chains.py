"""Compiled functions one after another, by one call.

    chain = Chain([Step(scale, (0, 0, n), ((0, Place(0, 0)), (1, Place(1, 0))))], 2)
    chain.run([x, y])           # the same as `scale` of the addresses of two arrays

`tapestry.runtime.cpu.turns` does the same for many parts, on threads, which takes memory that
they all look into. Here there is one part, and a call is told where arrays are, and nothing else:
compiled code has what functions are given otherwise, and puts addresses in.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from struct import Struct

import numpy as np

from tapestry.runtime.cpu.addresses import FIELD, IS_READABLE, address
from tapestry.runtime.cpu.native import Compiled, address_of, compiled
from tapestry.runtime.cpu.steps import Row, Step, in_a_row
from tapestry.runtime.executor import Array

LARGEST = 1 << 15
"""Numbers that functions may be given in all, which are on the stack: 256 KB."""

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
  %call_at = getelementptr i64, ptr %table, i64 2
  %known_at = getelementptr i64, ptr %table, i64 3
  %places_at = getelementptr i64, ptr %table, i64 4
  %status_at = getelementptr i64, ptr %table, i64 5
  %place_count = load i64, ptr %place_count_at
  %call = load ptr, ptr %call_at
  %known = load ptr, ptr %known_at
  %places = load ptr, ptr %places_at
  %status = load i64, ptr %status_at
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
  br i1 %is_place, label %put, label %all
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
all:
  call void %call(ptr %row)
  %is_asked = icmp ne i64 %status, 0
  br i1 %is_asked, label %say, label %done
say:
  %failed = load i64, ptr %row
  %said_at = getelementptr i64, ptr %given, i64 %status
  store i64 %failed, ptr %said_at
  br label %done
done:
  ret void
}
"""
"""What is given is a table, and the arrays; and after them whether a step failed, if one may. The
table has how many numbers are in a row, how many places, and `in_a_row`; the row; the places: of a
number, the array whose address it is, and the bytes after that; and the number of what is given
that is to say whether a step failed, or 0.
"""


class Chain:
    """Steps one after another, up to one that fails.

    `Place.base` is the number of an array, and what `Place.offset` counts from is its first cell.
    """

    def __init__(self, steps: Sequence[Step], arrays: int) -> None:
        """For so many arrays; `fits` says whether the steps are not too many."""
        self.steps = steps
        self.may_fail = any(step.may_fail for step in steps)
        self.failures = 0
        """Calls in which a step failed."""
        self._function = _function(_READ if IS_READABLE else _SAID)
        self._function_of_addresses = _function(_SAID)
        row = Row.of(steps)
        known = np.array(row.numbers, np.int64)
        places = [(at, place.base, place.offset) for at, place in row.places]
        found = np.array(places, np.int64)
        said = arrays + 1 if self.may_fail else 0
        call = address_of(in_a_row())
        table = [len(known), len(places), call, address(known), address(found), said]
        self._table = np.array(table, np.int64)
        self._held = known, found
        self._at = address(self._table)
        self._packed = Struct(f"{arrays + 1}q").pack
        self._asked = ctypes.c_int64 * (arrays + 2)

    @staticmethod
    def fits(steps: Sequence[Step]) -> bool:
        """Whether such steps can be a chain."""
        return Row.size(steps) <= LARGEST

    def run(self, arrays: Sequence[Array]) -> bool:
        """Call all, with addresses in these arrays; false if a step failed."""
        return self._call(self._function, map(_given, arrays))

    def run_at(self, addresses: Sequence[int]) -> bool:
        """The same, where the first cells of arrays are at some addresses."""
        return self._call(self._function_of_addresses, addresses)

    def _call(self, function: Compiled, given: Iterable[int]) -> bool:
        if not self.may_fail:
            function(self._packed(self._at, *given))
            return True
        asked = self._asked(self._at, *given)
        function(asked)
        self.failures += asked[-1]
        return not asked[-1]


def _function(read: str) -> Compiled:
    """What calls steps, and takes the address of what it is given so."""
    function = compiled(_TEXT.replace("READ", read), "that is told where arrays are")
    assert function is not None
    return function


_given = id if IS_READABLE else address
