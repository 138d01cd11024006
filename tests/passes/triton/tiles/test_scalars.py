"""Scalar operations on tiles: powers that are known."""

from __future__ import annotations

import numpy as np
import pytest

import tapestry
from tapestry.algebra import functions
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import run_pipeline

KNOWN = (0.5, -0.5, -1.0, -2.0, -3.0, -4.0, 2.0, 3.0, 4.0, 0.0, 1.0)
OTHERS = (1.5, -2.5, 5.0, 0.25, np.inf, -np.inf, np.nan)
CELLS = (0.0, 1, 0.3, 7, 1e-40, 1e-30, 1e-12, 1e20, 3e38, np.inf, np.nan)


def _powers(exponents, dtype):
    x = tapestry.input("x", (2 * len(CELLS),), dtype)
    powers = [tapestry.pow(x, np.array(power, dtype)) for power in exponents]
    return tapestry.compile(powers, on="triton")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_are_those_of_c(dtype):
    cells = np.array([sign * cell for cell in CELLS for sign in (1, -1)], dtype)
    with np.errstate(all="ignore"):
        found = _powers((*KNOWN, *OTHERS), dtype)(x=cells)
        for exponent, result in zip((*KNOWN, *OTHERS), found, strict=True):
            wanted = functions.power(cells, np.full_like(cells, exponent))
            rtol = 4 * np.finfo(dtype).eps if exponent in KNOWN else 1e-6
            np.testing.assert_allclose(result, wanted, rtol, np.finfo(dtype).smallest_subnormal)
            number = ~np.isnan(wanted)
            assert (np.signbit(result) == np.signbit(wanted))[number].all(), exponent


def test_known_powers_are_products_and_roots():
    def printed(*exponents):
        lowered = _powers(exponents, "float32").lowered.clone()
        run_pipeline(lowered, "loom-to-triton")
        return print_module(lowered).source

    assert "power" not in printed(*KNOWN)
    assert "power(" in printed(1.5)
    # -0.0 to the power of a half is 0.0, whose root is -0.0; -infinity has no root.
    root = 'tl.where(x == float("-inf"), float("inf"), tl.sqrt_rn(x) + 0.0)'
    assert root in printed(0.5)
