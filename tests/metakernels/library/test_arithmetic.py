"""The arithmetic of the library is PyTorch's: dtypes, broadcasting, integers exactly."""

# pyright: basic
# PyTorch has no types to speak of.

import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    ANY,
    FLOATS,
    INTS,
    NUMBERS,
    Row,
    array,
    broadcast,
    entries,
    examples_agree,
    floats,
    law,
    like,
    torch,
    unary,
)

WHOLE = st.sampled_from((1.0, 2.0, -3.0))


@st.composite
def triples(draw, dtypes):
    """Three tensors of one shape, the first two of one dtype; the third counts."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    kind = (draw(st.sampled_from(dtypes)),)
    return [draw(array(kind, shape)) for _ in range(2)] + [abs(draw(array(("i64",), shape)))], {}


def power_step(result, base, exponent):
    return torch.where(exponent % 2 == 1, result * base, result), base * base, exponent // 2


def divided(mode):
    """Division as PyTorch rounds it; integers by zero give zero, which PyTorch refuses."""

    def function(a, b):
        if not (a.is_floating_point() or b.is_floating_point()):
            zero = b == 0
            quotient = torch.div(a, torch.where(zero, torch.ones_like(b), b), rounding_mode=mode)
            return torch.where(zero, torch.zeros_like(quotient), quotient)
        return torch.div(a, b, rounding_mode=mode)

    return function


def remaining(function):
    """A remainder; of integers by zero it is zero, which PyTorch refuses."""

    def result(a, b):
        if not (a.is_floating_point() or b.is_floating_point()):
            zero = b == 0
            rest = function(a, torch.where(zero, torch.ones_like(b), b))
            return torch.where(zero, torch.zeros_like(rest), rest)
        return function(a, b)

    return result


ROWS = {
    "abs": Row(torch.abs, unary(NUMBERS)),
    "add": Row(
        lambda a, b, alpha=1: torch.add(a, b, alpha=like(alpha, a, b)),
        broadcast(NUMBERS, ANY, alpha=WHOLE), absolute=16,
    ),
    "addcdiv": Row(
        lambda x, a, b, value=1: torch.addcdiv(x, a, b, value=value),
        broadcast(FLOATS, FLOATS, FLOATS, value=floats(-2, 2)), absolute=2**12, ulps=64,
    ),
    "addcmul": Row(
        lambda x, a, b, value=1: torch.addcmul(x, a, b, value=like(value, x, a, b)),
        broadcast(NUMBERS, NUMBERS, NUMBERS, value=WHOLE, special=False), absolute=2**12,
    ),
    "atan2": Row(torch.atan2, broadcast(ANY, ANY, special=False)),
    "copysign": Row(torch.copysign, broadcast(ANY, FLOATS, special=False)),
    "div": Row(torch.div, broadcast(ANY, NUMBERS)),
    "floor_divide": Row(divided("floor"), broadcast(NUMBERS, NUMBERS, special=False)),
    "fmod": Row(remaining(torch.fmod), broadcast(NUMBERS, NUMBERS, special=False), absolute=64),
    "hypot": Row(torch.hypot, broadcast(FLOATS, FLOATS)),
    "lerp": Row(torch.lerp, broadcast(("f32",), ("f32",), ("f32",), special=False), absolute=32),
    "logaddexp": Row(torch.logaddexp, broadcast(FLOATS, FLOATS)),
    "mul": Row(torch.mul, broadcast(NUMBERS, ANY)),
    "neg": Row(torch.neg, unary(NUMBERS)),
    "pow": Row(torch.pow, broadcast(FLOATS, NUMBERS, special=False), ulps=256),
    "power_step": Row(power_step, triples(INTS)),
    "pow_scalar": Row(
        lambda x, exponent: torch.pow(x, like(exponent, x)),
        unary(NUMBERS, exponent=st.sampled_from((0.0, 1.0, 2.0, 3.0, 4.0)))
        | unary(FLOATS, exponent=st.sampled_from((-1.0, 0.5, -0.5, 1.5))), ulps=16,
    ),
    "reciprocal": Row(torch.reciprocal, unary(ANY)),
    "remainder": Row(
        remaining(torch.remainder), broadcast(NUMBERS, NUMBERS, special=False), absolute=64
    ),
    "scale": Row(
        lambda x, factor=1.0, shift=0.0: x * like(factor, x) + like(shift, x),
        unary(NUMBERS, factor=WHOLE, shift=WHOLE), absolute=16,
    ),
    "sign": Row(torch.sign, unary(NUMBERS, special=False)),
    "square": Row(torch.square, unary(NUMBERS)),
    "sub": Row(
        lambda a, b, alpha=1: torch.sub(a, b, alpha=like(alpha, a, b)),
        broadcast(NUMBERS, NUMBERS, alpha=WHOLE), absolute=16,
    ),
    "trunc_divide": Row(divided("trunc"), broadcast(NUMBERS, NUMBERS, special=False)),
    "xlogy": Row(torch.xlogy, broadcast(FLOATS, FLOATS)),
}  # fmt: skip

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("arithmetic", "division", "combinations")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)
