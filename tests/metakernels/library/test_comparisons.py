"""Comparisons, logic, choices and bits of the library are PyTorch's."""

# pyright: basic
# PyTorch has no types to speak of.

from math import isinf

import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    ANY,
    FLOATS,
    INTS,
    NUMBERS,
    TORCH,
    Row,
    broadcast,
    entries,
    examples_agree,
    floats,
    law,
    like,
    torch,
    unary,
)

BITS = ("i1", *INTS)


def clamped(x, **bounds):
    """What is between two bounds; those that bind nothing are left out."""
    low, high = (
        None if name not in bounds or isinf(bounds[name]) else like(bounds[name], x)
        for name in ("min", "max")
    )
    return x if low is None and high is None else torch.clamp(x, low, high)


def shifted(function):
    """A shift by at least zero places; by the width or more, PyTorch says nothing."""

    def shift(a, b):
        width = torch.iinfo(torch.result_type(a, b)).bits - 1
        return function(a, torch.clamp(b, 0, width))

    return shift


def same_numbers(x, nan=0.0, posinf=float("inf"), neginf=float("-inf")):
    """Infinities become the greatest and least numbers unless others are given."""
    high, low = (None if abs(bound) == float("inf") else bound for bound in (posinf, neginf))
    return torch.nan_to_num(x, nan, high, low)


def converted(x, dtype):
    """The cells of a tensor in the dtype called so here."""
    return x.to(TORCH[dtype])


ROWS = {
    **{
        name: Row(getattr(torch, name), broadcast(ANY, ANY, low=-1, high=1))
        for name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")
    },
    "logical_not": Row(torch.logical_not, unary(ANY, low=-0.2, high=0.2)),
    **{
        name: Row(getattr(torch, name), broadcast(BITS, BITS, low=-99, high=99))
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    },
    "bitwise_not": Row(torch.bitwise_not, unary(BITS, low=-99, high=99)),
    "shift_left": Row(
        shifted(torch.bitwise_left_shift), broadcast(INTS, ("i8",), low=0, high=0.7)
    ),
    "shift_right": Row(
        shifted(torch.bitwise_right_shift), broadcast(INTS, ("i8",), low=0, high=0.7)
    ),
    **{name: Row(getattr(torch, name), unary(ANY)) for name in ("isnan", "isinf", "isfinite")},
    **{
        name: Row(getattr(torch, name), broadcast(NUMBERS, NUMBERS))
        for name in ("maximum", "minimum", "fmax", "fmin")
    },
    "clamp": Row(
        clamped,
        unary(NUMBERS, min=st.sampled_from((-2.0, 1.0, float("-inf"))),
              max=st.sampled_from((-1.0, 2.0, float("inf")))),
    ),
    "where": Row(torch.where, broadcast(("i1",), ANY, ANY)),
    "nan_to_num": Row(
        same_numbers,
        unary(FLOATS, nan=floats(-2, 2), posinf=floats(1, 2) | st.just(float("inf"))), wide=False,
    ),
    "cast": Row(converted, unary(ANY, dtype=st.sampled_from(ANY), special=False)),
}  # fmt: skip

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("comparisons", "bits", "choices")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)
