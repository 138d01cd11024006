"""The positions that sort cells along the last axis: stable, NaN last (first when descending).

    >>> import numpy as np
    >>> stable_order(np.array([[2.0, np.nan, -0.0, 2.0, 0.0]], np.float32), descending=False)
    array([[2, 4, 0, 3, 1]])

A cell of up to 32 bits and its position are one integer of 64 bits: those of equal cells are in the
order of the positions, so any sort is stable, and NumPy's for integers is in vectors. Rows are
sorted in blocks that fit the cache, on all threads.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tapestry.runtime.cpu.threads import share, thread_count
from tapestry.runtime.executor import Array

_BITS = 32
"""Bits of a position, and of a cell that is sorted with it."""

_BLOCK = 1 << 15
"""Cells that are sorted at once, or one row."""

_GROUPS, _GROUPED = 8, 4
"""Groups of a row for each cell that is sought, and cells of a group from which they are worth it.
"""

_AT_ONCE = 1 << 18
"""Cells whose first are found at once: calls are long, and what they make fits the cache."""

_SHARED = 1 << 18
"""Cells from which it is worth to wake threads."""


def stable_order(cells: Array, *, descending: bool) -> Array:
    """Positions of type int64; `cells` are real numbers or truth values, of rank 1 at least."""
    length: int = cells.shape[-1]
    if not _is_narrow(cells.dtype) or length >= 1 << _BITS:
        return _by_merging(cells, descending=descending)
    rows = cells.reshape(prod(cells.shape[:-1]), length)
    order: Array = np.empty(rows.shape, np.int64)
    positions = np.arange(length, dtype=np.int64)
    step = max(1, _BLOCK // max(1, length))

    def work(first: int) -> None:
        own = order[first : first + step]
        keys = _keys(rows[first : first + step])
        np.left_shift(~keys if descending else keys, _BITS, out=own)
        np.bitwise_or(own, positions, out=own)
        own.sort(axis=-1)
        np.bitwise_and(own, (1 << _BITS) - 1, out=own)

    threads = thread_count() if cells.size >= _SHARED else 1
    share(work, range(0, len(rows), step), threads)
    return order.reshape(cells.shape)


def in_order(cells: Array, *, descending: bool) -> Array:
    """The cells at the positions of `stable_order`, which need not be found.

    >>> in_order(np.array([2.0, np.nan, -0.0, 2.0, 0.0], np.float32), descending=False)
    array([-0.,  0.,  2.,  2., nan], dtype=float32)
    """
    if cells.dtype.isbuiltin != 1 or cells.dtype.kind not in "biuf":
        return taken(cells, stable_order(cells, descending=descending))
    length: int = cells.shape[-1]
    rows = cells.reshape(prod(cells.shape[:-1]), length)
    made: Array = np.empty(rows.shape, cells.dtype)
    step = max(1, _BLOCK // max(1, length))

    def work(first: int) -> None:
        given, own = rows[first : first + step], made[first : first + step]
        np.copyto(own, given)
        own.sort(axis=-1)
        if descending:
            own[...] = own[:, ::-1].copy()
        if cells.dtype.kind == "f":
            _keep_order(given, own, descending=descending)

    threads = thread_count() if cells.size >= _SHARED else 1
    share(work, range(0, len(rows), step), threads)
    return made.reshape(cells.shape)


def _keep_order(given: Array, made: Array, *, descending: bool) -> None:
    """Put cells that are equal but not the same, zeros of two signs and NaN, in their order."""
    if not given.size:
        return
    wrong = np.isnan(made[:, 0 if descending else -1])
    zeros = given == 0
    if zeros.any():
        wrong |= (np.signbit(given) & zeros).any(axis=1)
    if wrong.any():
        rows = given[wrong]
        made[wrong] = taken(rows, stable_order(rows, descending=descending))


def first_in_order(cells: Array, count: int, *, descending: bool) -> Array:
    """The first `count` positions of `stable_order`; most others are left out by a bound.

    The `count`-th best of what is best in each of some groups of a row bounds the row's own.
    """
    length: int = cells.shape[-1]
    rows = cells.reshape(prod(cells.shape[:-1]), length)
    found: Array = np.empty((len(rows), count), np.int64)
    step = max(1, _AT_ONCE // max(1, length))

    def work(first: int) -> None:
        own = rows[first : first + step]
        found[first : first + step] = _first(own, count, descending=descending)

    threads = thread_count() if cells.size >= 2 * _AT_ONCE else 1
    share(work, range(0, len(rows), step), threads)
    return found.reshape(*cells.shape[:-1], count)


def _first(rows: Array, count: int, *, descending: bool) -> Array:
    length, groups, found = rows.shape[1], _GROUPS * count, None
    if len(rows) and _is_narrow(rows.dtype) and 0 < groups <= length // _GROUPED:
        plain = rows if rows.dtype.kind in "biu" else rows.astype(np.float32, copy=False)
        found = _first_of_few(plain, count, groups, descending=descending)
    return stable_order(rows, descending=descending)[:, :count] if found is None else found


def _first_of_few(rows: Array, count: int, groups: int, *, descending: bool) -> Array | None:
    """The same of rows of numbers, None where too many cells are no worse than the bound."""
    length: int = rows.shape[1]
    grouped = rows[:, : length // groups * groups].reshape(len(rows), -1, groups)
    if descending:  # NaN is the best: it is kept, and a bound that is NaN leaves nothing out
        best = np.partition(grouped.max(axis=1), groups - count, axis=1)[:, groups - count]
        flat = np.flatnonzero(~(rows < best[:, None]))
    else:
        least = np.fmin.reduce(grouped, axis=1) if rows.dtype.kind == "f" else grouped.min(axis=1)
        best = np.partition(least, count - 1, axis=1)[:, count - 1]
        flat = np.flatnonzero(rows <= best[:, None])
    row = flat // length
    counts = np.bincount(row, minlength=len(rows))
    if len(flat) > _GROUPS * count * len(rows) or counts.min() < count:
        return None
    keys = _keys(rows.reshape(-1)[flat])
    order = np.lexsort((~keys if descending else keys, row))
    first = np.cumsum(counts) - counts
    chosen = order[first[:, None] + np.arange(count)]
    return flat[chosen] - np.arange(len(rows))[:, None] * length


def taken(cells: Array, order: Array) -> Array:
    """The cells at some positions along the last axis of each row."""
    length = cells.shape[-1]
    rows = np.arange(prod(cells.shape[:-1])).reshape(*cells.shape[:-1], 1)
    return cells.reshape(-1).take(order + rows * length)


def _is_narrow(dtype: np.dtype[Any]) -> bool:
    """Whether a cell fits beside its position; those of kind V are floats that NumPy lacks."""
    return 8 * dtype.itemsize <= _BITS and dtype.kind in "biufV"


def _keys(cells: Array) -> Array:
    """Integers of 64 bits that are in the order of the cells; those of equal cells are equal."""
    if cells.dtype.kind in "biu":
        # Of unsigned ones, none has the highest bit of those that are left when keys are shifted.
        return cells.astype(np.int64) - ((1 << (_BITS - 1)) if cells.dtype.kind == "u" else 0)
    wide = cells.astype(np.float32, copy=False) + np.float32(0)  # there is one zero now
    bits = wide.view(np.int32)
    # Of negative numbers, those with larger bits are smaller.
    bits ^= (bits >> 31) & np.int32(0x7FFFFFFF)
    bits[np.isnan(cells)] = 0x7FFFFFFF
    return bits.astype(np.int64)


def _by_merging(cells: Array, *, descending: bool) -> Array:
    if not descending:
        return np.argsort(cells, axis=-1, kind="stable")
    # Equal cells keep their order: sort the mirror image and mirror the positions back.
    mirrored = np.argsort(cells[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return cells.shape[-1] - 1 - mirrored
