"""Memory is handed out again once no array lies on it, and not before."""

from __future__ import annotations

import gc
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tapestry.runtime.prepared import memory
from tapestry.runtime.prepared.memory import Pool, reserved

F4 = np.dtype("f4")
BIG = (256, 256)
BYTES = 4 * 256 * 256


def _place(array: np.ndarray) -> int:
    return array.ctypes.data


def test_memory_is_used_again() -> None:
    pool = Pool()
    first = pool.empty(BIG, F4)
    place = _place(first)
    assert place % 64 == 0
    assert first.shape == BIG
    del first
    assert pool.idle == BYTES
    again = pool.empty((128, 512), F4)
    assert (_place(again), pool.idle) == (place, 0)
    assert _place(pool.empty(BIG, F4)) != place


def test_views_keep_memory() -> None:
    pool = Pool()
    view = pool.empty(BIG, F4)[3:, 1:].T[5:].view("i4")
    gc.collect()
    assert pool.idle == 0
    view[:] = 1
    other = pool.empty(BIG, F4)
    other[:] = 2
    assert (view == 1).all()
    del view
    assert pool.idle == BYTES


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "?", "c8", ml_dtypes.bfloat16])
def test_any_dtype(dtype: object) -> None:
    made = Pool().empty((300, 301), np.dtype(dtype))
    assert made.dtype == np.dtype(dtype)
    assert made.flags.writeable
    assert made.flags.c_contiguous


def test_small_arrays_are_plain() -> None:
    pool = Pool()
    assert pool.empty((4, 4), F4).base is None
    assert pool.empty((), F4).shape == ()
    assert pool.idle == 0


def test_no_more_than_so_much_is_idle() -> None:
    pool = Pool(idle=3 * BYTES)
    arrays = [pool.empty((256, 256 + 64 * n), F4) for n in range(3)]
    many = [pool.empty(BIG, F4) for _ in range(5)]
    arrays.clear()
    many.clear()
    assert pool.idle <= 3 * BYTES
    assert pool.idle > BYTES
    # What was given back last is what is kept.
    idle = pool.idle
    kept = pool.empty(BIG, F4)
    assert pool.idle == idle - kept.nbytes


def test_threads_get_different_memory() -> None:
    pool = Pool()

    def use(number: int) -> bool:
        for _ in range(50):
            made = [pool.empty(BIG, F4) for _ in range(3)]
            for offset, array in enumerate(made):
                array.fill(number + offset / 4)
            if any((array != number + offset / 4).any() for offset, array in enumerate(made)):
                return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(use, range(4)))
    # A thread holds those of two rounds at most.
    assert 3 * BYTES <= pool.idle <= 4 * 6 * BYTES


@pytest.mark.parametrize("shape", [(), (0, 5), (3, 4), (1 << 10, 1 << 10)])
@pytest.mark.parametrize("dtype", ["u1", "f4", "c16"])
def test_reserved_arrays_take_no_memory(shape: tuple[int, ...], dtype: str) -> None:
    tracemalloc.start()
    first, second = reserved(shape, np.dtype(dtype)), reserved(shape, np.dtype(dtype))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (first.shape, first.dtype) == (shape, np.dtype(dtype))
    assert not np.shares_memory(first, second)
    assert peak < 1 << 18


@pytest.mark.parametrize(
    ("text", "size"),
    [("32768K\n", 1 << 25), ("96M", 96 << 20), ("0K", 1 << 25), ("", 1 << 25), ("many", 1 << 25)],
)
def test_the_last_cache_is_what_linux_says(
    text: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "size").write_text(text)
    monkeypatch.setattr(memory, "_LAST_CACHE", tmp_path / "size")
    assert memory.last_cache_size.__wrapped__() == size


def test_without_one_it_is_that_of_many_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_LAST_CACHE", tmp_path / "gone")
    assert memory.last_cache_size.__wrapped__() == 1 << 25
