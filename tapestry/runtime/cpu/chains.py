"""Compiled functions one after another, by one call.

    chain = Chain([Step(scale, (0, 0, n), ((0, Place(0, 0)), (1, Place(1, 0))))], 2, [x])
    chain.run([x, y])           # the same as `scale` of the addresses of two arrays
    chain.run_alike([x, y])     # if x is an array like the one before: nothing else looks at it

`tapestry.runtime.cpu.stealing` does the same for many parts, on threads, which takes memory that
they all look into. Here there is one part, and a call is told where arrays are, and nothing else:
compiled code has what functions are given otherwise, and puts addresses in.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from struct import Struct
from typing import NamedTuple, TypeAlias

import numpy as np

from tapestry.runtime.cpu.addresses import FIELD, IS_READABLE, address
from tapestry.runtime.cpu.native import address_of, compiled
from tapestry.runtime.cpu.steps import Row, Step, in_a_row
from tapestry.runtime.executor import Array

UNLIKE = -1
"""What is said where arrays are not like those that there were."""

LARGEST = 1 << 15
"""Numbers that functions may be given in all, which are on the stack: 256 KB."""

_Told: TypeAlias = Callable[[bytes], int]
"""What is told of a table and arrays, and says how it went."""

_READ = f"""\
  %field = getelementptr i8, ptr %array, i64 {FIELD}
  %there = load i64, ptr %field"""
"""An array is given as the object that it is, which knows its address."""

_SAID = """\
  %there = ptrtoint ptr %array to i64"""
"""It is given as its address."""

_ALIKE = f"""\
  br label %each
each:
  %a = phi i64 [ 0, %begin ], [ %a_next, %ranked ]
  %as = phi ptr [ %wanted, %begin ], [ %as_next, %ranked ]
  %is_object = icmp slt i64 %a, %count
  br i1 %is_object, label %object, label %entry
object:
  %object_at = getelementptr i64, ptr %arrays, i64 %a
  %own = load ptr, ptr %object_at
  %type_at = getelementptr i8, ptr %own, i64 {FIELD - 8}
  %type = load i64, ptr %type_at
  %is_array = icmp eq i64 %type, %wanted_type
  br i1 %is_array, label %typed, label %unlike
typed:
  %rank_at = getelementptr i8, ptr %own, i64 {FIELD + 8}
  %dtype_at = getelementptr i8, ptr %own, i64 {FIELD + 40}
  %short_rank = load i32, ptr %rank_at
  %rank = zext i32 %short_rank to i64
  %dtype = load i64, ptr %dtype_at
  %as_dtype_at = getelementptr i64, ptr %as, i64 1
  %as_rank = load i64, ptr %as
  %as_dtype = load i64, ptr %as_dtype_at
  %is_rank = icmp eq i64 %rank, %as_rank
  %is_dtype = icmp eq i64 %dtype, %as_dtype
  %is_both = and i1 %is_rank, %is_dtype
  br i1 %is_both, label %ranked, label %unlike
ranked:
  %shape_at = getelementptr i8, ptr %own, i64 {FIELD + 16}
  %strides_at = getelementptr i8, ptr %own, i64 {FIELD + 24}
  %shape = load ptr, ptr %shape_at
  %strides = load ptr, ptr %strides_at
  %as_shape = getelementptr i64, ptr %as, i64 2
  %as_strides = getelementptr i64, ptr %as_shape, i64 %rank
  %as_next = getelementptr i64, ptr %as_strides, i64 %rank
  %a_next = add i64 %a, 1
  %bytes = mul i64 %rank, 8
  %of_shape = call i32 @memcmp(ptr %shape, ptr %as_shape, i64 %bytes)
  %of_strides = call i32 @memcmp(ptr %strides, ptr %as_strides, i64 %bytes)
  %of_either = or i32 %of_shape, %of_strides
  %is_alike = icmp eq i32 %of_either, 0
  br i1 %is_alike, label %each, label %unlike
unlike:
  ret i64 {UNLIKE}
"""
"""The first ones of what is given are arrays of a dtype, a shape and strides, or nothing is done.

