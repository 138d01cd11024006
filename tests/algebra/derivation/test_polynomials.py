"""Exponential polynomials compute as functions do, and have one form each."""

from fractions import Fraction

import pytest

from tapestry.algebra.derivation.polynomials import OutsideClassError, constant, exp, symbol

x, y, g = map(symbol, "xyg")


def test_one_form_for_each_function():
    assert (x - y) ** 2 == x**2 - x * y * 2 + y**2
    assert exp(x - g) * exp(g) == exp(x)
    assert exp(x - x) == constant(1)
    assert x / x == constant(1)
    assert x - x == constant(0)
    assert not x - x


def test_replacing_reaches_exponents():
    assert (exp(x * y) * x).replaced({"x": y + g}) == exp(y**2 + g * y) * (y + g)


def test_parts_by_symbols():
    body = exp(x - g) * (x + g + 1)
    parted = body.parted("x".__eq__)
    assert {str(inner): str(outer) for inner, outer in parted.items()} == {
        "x*exp(x)": "exp(-g)",
        "exp(x)": "exp(-g) + g*exp(-g)",
    }


def test_what_mixes_stays_inner():
    ((inner, outer),) = exp(x * g + g).parted("x".__eq__).items()
    assert (str(inner), str(outer)) == ("exp(g*x)", "exp(g)")


def test_numbers():
    assert constant(0.1).number == Fraction(0.1)
    assert x.number is None
    assert (x - x).number == 0
    assert (x + y).number is None


def test_negative_powers_of_one_term():
    assert (x * exp(y)) ** -2 == x**-2 * exp(y * -2)
    with pytest.raises(OutsideClassError, match=r"1 / \(x \+ y\)"):
        (x + y).inverse()


def test_no_exponential_of_an_exponential():
    with pytest.raises(OutsideClassError, match="an exponential of an exponential"):
        exp(exp(x))
