"""The error function of float32, by functions that NumPy computes for many cells at once.

    erf(x) = tanh(x P(x^2))

`P` is a polynomial of degree 6: what minimizes the largest relative error of the result on
(0, 3.95], found by Lawson's iteration on `atanh(erf(x)) / x`. The fit is off by 1e-7; with the
rounding of float32 the result is within 4 units in the last place, odd, and never beyond 1. It is
computed block by block, so that what is in between stays in cache.

    >>> error_function(np.array([-4.0, -0.0, 0.5], np.float32)).round(5).tolist()
    [-1.0, -0.0, 0.5205000042915344]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TERMS = (
    1.1283792743012864,
    0.10276905583409839,
    -0.0001918308904209912,
    -0.0006197845871654888,
    8.763730170987449e-05,
    -5.668471599864428e-06,
    1.418520026117725e-07,
)
"""The coefficients of `P`, from the constant one on."""

_COEFFICIENTS = [np.asarray(coefficient, np.float32) for coefficient in TERMS]

LARGEST = 16.0
"""A square from which on the result is 1."""


_BLOCK = 1 << 15
"""Cells that are computed at once."""


def error_function(x: Array, out: Array | None = None) -> Array:
    """erf of a float32 array; `out` may be the array itself."""
    made = np.empty(x.shape, x.dtype) if out is None else out
    if x.size <= _BLOCK or not (x.flags.c_contiguous and made.flags.c_contiguous):
        _compute(x, made)
        return made
    cells, results = x.reshape(-1), made.reshape(-1)
    for start in range(0, cells.size, _BLOCK):
        end = start + _BLOCK
        _compute(cells[start:end], results[start:end])
    return made


def _compute(x: Array, out: Array) -> None:
    square = np.asarray(np.multiply(x, x))
    np.minimum(square, np.float32(LARGEST), out=square)
    found = np.asarray(np.multiply(square, _COEFFICIENTS[-1]))
    for coefficient in reversed(_COEFFICIENTS[1:-1]):
        np.add(found, coefficient, out=found)
        np.multiply(found, square, out=found)
    np.add(found, _COEFFICIENTS[0], out=found)
    np.multiply(found, x, out=found)
    np.tanh(found, out=out)
