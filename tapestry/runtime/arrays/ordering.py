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


def taken(cells: Array, order: Array) -> Array:
    """The cells at positions along the last axis, as many as there are."""
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
