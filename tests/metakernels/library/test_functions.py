"""Functions of one cell are PyTorch's, for every dtype."""

# pyright: basic
# PyTorch has no types to speak of.

from typing import Any

import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    ANY,
    FLOATS,
    NUMBERS,
    WIDE,
    Row,
    check_row,
    entries,
    examples_agree,
    law,
    torch,
    unary,
)


def same(name: str, low: float = -3, high: float = 3, **tolerance: Any) -> Row:
    """PyTorch's function of the same name."""
    return Row(
        getattr(torch, name), unary(ANY, low, high), **{"ulps": 8, "absolute": 1, **tolerance}
    )


ROWS = {
    **{
        name: same(name)
        for name in ("exp", "exp2", "expm1", "sin", "cos", "atan", "sinh", "cosh", "tanh", "asinh")
    },
    "tan": same("tan", -1, 1),
    **{name: same(name, 0, 9) for name in ("log", "log2", "log10", "sqrt")},
    "rsqrt": same("rsqrt", 0.1, 9),
    "log1p": same("log1p", -1, 3),
    "acosh": same("acosh", 1, 9, absolute=4),
    **{name: same(name, -1, 1, absolute=2) for name in ("asin", "acos")},
    "atanh": same("atanh", -0.99, 0.99, absolute=2),
    "erf": same("erf"),
    "sigmoid": same("sigmoid", -9, 9),
    "deg2rad": same("deg2rad", -400, 400),
    "rad2deg": same("rad2deg"),
    **{name: Row(getattr(torch, name), unary(NUMBERS)) for name in ("floor", "ceil", "trunc")},
    "round": Row(torch.round, unary(NUMBERS) | unary(WIDE, special=False, decimals=st.just(0))),
    "frac": Row(torch.frac, unary(FLOATS, special=False)),
}

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("functions", "trigonometry", "rounding")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)


@pytest.mark.parametrize("decimals", [-1, 1, 3])
def test_rounding_to_decimals(decimals: int) -> None:
    row = Row(torch.round, None)
    check_row("round", row, [torch.linspace(-30, 30, 97).numpy()], {"decimals": decimals})
