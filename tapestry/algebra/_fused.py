"""`a * b + c`, rounded once.

float32 goes by way of float64, where the product is exact; rounding the sum to odd keeps the second
rounding right (S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
float64 takes the product apart (T. J. Dekker, 1971) and does the same; numbers so large or small
that the parts would overflow or underflow are added as fractions.

    >>> x = np.float32(1 + 2**-12)
    >>> multiply_add(x, x, np.float32(-1 - 2**-11)).item() == 2**-24
    True
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_SPLIT = float((1 << 27) + 1)
_SAFE = (2.0**-400, 2.0**400)
"""Magnitudes whose products have parts that are normal numbers."""


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """`a * b + c` of float32 or float64 arrays, as if with unlimited precision, rounded once.

    Floats that are wider yet stand for real numbers, and are rounded twice.
    """
    a, b, c = (np.asarray(x) for x in np.broadcast_arrays(a, b, c))
    if a.dtype.itemsize > 8:
        return a * b + c
    if a.dtype == np.float32:
        product = a.astype(np.float64) * b.astype(np.float64)
        return _odd_sum(product, c.astype(np.float64)).astype(np.float32)
    return _multiply_add_double(a, b, c)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """A rounded sum, and what rounding it left out (D. Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """A rounded product, and what rounding it left out."""

    def split(x: Array) -> tuple[Array, Array]:
        high = x * _SPLIT
        high = high - (high - x)
        return high, x - high

    product = a * b
    (a1, a2), (b1, b2) = split(a), split(b)
    return product, a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)


def _odd_sum(a: Array, b: Array) -> Array:
    """A sum whose last bit is set when it is not exact."""
    total, rest = _two_sum(a, b)
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    inexact = (rest != 0) & np.isfinite(total) & np.isfinite(rest) & even
    towards = np.where(rest > 0, np.inf, -np.inf)
    return np.where(inexact, np.nextafter(total, towards), total)


def _multiply_add_double(a: Array, b: Array, c: Array) -> Array:
    high, low = _two_product(a, b)
    middle, low = _two_sum(c, low)
    high, middle = _two_sum(high, middle)
    result = high + _odd_sum(middle, low)
    plain = (a == 0) | (b == 0) | ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c))
    result = np.where(plain, a * b + c, result)
    # A product that is too large for float64 is finite still.
    result = np.where(np.isfinite(a) & np.isfinite(b) & np.isinf(c), c, result)
    sizes = [np.abs(x) for x in (a, b, c)]
    safe = plain | ((sizes[2] == 0) | _in_range(sizes[2])) & _in_range(sizes[0], sizes[1])
    # Elsewhere, and where the sum cancels, each cell for itself.
    slow = ~safe | ((result == 0) & ~plain)
    if np.any(slow):
        result = np.array(result)
        cells = zip(a[slow].tolist(), b[slow].tolist(), c[slow].tolist(), strict=True)
        result[slow] = [_exactly(*cell) for cell in cells]
    return result


def _in_range(*sizes: Array) -> Array:
    low, high = _SAFE
    inside = [(low <= size) & (size <= high) for size in sizes]
    return np.logical_and.reduce(inside)


def _exactly(a: float, b: float, c: float) -> float:
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total == 0:
        return a * b + c
    try:
        return float(total)
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")