These are fields of an array's own, as NumPy's ABI has it.
"""

_TEXT = """
declare i32 @memcmp(ptr, ptr, i64)
define i64 @loop(ptr %given) {
begin:
  %table = load ptr, ptr %given
  %arrays = getelementptr i64, ptr %given, i64 1
  %count_at = getelementptr i64, ptr %table, i64 6
  %wanted_at = getelementptr i64, ptr %table, i64 7
  %wanted_type_at = getelementptr i64, ptr %table, i64 8
  %count = load i64, ptr %count_at
  %wanted = load ptr, ptr %wanted_at
  %wanted_type = load i64, ptr %wanted_type_at
LOOK
entry:
  %size = load i64, ptr %table
  %place_count_at = getelementptr i64, ptr %table, i64 1
  %call_at = getelementptr i64, ptr %table, i64 2
  %known_at = getelementptr i64, ptr %table, i64 3
  %places_at = getelementptr i64, ptr %table, i64 4
  %may_fail_at = getelementptr i64, ptr %table, i64 5
  %place_count = load i64, ptr %place_count_at
  %call = load ptr, ptr %call_at
  %known = load ptr, ptr %known_at
  %places = load ptr, ptr %places_at
  %may_fail = load i64, ptr %may_fail_at
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
  %is_asked = icmp ne i64 %may_fail, 0
  br i1 %is_asked, label %ask, label %done
ask:
  %failed = load i64, ptr %row
  %is_failed = icmp ne i64 %failed, 0
  %said = zext i1 %is_failed to i64
  ret i64 %said
done:
  ret i64 0
}
"""
"""What is given is a table, and the arrays. The table has how many numbers are in a row, how many
places, and `in_a_row`; the row; the places: of a number, the array whose address it is, and the
bytes after that; whether a step may fail; and how many arrays are looked at, what is wanted of
them, and their type. What is returned is 1 if a step failed, else 0, or that arrays are unlike.
"""


class Chain:
    """Steps one after another, up to one that fails.

    `Place.base` is the number of an array, and what `Place.offset` counts from is its first cell.
    """

    def __init__(self, steps: Sequence[Step], arrays: int, like: Sequence[Array] = ()) -> None:
        """For so many arrays, of which the first ones are `like` some in calls of `run_alike`.

        `fits` says whether the steps are not too many.
        """
        self.steps = steps
        self.failures = 0
        """Calls in which a step failed."""
        may_fail = any(step.may_fail for step in steps)
        self._functions = _functions()
        row = Row.of(steps)
        known = np.array(row.numbers, np.int64)
        places = [(at, place.base, place.offset) for at, place in row.places]
        found = np.array(places, np.int64)
        dtypes = [array.dtype for array in like]
        rows = [
            (array.ndim, id(dtype), *array.shape, *array.strides)
            for array, dtype in zip(like, dtypes, strict=True)
        ]
        wanted = np.array([number for row in rows for number in row], np.int64)
        call = address_of(in_a_row())
        table = [len(known), len(places), call, address(known), address(found), int(may_fail)]
        table += [len(like), address(wanted), id(np.ndarray)]
        self._table = np.array(table, np.int64)
        self._held = known, found, wanted, dtypes
        self._at = address(self._table)
        self._packed = Struct(f"{arrays + 1}q").pack

    @staticmethod
    def fits(steps: Sequence[Step]) -> bool:
        """Whether such steps can be a chain."""
        return Row.size(steps) <= LARGEST

    def run(self, arrays: Sequence[Array]) -> bool:
        """Call all, with addresses in these arrays; false if a step failed."""
        return self._call(self._functions.read, map(_given, arrays))

    def run_at(self, addresses: Sequence[int]) -> bool:
        """The same, where the first cells of arrays are at some addresses."""
        return self._call(self._functions.said, addresses)

    def run_alike(self, arrays: Sequence[object]) -> bool:
        """The same; false also if the first ones are not like those that there were, or may not be.

        Nothing is done then. Others are arrays.
        """
        return IS_READABLE and self._call(self._functions.alike, map(id, arrays))

    def _call(self, function: _Told, given: Iterable[int]) -> bool:
        said = function(self._packed(self._at, *given))
        if said > 0:
            self.failures += 1
        return not said


class _Functions(NamedTuple):
    """What calls steps, by how it is told of arrays: `alike` looks at these first."""

    read: _Told
    said: _Told
    alike: _Told


@cache
def _functions() -> _Functions:
    read = _READ if IS_READABLE else _SAID
    return _Functions(*(_told(*pair) for pair in ((read, ""), (_SAID, ""), (read, _ALIKE))))


def _told(read: str, look: str) -> _Told:
    text = _TEXT.replace("READ", read).replace("LOOK", look or "  br label %entry")
    function = compiled(text, "that is told where arrays are")
    assert function is not None
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address_of(function))


_given = id if IS_READABLE else address
