"""Numbers of two float64: precise, and enough to decide what a wider float decides."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest

from tapestry.frontend import parse_text
from tapestry.proving import double_functions as functions
from tapestry.proving import doubles
from tapestry.proving.doubles import Array, Double
from tapestry.proving.equality import compare_programs
from tapestry.proving.pair import Options
from tests.proving.cases import Family

_MODULES = ("softmax", "attention", "statistics", "contractions", "elementwise", "views", "reading")
_FAMILIES: list[Family] = [
    family for name in _MODULES for family in import_module(f"tests.proving.cases.{name}").FAMILIES
]
_EQUAL = [(f, text) for f in _FAMILIES for text in f.equal.values()]
_DIFFER = [(f, text) for f in _FAMILIES for text in f.differ.values()]
_OPTIONS = Options(seeds=1, shrinking=0, doubled=True)


def _answer(family: Family, text: str) -> str:
    return compare_programs(parse_text(family.reference), parse_text(text), _OPTIONS).answer


# Every so many of the cases here, all of them with --slow 1.
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 8))]
)
def test_cases_are_decided_as_by_wide_floats(first: int) -> None:
    for family, text in _EQUAL[first::8]:
        assert _answer(family, text) in ("certified", "numeric"), family.name
    undecided = 0
    for family, text in _DIFFER[first::8]:
        answer = _answer(family, text)
        # Its range is that of float64, where some mistakes of masks underflow.
        undecided += family.name == "causal attention" and answer == "undecided"
        assert answer in ("differs", "undecided" if undecided else ""), family.name
    assert undecided <= 1


def _drawn(low: float, high: float) -> Double:
    random = np.random.default_rng(0)
    near = random.uniform(low, high, 200)
    return doubles.add(
        doubles.exactly(near), doubles.exactly(near * random.uniform(-1, 1) * 2.0**-54)
    )


def _error(found: Double, wanted: Double) -> float:
    gap = doubles.absolute(doubles.subtract(found, wanted))[0]
    return float(np.max(gap / np.maximum(np.abs(wanted[0]), 1e-300)))


def _exact(x: Double) -> list[Fraction]:
    return [Fraction(float(a)) + Fraction(float(b)) for a, b in zip(*x, strict=True)]


def _quotient(a: Fraction, b: Fraction) -> Fraction:
    return a / b


@pytest.mark.parametrize(
    ("function", "exactly"),
    [
        (doubles.add, operator.add),
        (doubles.subtract, operator.sub),
        (doubles.multiply, operator.mul),
        (doubles.divide, _quotient),
    ],
)
def test_arithmetic(
    function: Callable[[Double, Double], Double],
    exactly: Callable[[Fraction, Fraction], Fraction],
) -> None:
    a, b = _drawn(-30.0, 30.0), _drawn(0.5, 3.0)
    for found, x, y in zip(_exact(function(a, b)), _exact(a), _exact(b), strict=True):
        assert abs(found - exactly(x, y)) <= abs(exactly(x, y)) * Fraction(1, 1 << 100)


def _square(x: Double) -> Double:
    return doubles.multiply(x, x)


def _cube(x: Double) -> Double:
    return doubles.multiply(x, _square(x))


# Each function beside its inverse: an error of either shows.
@pytest.mark.parametrize(
    ("there", "back", "low", "high"),
    [
        (functions.exponential, functions.logarithm, 0.5, 300.0),
        (functions.exponential_less_one, functions.logarithm_of_one_more, -0.6, 2.0),
        (functions.exponential_2, functions.logarithm_2, 0.5, 300.0),
        (functions.sine, functions.arc_sine, -1.2, 1.2),
        (functions.cosine, functions.arc_cosine, 0.3, 2.8),
        (functions.tangent, functions.arc_tangent, -1.2, 1.2),
        (functions.hyperbolic_sine, functions.area_sine, -20.0, 20.0),
        (functions.hyperbolic_cosine, functions.area_cosine, 0.5, 20.0),
        (functions.hyperbolic_tangent, functions.area_tangent, -2.0, 2.0),
        (_cube, functions.cube_root, -9.0, 9.0),
        (_square, doubles.square_root, 0.1, 9.0),
    ],
)
def test_functions_undo_their_inverses(
    there: Callable[[Double], Double], back: Callable[[Double], Double], low: float, high: float
) -> None:
    x = _drawn(low, high)
    assert _error(back(there(x)), x) < 2.0**-92


def test_known_numbers() -> None:
    half = doubles.exactly(np.asarray([0.5]))
    erf = Fraction("0.520499877813046537682746653891964529")
    assert abs(_exact(functions.error_function(half))[0] - erf) < Fraction(1, 1 << 100)
    s, c = functions.sine_and_cosine(_drawn(-300.0, 300.0))
    one = doubles.add(doubles.multiply(s, s), doubles.multiply(c, c))
    assert _error(one, doubles.exactly(np.ones(200))) < 2.0**-95


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (doubles.floor, [-3, -2, 0, 0, 2, 3, 2**60 - 1]),
        (doubles.truncate, [-2, -1, 0, 0, 2, 3, 2**60 - 1]),
        (doubles.round_half_even, [-2, -2, 0, 1, 2, 4, 2**60]),
        (doubles.round_half_away, [-3, -2, 1, 1, 3, 4, 2**60]),
    ],
)
def test_steps(function: Callable[[Double], Double], wanted: list[int]) -> None:
    high = np.asarray([-2.5, -1.5, 0.5, 0.5, 2.5, 3.5, 2.0**60])
    low: Array = np.asarray([0, 0, 0, 2.0**-60, 0, 0, -0.25])
    found = _exact(function((high, low)))
    assert found == wanted
