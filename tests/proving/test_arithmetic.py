"""The numbers that equality rests on: wide floats, literals, draws, and the ring."""

import doctest
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf as scipy_erf
from xdsl.dialects.builtin import bf16, f16, f32, f64

from tapestry.frontend import parse_text
from tapestry.proving.certifying import certify
from tapestry.proving.floats import WIDE, erf
from tapestry.proving.inputs import CLASSES, draw_inputs
from tapestry.proving.literals import meaning
from tapestry.proving.ring import PRIMES, Ring
from tests.proving.building import Program

RING = Ring.of(0)
NUMBERS = st.integers(0, RING.modulus - 1)
FEW = settings(max_examples=20, deadline=None)


@pytest.mark.parametrize("name", ["literals", "ring", "inputs"])
def test_docstrings(name: str):
    found = doctest.testmod(import_module(f"tapestry.proving.{name}"))
    assert found.failed == 0
    assert found.attempted > 0


def test_primes():
    for prime in PRIMES:
        assert prime % 8 == 7
        assert pow(3, prime - 1, prime) == 1
        for small in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31):
            assert pow(small, (prime - 1) // 2, prime) == 1


@FEW
@given(NUMBERS, NUMBERS)
def test_exp_takes_sums_to_products(a: int, b: int):
    both = RING.exp(a) * RING.exp(b) % RING.modulus
    assert RING.exp((a + b) % RING.modulus) == both
    assert RING.log(RING.exp(a)) == (a % RING.prime**4, 1)


@FEW
@given(NUMBERS, NUMBERS)
def test_log_takes_products_to_sums(a: int, b: int):
    (x, s), (y, t), (z, u) = RING.log(a), RING.log(b), RING.log(a * b % RING.modulus)
    if s and t:
        assert (z - x - y) % RING.prime**4 == 0
        assert (u - s * t) % RING.modulus == 0
        assert RING.exp(x) * s % RING.modulus == a


@FEW
@given(NUMBERS, NUMBERS)
def test_roots_are_multiplicative(a: int, b: int):
    product = RING.root(a * b % RING.modulus)
    assert product == RING.root(a) * RING.root(b) % RING.modulus
    square = RING.root(a) ** 2 % RING.modulus
    assert square in (a, -a % RING.modulus)


def test_roots_of_small_numbers():
    for n in (2, 3, 6, 10, 12, 31):
        assert RING.root(n) ** 2 % RING.modulus == n
        assert RING.root(n * n) == n


def test_erf():
    x = np.linspace(-9, 9, 401)
    np.testing.assert_allclose(erf(x), scipy_erf(x), rtol=4e-15)
    near = erf(x.astype(WIDE))
    np.testing.assert_allclose(near.astype(float), scipy_erf(x), rtol=4e-16)
    half = erf(np.asarray([0.5], WIDE))[0]
    assert abs(half - WIDE.type("0.520499877813046537682746653891964529")) < 1e-18


@pytest.mark.parametrize(
    ("value", "element", "meant"),
    [
        (0.1, f32, "1/10"),
        (1 / 784, f32, "1/784"),
        (1 / 3, f64, "1/3"),
        (0.6931472, f32, "ln2"),
        (-3.1415927, f32, "-pi"),
        (0.125, bf16, "1/8"),
        (1e-05, f16, "1/100000"),
        (2.0**-32, f32, "1/4294967296"),
        (0.088388346, f32, "sqrt(1/128)"),
    ],
)
def test_literals(value: float, element, meant: str):
    assert str(meaning(value, element)) == meant


def test_infinities_mean_themselves():
    assert meaning(float("-inf"), f32) is None
    assert meaning(float("nan"), f32) is None


@pytest.mark.parametrize("kind", CLASSES)
def test_draws(kind: str):
    taken = [(np.dtype(np.float32), (7, 9)), (np.dtype(np.int8), (50,)), (np.dtype(bool), (50,))]
    floats, whole, truth = draw_inputs(CLASSES[kind], taken, seed=3, bounds=(0, 5), all_bits=False)
    values = floats.as_floats(WIDE)
    assert np.abs(values).max(initial=0) <= CLASSES[kind].size
    assert [Fraction(int(n), 1 << floats.exponent) for n in floats.numbers.flat] == [
        Fraction(*x.as_integer_ratio()) for x in values.flat
    ]
    narrow = floats.rounded()
    assert np.array_equal(narrow.as_floats(WIDE), narrow.as_argument().astype(WIDE))
    assert narrow.as_argument().dtype == np.float32
    assert 0 <= whole.numbers.min() <= whole.numbers.max() < 5
    assert truth.numbers.dtype == bool
    again, _, _ = draw_inputs(CLASSES[kind], taken, seed=3, bounds=(0, 5), all_bits=False)
    assert np.array_equal(again.numbers, floats.numbers)


def cells(body: str):
    p = Program(x=(3, 4))
    return parse_text(p.returns(p.op((3, 4), "mm", ["x[d0, d1]"], body)))


def generic():
    taken = [(np.dtype(np.float32), (3, 4))]
    return [draw_inputs(CLASSES["generic"], taken, seed) for seed in (0, 1)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("exp(exp(a))", "exp(exp(a / 2.0) * exp(a / 2.0))"),
        ("log(abs(a) * 3.0)", "log(abs(a)) + log(3.0)"),
        ("exp(log(abs(a)))", "abs(a)"),
        ("sqrt(abs(a) * 2.0)", "sqrt(abs(a)) * sqrt(2.0)"),
        ("rsqrt(abs(a)) * abs(a)", "abs(a) / sqrt(abs(a))"),
        ("tanh(a)", "1.0 - 2.0 / (exp(2.0 * a) + 1.0)"),
        ("exp2(a)", "exp(a * 0.6931472)"),
        ("erf(-a)", "-erf(a)"),
        ("max(a, -a)", "abs(a)"),
        ("floor(a) + 1.0", "floor(a + 1.0)"),
        ("expm1(a) + 1.0", "exp(a)"),
    ],
)
def test_identities_hold_in_the_ring(one: str, other: str):
    assert certify(cells(one), cells(other), generic()) is not None
    assert certify(cells(one), cells(f"({other}) + 1.0e-10"), generic()) is None


def test_the_bound_is_withheld_where_it_is_not_known():
    known = certify(cells("a * a - 1.0"), cells("(a - 1.0) * (a + 1.0)"), generic())
    assert known is not None
    assert known.bound == 2 / 2.0**60
    unknown = certify(cells("erf(a) + a"), cells("a + erf(a)"), generic())
    assert unknown is not None
    assert unknown.bound is None
