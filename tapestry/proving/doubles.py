"""Numbers of about 32 digits as unevaluated sums of two float64: `high + low`.

    >>> third = divide(exactly(1), exactly(3))
    >>> subtract(multiply(third, exactly(3)), exactly(1))[0].item()
    0.0
    >>> subtract(add(exactly(1), exactly(2.0**-80)), exactly(1))[0].item() == 2.0**-80
    True

`low` is at most half a unit in the last place of `high`. The algorithms are those of Dekker, Knuth,
and of Hida, Li and Bailey's QD library. They are for finite numbers; who uses them says what is
infinite or NaN. `double_functions` has exponentials, logarithms and angles.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Double = tuple[Array, Array]

_SPLIT = 134217729.0  # 2^27 + 1


def exactly(value: float | Fraction | Array) -> Double:
    """Floats as they are; a fraction as the nearest number that there is."""
    if isinstance(value, Fraction):
        high = float(value)
        return np.asarray(high), np.asarray(float(value - Fraction(high)))
    high = np.asarray(value, np.float64)
    return high, np.zeros_like(high)


def of_integers(x: Array) -> Double:
    """Integers of up to 64 bits, signed or not."""
    top = (x >> np.asarray(32, x.dtype)).astype(np.float64) * 2.0**32
    return _two_sum(top, (x & np.asarray(0xFFFFFFFF, x.dtype)).astype(np.float64))


def _two_sum(a: Array, b: Array) -> Double:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _normal(a: Array, b: Array) -> Double:
    """The same sum, where `a` is the larger number."""
    total = a + b
    return total, b - (total - a)


def _halves(a: Array) -> Double:
    # Large numbers are scaled, so that splitting them does not overflow.
    large = np.abs(a) > 2.0**996
    scaled = np.where(large, a * 2.0**-28, a)
    moved = _SPLIT * scaled
    high = moved - (moved - scaled)
    low = scaled - high
    return np.where(large, high * 2.0**28, high), np.where(large, low * 2.0**28, low)


def _two_product(a: Array, b: Array) -> Double:
    product = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def add(a: Double, b: Double) -> Double:
    high, error = _two_sum(a[0], b[0])
    low, rest = _two_sum(a[1], b[1])
    high, error = _normal(high, error + low)
    return _normal(high, error + rest)


def negate(a: Double) -> Double:
    return -a[0], -a[1]


def subtract(a: Double, b: Double) -> Double:
    return add(a, negate(b))


def multiply(a: Double, b: Double) -> Double:
    high, error = _two_product(a[0], b[0])
    return _normal(high, error + (a[0] * b[1] + a[1] * b[0]))


def scaled(a: Double, power: float | Array) -> Double:
    """A number times a power of two."""
    return a[0] * power, a[1] * power


def divide(a: Double, b: Double) -> Double:
    first = a[0] / b[0]
    rest = subtract(a, multiply(b, exactly(first)))
    second = rest[0] / b[0]
    rest = subtract(rest, multiply(b, exactly(second)))
    high, low = _normal(first, second)
    return add((high, low), exactly(rest[0] / b[0]))


def square_root(a: Double) -> Double:
    positive = a[0] > 0
    inverse = 1 / np.sqrt(np.where(positive, a[0], 1.0))
    near = exactly(a[0] * inverse)
    rest = subtract(a, multiply(near, near))[0] * (inverse * 0.5)
    high, low = _two_sum(near[0], rest)
    return np.where(positive, high, a[0] * 0), np.where(positive, low, 0.0)


def absolute(a: Double) -> Double:
    sign = np.where(np.signbit(a[0]), -1.0, 1.0)
    return a[0] * sign, a[1] * sign


def where(condition: Array, a: Double, b: Double) -> Double:
    return np.where(condition, a[0], b[0]), np.where(condition, a[1], b[1])


def is_less(a: Double, b: Double) -> Array:
    return (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))


def floor(a: Double) -> Double:
    high = np.floor(a[0])
    return _normal(high, np.where(high == a[0], np.floor(a[1]), 0.0))


def ceiling(a: Double) -> Double:
    return negate(floor(negate(a)))


def truncate(a: Double) -> Double:
    return where(a[0] < 0, ceiling(a), floor(a))


def round_half_away(a: Double) -> Double:
    size = floor(add(absolute(a), exactly(0.5)))
    return where(a[0] < 0, negate(size), size)


def round_half_even(a: Double) -> Double:
    up = floor(add(a, exactly(0.5)))
    tie = subtract(up, a)[0] == 0.5
    tie &= subtract(up, a)[1] == 0
    odd = floor(scaled(up, 0.5))[0] * 2 != up[0]
    return where(tie & odd, subtract(up, exactly(1.0)), up)
