"""Functions of sizes from number theory, against counting."""

from math import gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.metakernels import WeftError, evaluate_expression


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("gcd(12, 18)", 6),
        ("gcd([0, 4, 6])", 2),
        ("gcd(0, 0)", 0),
        ("solve(2, 1, 3)", 2),
        ("solve(2, 1, 4)", -1),
        ("solve(6, 4, 8)", 2),
        ("solve(5, -3, 1)", 0),
    ],
)
def test_values(text: str, value: int) -> None:
    assert evaluate_expression(text, {}) == value


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 12))
def test_solve_finds_the_least(a: int, b: int, modulus: int) -> None:
    found = [i for i in range(modulus) if (a * i - b) % modulus == 0]
    names = {"$a": a, "$b": b, "$m": modulus}
    assert evaluate_expression("solve($a, $b, $m)", names) == (found[0] if found else -1)
    assert evaluate_expression("gcd($a, $b)", names) == gcd(a, b)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("solve(1, 2, 0)", "division_by_zero"), ("solve(1, 2)", "kind_mismatch")],
)
def test_refusals(text: str, kind: str) -> None:
    with pytest.raises(WeftError) as caught:
        evaluate_expression(text, {})
    assert caught.value.kind == kind
