"""Memory that is handed out again once no array lies on it.

    made = empty((1347, 128), np.dtype("f4"))       # as np.empty; large ones come from a pool

The C library gives large blocks back to the system, which hands out others page by page, each of
them zeroed: that takes longer than to compute on them. A program asks for the same sizes at every
call. So a block goes back to the pool when the last array on it is gone, be it one that a caller
keeps, or PyTorch as a tensor; until then nobody else gets it.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from math import prod
from threading import RLock
from typing import Any

import numpy as np

from tapestry.runtime.executor import Array

_LARGE = 1 << 16
"""Bytes from which memory is pooled; the C library keeps smaller blocks itself."""

_IDLE = 1 << 28
"""Bytes that a pool keeps though nobody uses them."""

_ALIGNMENT = 64
"""Where blocks start: at multiples of a cache line's bytes."""


def is_large(size: int) -> bool:
    """Whether memory of so many bytes is pooled."""
    return size >= _LARGE


class Pool:
    """Blocks of memory by size; sizes are rounded up by an eighth at most.

    Beyond `idle` bytes, what is of the size least recently asked for goes back to the system.
    """

    def __init__(self, idle: int = _IDLE) -> None:
        self.idle = 0
        """Bytes that nobody uses."""
        self._limit = idle
        self._free: OrderedDict[int, list[Array]] = OrderedDict()
        self._lock = RLock()  # a block may be given back while one is taken, by the collector

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array whose cells are not set."""
        used = prod(shape) * dtype.itemsize
        if used < _LARGE:
            return np.empty(shape, dtype)
        step = 1 << (used.bit_length() - 4)
        memory = self._taken(-(-used // step) * step)
        return np.ndarray(shape, dtype, np.asarray(_Block(memory, self._give)))

    def _taken(self, size: int) -> Array:
        with self._lock:
            blocks = self._free.get(size)
            if blocks:
                self._free.move_to_end(size)
                self.idle -= size
                return blocks.pop()
        room = np.empty(size + _ALIGNMENT, np.uint8)
        start = -room.ctypes.data % _ALIGNMENT
        return room[start : start + size]

    def _give(self, memory: Array) -> None:
        with self._lock:
            self._free.setdefault(memory.size, []).append(memory)
            self.idle += memory.size
            while self.idle > self._limit:
                size, blocks = next(iter(self._free.items()))
                if blocks:
                    blocks.pop()
                    self.idle -= size
                else:
                    del self._free[size]


class _Block:
    """What arrays on a block of memory lie on: the last one takes it along."""

    __slots__ = ("__array_interface__", "_give", "_memory")

    def __init__(self, memory: Array, give: Callable[[Array], None]) -> None:
        self._memory = memory
        self._give = give
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        self._give(self._memory)


_POOL = Pool()

empty = _POOL.empty
"""An array of the process's pool."""


@cache
def cache_size() -> int:
    """Bytes of the cache that a core has for itself."""
    names = getattr(os, "sysconf_names", {})
    found = os.sysconf("SC_LEVEL2_CACHE_SIZE") if "SC_LEVEL2_CACHE_SIZE" in names else 0
    return found if found > 0 else 1 << 20
