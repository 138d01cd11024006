"""Remainders of floats are exact however large the quotient is, as those of C are."""

from __future__ import annotations

import numpy as np
import pytest

import tapestry
from tapestry.metakernels.quotients import remainder
from tapestry.metakernels.scalars import Cell

RNG = np.random.default_rng(0)
CELLS = 4000


def drawn(dtype: str, bits: int) -> np.ndarray:
    """Cells of any sign, between powers of two."""
    cells = (RNG.random(CELLS) + 1) * 2.0 ** RNG.integers(-bits, bits, CELLS)
    return (RNG.choice([-1, 1], CELLS) * cells).astype(dtype)


def edges(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    known = np.finfo(dtype)
    cells = [0.0, -0.0, 1, -3, 5.5, known.smallest_subnormal * 7, known.tiny, np.inf, np.nan]
    grid = np.meshgrid(np.array([*cells, 2e9, -1e20], dtype), np.array(cells, dtype))
    return grid[0].ravel(), grid[1].ravel()


def made(dtype: str, a: np.ndarray, b: np.ndarray, on: str = "numpy") -> list[np.ndarray]:
    x, y = tapestry.input("x", a.shape, dtype), tapestry.input("y", b.shape, dtype)
    program = [tapestry.fmod(x, y), x % y, x // y]
    return [tapestry.run(one, x=a, y=b, on=on) for one in program]


def check(dtype: str, a: np.ndarray, b: np.ndarray, on: str = "numpy") -> None:
    with np.errstate(all="ignore"):
        rest = np.fmod(a, b)
        apart = (rest != 0) & ((rest < 0) != (b < 0))
        below = np.where(apart, rest + b, rest)
    for got, want in zip(made(dtype, a, b, on), (rest, below), strict=False):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("dtype", "bits"), [("float32", 63), ("float64", 77)])
def test_remainders_are_exact(dtype: str, bits: int) -> None:
    a, b = drawn(dtype, bits), drawn(dtype, bits)
    a[: CELLS // 4] = np.round(a[: CELLS // 4] / b[: CELLS // 4]) * b[: CELLS // 4]
    check(dtype, a, b)
    np.testing.assert_array_equal(np.signbit(made(dtype, a, b)[0]), np.signbit(a))


@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_integers_beside_fractions(dtype: str, on: str) -> None:
    a = np.array([2147483647, -2147483648, 1e20, 3e38, -1e30, 7], dtype)
    check(dtype, a, np.array([2.5, 2.5, 3, 2.5, -1.7, 2], dtype), on)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_at_the_edges(dtype: str) -> None:
    a, b = edges(dtype)
    with np.errstate(all="ignore"):
        far = (
            np.isfinite(a)
            & (b != 0)
            & (np.abs(a / b) >= (np.inf if dtype == "float32" else 2**156))
        )
    check(dtype, a[~far], b[~far])
    np.testing.assert_array_equal(made(dtype, a[far], b[far])[0], 0)


def test_a_remainder_of_integers_is_one_operation() -> None:
    assert remainder(Cell("a", "i32"), Cell("b", "i32")).name == "mod_trunc"


@pytest.mark.parametrize("on", ["reference", "numpy", "triton"])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
def test_what_integers_leave_of_nothing_is_0(dtype: str, on: str) -> None:
    a, b = np.array([7, 1, 5, 100, 0], dtype), np.array([0, 2, 0, 7, 0], dtype)
    x, y = tapestry.input("x", a.shape, dtype), tapestry.input("y", b.shape, dtype)
    for made in (x % y, tapestry.fmod(x, y)):
        np.testing.assert_array_equal(tapestry.run(made, x=a, y=b, on=on), [0, 1, 0, 2, 0])
    np.testing.assert_array_equal(tapestry.run(x % 0, x=a, on=on), 0)
