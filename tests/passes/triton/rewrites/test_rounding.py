"""Divisions: which ones are products, and which may be the hardware's."""

from __future__ import annotations

import numpy as np
import pytest

import tapestry
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import run_pipeline


def _printed(expression, numerics="mixed"):
    lowered = tapestry.compile(expression, on="triton").lowered.clone()
    run_pipeline(lowered, f"loom-to-triton{{numerics={numerics}}}")
    source = print_module(lowered).source
    return source[source.rindex("@triton.jit") : source.index(" = dict(")]


@pytest.mark.parametrize("divisor", [0.5, 4.0, -8.0, 2.0**40])
def test_powers_of_two_are_factors(divisor):
    x = tapestry.input("x", (64,))
    quotient = x / np.array(divisor, "f4")
    assert "div_rn" not in _printed(quotient, "strict")
    cells = np.array([1, -3, 1e-40, 3e38, 0, -0.0, np.inf, np.nan] * 8, "f4")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            tapestry.compile(quotient, on="triton")(x=cells), cells / np.float32(divisor)
        )


def test_others_are_not():
    x = tapestry.input("x", (64,))
    assert "tl.div_rn(x, 3.0)" in _printed(x / 3)
    assert "tl.div_rn(" in _printed(x / np.array(2.0**-120, "f4"))


def test_weights_are_as_exact_as_their_exponentials():
    x = tapestry.input("x", (64, 32))
    weights = tapestry.softmax(x)
    assert "tl.div_rn" not in _printed(weights)
    assert "tl.div_rn" in _printed(weights, "strict")
    assert "tl.div_rn" in _printed((tapestry.exp(x) + 1) / x)


def test_halves_round_the_error_away():
    x, y = (tapestry.input(name, (64,), "float16") for name in "xy")
    assert "tl.div_rn" not in _printed(x / y)
    assert "tl.div_rn" in _printed(x / y, "strict")
    # What a sum leaves of a quotient may be its error alone.
    wide = x.astype("float32") / y.astype("float32")
    assert "tl.div_rn" not in _printed((wide * 3).astype("float16"))
    assert "tl.div_rn" in _printed((wide - 1).astype("float16"))
