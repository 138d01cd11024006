"""Exponentials, logarithms, angles and powers of numbers of two float64.

    >>> from tapestry.proving.doubles import exactly, subtract
    >>> subtract(exponential(logarithm(exactly(7.0))), exactly(7.0))[0].item() < 1e-29
    True

Exponentials and sines are series after their arguments are made small; their inverses are one step
of Newton's method from what float64 says.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial

import numpy as np

from tapestry.proving.doubles import (
    Double,
    absolute,
    add,
    divide,
    exactly,
    floor,
    multiply,
    negate,
    scaled,
    square_root,
    subtract,
    where,
)
from tapestry.proving.literals import CONSTANTS

LN2 = exactly(Fraction(CONSTANTS["ln2"]))
LN10 = exactly(Fraction("2.302585092994045684017991454684364208"))
PI = exactly(Fraction(CONSTANTS["pi"]))
ONE = exactly(1.0)

_HALVINGS = 9
"""How often an exponent is halved before the series, and its exponential squared after it."""

_EXPONENT = (-745.0, 710.0)
"""Beyond these float64 has no exponentials."""

_TERMS = 14
"""Terms of sines and cosines up to an eighth of a turn."""


def _inverse(n: int) -> Double:
    return exactly(Fraction(1, n))


def _less_one(x: Double) -> Double:
    """exp(x) - 1 of small numbers, where nothing cancels."""
    small = scaled(x, 2.0**-_HALVINGS)
    total = power = small
    for n in range(2, 9):
        power = multiply(power, small)
        total = add(total, multiply(power, _inverse(factorial(n))))
    for _ in range(_HALVINGS):
        total = add(scaled(total, 2.0), multiply(total, total))
    return total


def exponential(x: Double) -> Double:
    high = np.clip(x[0], *_EXPONENT)
    vanishes = x[0] < _EXPONENT[0]
    x = high, np.where(high == x[0], x[1], 0.0)
    count = np.rint(x[0] / LN2[0])
    rest = _less_one(subtract(x, multiply(exactly(count), LN2)))
    found = add(rest, ONE)
    # In two steps, because 2^count may be out of range where the result is not.
    first = np.floor(count / 2)
    found = scaled(scaled(found, np.exp2(first)), np.exp2(count - first))
    return where(vanishes, exactly(np.zeros_like(high)), found)


def exponential_less_one(x: Double) -> Double:
    near = np.abs(x[0]) < 0.25
    inside = where(near, x, exactly(np.zeros_like(x[0])))
    return where(near, _less_one(inside), subtract(exponential(x), ONE))


def logarithm(x: Double) -> Double:
    guess = exactly(np.log(x[0]))
    return add(guess, subtract(multiply(x, exponential(negate(guess))), ONE))


def logarithm_of_one_more(x: Double) -> Double:
    guess = exactly(np.log1p(x[0]))
    gap = subtract(x, exponential_less_one(guess))
    return add(guess, multiply(gap, exponential(negate(guess))))


def exponential_2(x: Double) -> Double:
    return exponential(multiply(x, LN2))


def logarithm_2(x: Double) -> Double:
    return divide(logarithm(x), LN2)


def logarithm_10(x: Double) -> Double:
    return divide(logarithm(x), LN10)


def sine_and_cosine(x: Double) -> tuple[Double, Double]:
    quarters = np.rint(x[0] / (PI[0] / 2))
    rest = subtract(x, multiply(exactly(quarters), scaled(PI, 0.5)))
    square = multiply(rest, rest)
    sine, cosine = rest, ONE
    power_s, power_c = rest, ONE
    for n in range(1, _TERMS):
        sign = -1.0 if n % 2 else 1.0
        power_c, power_s = multiply(power_c, square), multiply(power_s, square)
        cosine = add(cosine, scaled(multiply(power_c, _inverse(factorial(2 * n))), sign))
        sine = add(sine, scaled(multiply(power_s, _inverse(factorial(2 * n + 1))), sign))
    turn = np.mod(quarters, 4)
    swap = (turn == 1) | (turn == 3)
    s, c = where(swap, cosine, sine), where(swap, sine, cosine)
    s = where((turn == 2) | (turn == 3), negate(s), s)
    return s, where((turn == 1) | (turn == 2), negate(c), c)


def sine(x: Double) -> Double:
    return sine_and_cosine(x)[0]


def cosine(x: Double) -> Double:
    return sine_and_cosine(x)[1]


def tangent(x: Double) -> Double:
    return divide(*sine_and_cosine(x))


def angle(y: Double, x: Double) -> Double:
    """The angle of the point (x, y)."""
    guess = exactly(np.arctan2(y[0], x[0]))
    s, c = sine_and_cosine(guess)
    across = subtract(multiply(y, c), multiply(x, s))
    along = add(multiply(x, c), multiply(y, s))
    none = along[0] == 0
    step = divide(across, where(none, ONE, along))
    return where(none, guess, add(guess, step))


def arc_tangent(x: Double) -> Double:
    return angle(x, ONE)


def _other_side(x: Double) -> Double:
    """sqrt(1 - x^2)."""
    return square_root(multiply(subtract(ONE, x), add(ONE, x)))


def arc_sine(x: Double) -> Double:
    return angle(x, _other_side(x))


def arc_cosine(x: Double) -> Double:
    return angle(_other_side(x), x)


def hyperbolic_sine(x: Double) -> Double:
    grown = exponential_less_one(absolute(x))
    found = scaled(add(grown, divide(grown, add(grown, ONE))), 0.5)
    return where(x[0] < 0, negate(found), found)


def hyperbolic_cosine(x: Double) -> Double:
    return scaled(add(exponential(x), exponential(negate(x))), 0.5)


def hyperbolic_tangent(x: Double) -> Double:
    # Beyond 40 it is 1 to all digits.
    inside = np.clip(x[0], -40.0, 40.0)
    grown = exponential_less_one(scaled((inside, np.where(inside == x[0], x[1], 0.0)), 2.0))
    return divide(grown, add(grown, exactly(2.0)))


def area_sine(x: Double) -> Double:
    size = absolute(x)
    square = multiply(size, size)
    more = divide(square, add(ONE, square_root(add(ONE, square))))
    found = logarithm_of_one_more(add(size, more))
    return where(x[0] < 0, negate(found), found)


def area_cosine(x: Double) -> Double:
    less = subtract(x, ONE)
    root = square_root(multiply(less, add(x, ONE)))
    return logarithm_of_one_more(add(less, root))


def area_tangent(x: Double) -> Double:
    return scaled(logarithm_of_one_more(divide(scaled(x, 2.0), subtract(ONE, x))), 0.5)


def cube_root(x: Double) -> Double:
    guess = exactly(np.cbrt(x[0]))
    square = multiply(guess, guess)
    none = square[0] == 0
    gap = subtract(multiply(square, guess), x)
    below = where(none, ONE, multiply(square, exactly(3.0)))
    return where(none, guess, subtract(guess, divide(gap, below)))


def power(x: Double, y: Double) -> Double:
    """x to the y; a negative x has a sign where y is odd. Special cases are float64's."""
    none = x[0] == 0
    found = exponential(multiply(y, logarithm(where(none, ONE, absolute(x)))))
    half = scaled(y, 0.5)
    whole = floor(half)
    odd = (whole[0] != half[0]) | (whole[1] != half[1])
    return where(odd & (x[0] < 0), negate(found), found)


def error_function(x: Double) -> Double:
    """2 / sqrt(pi) exp(-x^2) sum 2^n x^(2n+1) / (2n+1)!!, whose terms have one sign."""
    inside = np.clip(x[0], -9.0, 9.0)
    x = inside, np.where(inside == x[0], x[1], 0.0)
    square = multiply(x, x)
    total = term = x
    for odd in range(3, 1000, 2):
        term = divide(scaled(multiply(term, square), 2.0), exactly(float(odd)))
        total = add(total, term)
        if not np.any(np.abs(term[0]) > np.abs(total[0]) * 2.0**-108):
            break
    factor = divide(exactly(2.0), square_root(PI))
    return multiply(multiply(factor, exponential(negate(square))), total)
