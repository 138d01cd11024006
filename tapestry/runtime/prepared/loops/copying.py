"""Copies of large arrays whose neighbours do not lie along the last axis.

    copy_to(y[:, :4096], x)              # on all threads
    turned = in_rows(x.T)                # row by row, on memory of its own; x as it is
    flat = reshaped((64, -1), x.T)          # a view where there is one

NumPy goes through the cells of such an array one by one, and reads a line of memory for each. A
loop reads tiles of it, on all threads: 64 MB take a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tapestry.codegen.loops import Graph
from tapestry.codegen.loops.vectors import LONG
from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.threads import Team, Workers
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops.loop import Loop, NotCompiledError
from tapestry.runtime.prepared.memory import empty

_LARGE = 1 << 21
"""Bytes from which a loop is worth compiling: NumPy takes milliseconds, at each call."""

_SHARED = 1 << 20
"""Bytes from which threads share a copy: it takes one of them some tens of microseconds."""

_WORKERS = Workers()

_KINDS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
"""Numbers of as many bits as a cell, whatever that holds."""


def copy_to(place: Array, array: Array, team: Team | None = None) -> None:
    """Write an array to a place of its shape and dtype, on the threads of a team, or Tapestry's."""
    if array.nbytes < _SHARED or array.itemsize not in _KINDS or not native.is_ready():
        place[...] = array
        return
    given, made = (one.view(f"i{array.itemsize}") for one in (array, place))
    try:
        _copying(array.shape, array.itemsize, team or _WORKERS)([given], [made])
    except NotCompiledError:
        np.copyto(made, given)


def in_rows(array: Array) -> Array:
    """A large array whose neighbours lie across is copied, row by row; any other is as it is."""
    if not _is_crossed(array):
        return array
    made = empty(array.shape, array.dtype)
    copy_to(made, array)
    return made


def reshaped(shape: Sequence[int], array: Array) -> Array:
    """The cells of an array in another shape; a view of it where there is one."""
    if not _is_crossed(array):
        return array.reshape(shape)
    try:
        return np.reshape(array, shape, copy=False)
    except ValueError:
        return in_rows(array).reshape(shape)


def _is_crossed(array: Array) -> bool:
    """Whether an array is large, and has its neighbours along an axis that is not the last."""
    if array.nbytes < _LARGE or array.ndim < 2 or array.itemsize not in _KINDS:
        return False
    if array.strides[-1] == array.itemsize or array.shape[-1] < LONG or not native.is_ready():
        return False
    axes = zip(array.strides[:-1], array.shape, strict=False)
    return any(stride == array.itemsize and extent >= LONG for stride, extent in axes)


@lru_cache(maxsize=64)
def _copying(shape: tuple[int, ...], size: int, team: Team) -> Loop:
    graph = Graph((_KINDS[size],), (), (), (0,))
    return Loop(graph, shape, about=f"that copies {'x'.join(map(str, shape))}", team=team)
