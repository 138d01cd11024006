"""Folds of a few neighbours each are those of NumPy, in order."""

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
