"""Where arrays are in memory.

    >>> cells = np.zeros(4)
    >>> address(cells) == cells.ctypes.data
    True

NumPy makes a dictionary, or an object, to say it, which takes most of a microsecond: as long as a
loop over some thousand cells, and compiled code is told the address of each array of a call. In
CPython the address is the first field of an array's own, as NumPy's ABI has it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

FIELD = object.__basicsize__
"""Bytes of an object before the fields of its own."""


def _said(array: NDArray[Any]) -> int:
    """As NumPy says it."""
    return array.__array_interface__["data"][0]


def _read(array: NDArray[Any]) -> int:
    """As it is in the array; never of one without memory, whose field may be null."""
    return _pointer(id(array) + FIELD).value or 0


_pointer = ctypes.c_void_p.from_address


def _is_readable() -> bool:
    """Whether arrays are here as they are in CPython."""
    if sys.implementation.name != "cpython":
        return False
    whole = np.arange(8)
    ones = (whole, whole[3:], whole[:0], np.array(1.0), whole.reshape(2, 4).T)
    return all(_read(one) == _said(one) and _is_as_known(one) for one in ones)


def _is_as_known(array: NDArray[Any]) -> bool:
    """Whether the type is before the fields, and these are the rank, shape, strides, and dtype."""
    where, rank = id(array) + FIELD, array.ndim

    def numbers(offset: int) -> list[int]:
        return list((ctypes.c_int64 * rank).from_address(_pointer(where + offset).value or 0))

    return (
        _pointer(where - 8).value == id(np.ndarray)
        and ctypes.c_int32.from_address(where + 8).value == rank
        and (not rank or (numbers(16), numbers(24)) == (list(array.shape), list(array.strides)))
        and _pointer(where + 40).value == id(array.dtype)
    )


def is_within(array: Any, of: Any) -> bool:
    """Whether all of an array lies in the memory of another; not of what is no array."""
    if not isinstance(array, np.ndarray) or not isinstance(of, np.ndarray):
        return False
    low, high = np.lib.array_utils.byte_bounds(cast("NDArray[Any]", array))
    first, last = np.lib.array_utils.byte_bounds(cast("NDArray[Any]", of))
    return first <= low and high <= last


IS_READABLE = _is_readable()
"""Whether the address is at FIELD bytes into the object; and whether what `chains` looks at is
where it is looked for: the type 8 bytes before it, the rank 8 after it, the addresses of the shape
16 and of strides 24, the dtype 40.
"""

address: Callable[[NDArray[Any]], int] = _read if IS_READABLE else _said
"""The address of an array's first cell."""
