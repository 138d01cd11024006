"""The error function of float32, by functions that NumPy computes for many cells at once.

    erf(x) = tanh(x P(x^2))

`P` is a polynomial of degree 7: what minimizes the largest relative error of the result on
(0, 3.95], found by Lawson's iteration on `atanh(erf(x)) / x`. The fit is off by 7e-8; with the
rounding of float32 the result is within 4 units in the last place, odd, and never beyond 1.

    >>> error_function(np.array([-np.inf, -0.0, 0.5], np.float32)).tolist()
    [-1.0, -0.0, 0.5204998850822449]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_P = (
    1.1283792471832483,
    0.10276986415400866,
    -0.0001952882361600111,
    -0.0006148381646544128,
    8.459654492183957e-05,
    -4.79459573440606e-06,
    2.757502474510704e-08,
    5.421646116398655e-09,
)
_COEFFICIENTS = [np.asarray(coefficient, np.float32) for coefficient in _P]

_LARGEST = np.asarray(16, np.float32)
"""A square from which on the result is 1."""


def error_function(x: NDArray[Any]) -> NDArray[Any]:
    """erf of a float32 array."""
    square = np.asarray(np.multiply(x, x))
    np.minimum(square, _LARGEST, out=square)
    found = np.asarray(np.multiply(square, _COEFFICIENTS[-1]))
    for coefficient in reversed(_COEFFICIENTS[1:-1]):
        np.add(found, coefficient, out=found)
        np.multiply(found, square, out=found)
    np.add(found, _COEFFICIENTS[0], out=found)
    np.multiply(found, x, out=found)
    return np.tanh(found, out=found)
