"""Folds of a few neighbours each are those of NumPy, in order; long running sums are as exact."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.algebra.reducing import Reduction


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u8"])
@pytest.mark.parametrize("axes", [(3,), (2, 3), (0, 3), (1, 2, 3), (0,)])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.multiply])
def test_neighbours(ufunc: np.ufunc, turned: bool, axes: tuple[int, ...], dtype: str) -> None:
    shape = [(1 << 12) // 8] * 4
    for axis, extent in zip(axes, (3, 2, 2), strict=False):
        shape[axis] = extent
    for axis in set(range(4)) - {*axes}:
        shape[axis] = 16
    values = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)
    if turned:
        values = np.asfortranarray(values)
    with np.errstate(all="ignore"):
        want = ufunc.reduce(values, axis=axes, dtype=dtype)
        got = Reduction(ufunc, None).fold(values, axes)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_what_is_no_number_stays() -> None:
    values = np.ones((2048, 2), np.float32)
    values[7, 1], values[9, 0] = np.nan, np.inf
    for ufunc in (np.add, np.maximum):
        want = ufunc.reduce(values, axis=1)
        np.testing.assert_array_equal(Reduction(ufunc, None).fold(values, (1,)), want)


def test_signs_of_zeros() -> None:
    values = np.full((2048, 2), -0.0, np.float32)
    values[5, 1] = 0.0
    found = Reduction(np.maximum, np.logical_and).fold(values, (1,))
    np.testing.assert_array_equal(np.signbit(found), np.arange(2048) != 5)


@pytest.mark.parametrize("extent", [1, 128, 129, 640, 4097])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running_sums(axis: int, extent: int) -> None:
    shape = [3, 2, 3]
    shape[axis] = extent
    values = np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32)
    got = Reduction(np.add, None).running(values, axis)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, np.add.accumulate(values, axis=axis))


def test_long_running_sums_are_as_exact_as_sums() -> None:
    values = np.full(50257, 0.1, np.float32)
    want = np.add.accumulate(values, dtype=np.float64)
    np.testing.assert_allclose(Reduction(np.add, None).running(values, 0), want, rtol=3e-6)


def test_what_is_no_number_stays_from_there_on() -> None:
    values = np.ones((2, 1000), np.float32)
    values[0, 300], values[1, 500] = np.nan, np.inf
    got = Reduction(np.add, None).running(values, 1)
    np.testing.assert_array_equal(got, np.add.accumulate(values, axis=1))
