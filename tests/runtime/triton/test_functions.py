"""Helpers for functions that Triton lacks, or has only with branches, are close and keep signs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from scipy.special import erf, erfc

import tapestry
from tapestry.codegen.helpers import sources

POINTS = np.concatenate(
    [
        np.linspace(-6.0, 6.0, 20001),
        np.logspace(-37, 38, 2001),
        -np.logspace(-37, 38, 2001),
        [np.inf, -np.inf, 0.0, -0.0],
    ]
)


@pytest.mark.parametrize(("name", "exact"), [("erf", erf), ("tanh", np.tanh)])
def test_they_are_within_three_halves_of_a_unit_in_the_last_place_of_float32(name, exact):
    x = POINTS.astype(np.float32)
    got = np.asarray(
        tapestry.run(getattr(tapestry, name)(tapestry.input("x", x.shape)), x=x, on="triton")
    )
    want = exact(x.astype(np.float64))
    assert np.max(np.abs(got - want) / np.spacing(np.abs(want).astype(np.float32))) < 1.5
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))


def test_the_complement_of_an_error_function_is_within_a_unit_of_one():
    x = POINTS.astype(np.float32)
    y = tapestry.input("x", x.shape)
    below, above = (
        np.asarray(tapestry.run(one, x=x, on="triton"))
        for one in (1 - tapestry.erf(y), tapestry.erf(y) + 1)
    )
    exact = 1 - erf(x.astype(np.float64))
    assert np.max(np.abs(below - exact)) < 1.5e-7
    assert np.max(np.abs(above - (1 + erf(x.astype(np.float64))))) < 1.5e-7
    # Where it is small it has digits of its own, and it ends at zero.
    small = (x > 1) & (x < 3)
    assert np.max(np.abs(below[small] / erfc(x[small].astype(np.float64)) - 1)) < 1e-3
    assert not below[x > 20].any()
    assert (below[x < -20] == 2).all()


@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_what_is_not_a_number_stays(name):
    x = np.array([np.nan, 0.5], np.float32)
    got = np.asarray(
        tapestry.run(getattr(tapestry, name)(tapestry.input("x", (2,))), x=x, on="triton")
    )
    assert np.isnan(got).tolist() == [True, False]


def test_helpers_come_after_those_that_they_call():
    text = "\n".join(sources({"tanh", "error_function"}))
    for called in ("copy_sign", "expm1"):
        assert text.index(f"def {called}(") < text.index("def tanh(")


KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_exponentials_of_halves_are_those_of_the_program(kind):
    x = np.array([-30.0, -2.5, -0.0, 0.25, 3.0, 9.0, np.inf, -np.inf, np.nan], np.float32)
    y = tapestry.input("x", x.shape, kind)
    halves = x.astype(KINDS[kind])
    wide = halves.astype(np.float64)
    for made, wanted in (
        (lambda one: tapestry.exp(one.astype("float32")), np.exp(wide)),
        (lambda one: tapestry.exp(-one.astype("float32")), np.exp(-wide)),
        (lambda one: tapestry.exp(one.astype("float32") * 0.5), np.exp(wide * 0.5)),
        (lambda one: tapestry.exp(one.astype("float32") * -3e38), np.exp(wide * -3e38)),
        (lambda one: tapestry.sigmoid(one.astype("float32")), 1 / (1 + np.exp(-wide))),
    ):
        got = np.asarray(tapestry.run(made(y), x=halves, on="triton"))
        np.testing.assert_allclose(got, wanted.astype(np.float32), rtol=3e-6)


def test_rows_of_the_least_number_are_spread_evenly():
    """As a mask of the least float leaves them: their distance times log2(e) must not overflow."""
    least = float(ml_dtypes.finfo(ml_dtypes.bfloat16).min)
    x = np.full((2, 64), least, np.float32).astype(ml_dtypes.bfloat16)
    x[1] = 3e38
    got = tapestry.run(tapestry.softmax(tapestry.input("x", x.shape, "bfloat16")), x=x, on="triton")
    np.testing.assert_array_equal(np.asarray(got).astype(np.float32), 1 / 64)
