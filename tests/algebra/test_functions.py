"""Functions of arrays give what NumPy's plain ones give, however they are computed."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from scipy.special import erf as exact_erf

from tapestry.algebra.functions import erf, larger, select, smaller

_DTYPES = ["f2", "f4", "f8", "i1", "i8", "u1", "bool", ml_dtypes.bfloat16, "c8"]


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("shapes", [((64, 64), (64, 64)), ((), (64, 64)), ((64, 1), ()), ((), ())])
def test_selection_keeps_bits(dtype: object, shapes: tuple[tuple[int, ...], ...]) -> None:
    source = np.random.default_rng(0)
    condition = source.random((64, 64)) < 0.5
    a, b = (np.asarray(source.integers(0, 2, shape)).astype(dtype) for shape in shapes)
    got, want = select(condition, a, b), np.where(condition, a, b)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_selection_of_what_is_not_finite() -> None:
    condition = np.arange(4096) % 3 == 0
    b = np.where(condition, np.nan, np.inf).astype("f4")
    np.testing.assert_array_equal(select(condition, np.float32(0), b), np.where(condition, 0, b))
    signs = np.signbit(select(condition, np.float32(-0.0), np.zeros(4096, "f4")))
    np.testing.assert_array_equal(signs, condition)


@pytest.mark.parametrize("bound", [0.0, -0.0, 1.5, -1.5, np.nan])
def test_extremes_beside_a_constant(bound: float) -> None:
    x = np.array([0.0, -0.0, 2.0, -2.0, np.nan, np.inf, -np.inf], "f4")
    for choose in (larger, smaller):
        got = choose(x.copy(), np.float32(bound))
        want = choose(x.copy(), np.full(7, bound, "f4"))
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[got == 0], np.signbit(want)[want == 0])


def test_the_error_function_of_float32() -> None:
    near = np.logspace(-30, 0, 50_001)
    x = np.concatenate([near, -near, np.linspace(-6, 6, 200_001)]).astype("f4")
    got, want = erf(x), exact_erf(x.astype("f8"))
    assert got.dtype == np.float32
    assert np.abs(got).max() == 1
    assert (np.abs(got - want) <= 5 * np.spacing(np.abs(want).astype("f4"))).all()
    np.testing.assert_array_equal(erf(-x), -got)


def test_the_error_function_of_large_arrays_in_place() -> None:
    x = np.linspace(-5, 5, 3 * (1 << 15) + 7).astype("f4")
    want = np.concatenate([erf(part) for part in np.array_split(x, 9)])
    for cells in (x.copy(), x[::-1].copy()[::-1], np.stack([x, x], axis=1)[:, 0]):
        np.testing.assert_array_equal(erf(cells), want)
        assert erf(cells, out=cells) is cells
        np.testing.assert_array_equal(cells, want)


def test_the_error_function_of_what_is_not_finite() -> None:
    with np.errstate(all="ignore"):
        got = erf(np.array([np.inf, -np.inf, np.nan, 1e30, 0.0, -0.0], "f4"))
        assert erf(np.float32(-np.inf)) == -1
    np.testing.assert_array_equal(got, [1, -1, np.nan, 1, 0, 0])
    assert np.signbit(got).tolist() == [False, True, False, False, False, True]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", ml_dtypes.bfloat16])
def test_zeros_are_ordered(dtype: object) -> None:
    cells = np.array([0.0, -0.0, 1.0, -1.0, np.nan, -np.nan]).astype(dtype)
    a, b = (one.ravel() for one in np.meshgrid(cells, cells))
    for choose, sign in ((larger, np.logical_and), (smaller, np.logical_or)):
        both = (a == 0) & (b == 0)
        with np.errstate(all="ignore"):
            got, turned = (choose(*pair).astype("g") for pair in ((a, b), (b, a)))
        np.testing.assert_array_equal(got, turned)
        np.testing.assert_array_equal(
            np.signbit(got)[both], sign(np.signbit(a), np.signbit(b))[both]
        )
