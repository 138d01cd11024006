"""Memory that is handed out again once no array lies on it.

    made = empty((1347, 128), np.dtype("f4"))       # as np.empty; large ones come from a pool

The C library gives large blocks back to the system, which hands out others page by page, each of
them zeroed: that takes longer than to compute on them. A program asks for the same sizes at every
call. So a block goes back to the pool when the last array on it is gone, be it one that a caller
keeps, or PyTorch as a tensor; until then nobody else gets it.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from math import prod
from mmap import mmap
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array

_LARGE = 1 << 17
"""Bytes from which memory is pooled; the C library keeps smaller blocks itself."""

_IDLE = 1 << 28
"""Bytes that a pool keeps though nobody uses them."""

_LAST_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
"""Which Linux writes as `32768K`."""

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
        block = _blocks(memory.nbytes).from_buffer(memory)
        block.memory, block.give = memory, self._give
        return np.ndarray(shape, dtype, block)

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


@cache
def _blocks(size: int) -> Any:
    """What arrays on so many bytes of memory lie on: the last one takes it along.

    It is a type of ctypes, as NumPy takes their memory without asking for a description of it.
    """
    held: dict[str, Any] = {"__slots__": ("give", "memory"), "__del__": _given_back}
    return type("Block", (ctypes.c_char * size,), held)


def _given_back(block: Any) -> None:
    block.give(block.memory)


_POOL = Pool()

empty = _POOL.empty
"""An array of the process's pool."""


def reserved(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array for where it is alone: as long as nobody reads or writes its cells, it takes none.

    Its addresses are its own all the same.
    """
    size = prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    # As bytes, because NumPy cannot name every type of ml_dtypes.
    return np.frombuffer(mmap(-1, size), np.uint8, size).view(dtype).reshape(shape)


def maker(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[..., Array]:
    """What makes arrays of a shape and dtype as `empty` does: NumPy does, of what is small."""
    return empty if is_large(prod(shape) * dtype.itemsize) else np.empty


CACHE = 1 << 20
"""Bytes of the cache that a core has for itself, more or less."""


CELLS = 1 << 22
"""Cells of any array in between that are held at once."""


def passes_caches(size: int) -> bool:
    """Whether so many bytes that are written are gone from all caches when somebody reads them, and
    stores need not have them there.

    That is from half of the last cache on, as what is read meanwhile takes as much. On a Zen 3 with
    32 MB of it, eight operations and the sum of their results took 1.02 times as long with caches
    as past them for 16 MB, 1.1 times for 32 MB and 1.2 times for 64 MB, but 0.9 times for 8 MB.
    """
    return native.stores_past_caches() and size >= last_cache_size() // 2


@cache
def last_cache_size() -> int:
    """Bytes of the cache that cores share, as Linux says; elsewhere what many processors have."""
    units = {"K": 1 << 10, "M": 1 << 20}
    try:
        text = _LAST_CACHE.read_text().strip()
        size = int(text[:-1]) * units[text[-1]]
    except (OSError, KeyError, ValueError, IndexError):
        size = 0
    return size if size > 0 else 1 << 25
