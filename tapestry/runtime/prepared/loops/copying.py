"""Copies of large arrays, whose cells may lie in another order.

    copy_to(y[:, :4096], x)              # on all threads
    turned = in_rows(x.T)                # row by row, on memory of its own; x as it is
    flat = reshaped((64, -1), x.T)          # a view where there is one

Where neighbours do not lie along the last axis, or that is short, NumPy goes through cells one by
one, and reads a line of memory for each. A loop goes along neighbours, or reads tiles, on all
threads: it takes a half of the time, to a tenth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np

from tapestry.codegen.loops import Graph
from tapestry.runtime.arrays.matrices import Ordered, as_matrix, ordered_matrix
from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.addresses import is_within
from tapestry.runtime.cpu.threads import Team, Workers
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.linking import Traced
from tapestry.runtime.prepared.loops.loop import Loop, NotCompiledError, Ready
from tapestry.runtime.prepared.memory import empty, reserved

_LARGE = 1 << 20
"""Bytes from which a loop is worth it: NumPy takes a tenth of a millisecond, at each call."""

COPIED = 1 << 16
"""Bytes up to which a result is copied rather than that a program is more than one call."""

_WORKERS = Workers()

_KINDS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
"""Numbers of as many bits as a cell, whatever that holds."""


def copy_to(place: Array, array: Array, team: Team | None = None) -> None:
    """Write an array to a place of its shape and dtype, on the threads of a team, or Tapestry's."""
    if not _is_large(array):
        place[...] = array
        return
    given, made = (one.view(f"i{array.itemsize}") for one in (array, place))
    try:
        _copying(array.shape, array.itemsize, team or _WORKERS)([given], [made])
    except NotCompiledError:
        np.copyto(made, given)


def traced_copy(place: Array, array: Array, team: Team | None = None) -> Traced | None:
    """What is called to write an array, small or large, to a place on some memory."""
    if array.itemsize not in _KINDS or not native.is_ready():
        return None
    given, made = (one.view(f"i{array.itemsize}") for one in (array, place))
    return _copying(array.shape, array.itemsize, team or _WORKERS).traced([given], [made])


def traced_view(function: Callable[..., Any], array: Array) -> Traced | None:
    """What is called for a view that has to be a copy.

    None where it is no such function, or where as much is copied as threads share.
    """
    ordered = ordered_by(function, array)
    if ordered is None or ordered.cells.nbytes >= _LARGE:
        return None
    room = reserved(ordered.cells.shape, ordered.cells.dtype)
    copied = traced_copy(room, ordered.cells)
    return None if copied is None else Traced(copied.steps, [ordered.of(room)], [room])


def ready_copy(place: Array, array: Array) -> Ready | None:
    """The function that one thread calls to write an array to a place of its shape and dtype."""
    if array.itemsize not in _KINDS or not native.is_ready():
        return None
    given, made = (one.view(f"i{array.itemsize}") for one in (array, place))
    return _copying(array.shape, array.itemsize, _WORKERS).ready([given], [given, made], 1)


def ordered_by(function: Callable[..., Any], array: Array) -> Ordered | None:
    """The cells of an array in the order in which they are those of what a function makes.

    None where that is no view of the array, or it is another function.
    """
    if not isinstance(function, partial):
        return None
    known, ordered = cast("partial[Array]", function), None
    if known.func is as_matrix:
        axes, extents, sides, plain = known.args
        ordered = ordered_matrix(axes, extents, sides, plain, array)
    elif known.func is reshaped:
        (shape,) = known.args
        ordered = Ordered(array, shape)
    return ordered if ordered is not None and is_within(ordered.cells, array) else None


def in_rows(array: Array) -> Array:
    """A large array whose cells are not one after another is copied; any other is as it is."""
    if array.flags.c_contiguous or not _is_large(array):
        return array
    made = empty(array.shape, array.dtype)
    copy_to(made, array)
    return made


def reshaped(shape: Sequence[int], array: Array) -> Array:
    """The cells of an array in another shape; a view of it where there is one."""
    if array.flags.c_contiguous or not _is_large(array):
        return array.reshape(shape)
    try:
        return np.reshape(array, shape, copy=False)
    except ValueError:
        return in_rows(array).reshape(shape)


def _is_large(array: Array) -> bool:
    """Whether loops copy an array."""
    return array.nbytes >= _LARGE and array.itemsize in _KINDS and native.is_ready()


@lru_cache(maxsize=64)
def _copying(shape: tuple[int, ...], size: int, team: Team) -> Loop:
    graph = Graph((_KINDS[size],), (), (), (0,))
    return Loop(graph, shape, about=f"that copies {'x'.join(map(str, shape))}", team=team)
