"""Folds along axes are PyTorch's: any set of axes, keepdim, empty dimensions, integers exactly."""

# pyright: basic
# PyTorch has no types to speak of.

from typing import Any

import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    ANY,
    FLOATS,
    NUMBERS,
    Row,
    axes_of,
    entries,
    examples_agree,
    law,
    one_axis,
    torch,
)


def over(function, **fixed):
    """A PyTorch function of dim and keepdim, where an empty list of axes stands for all."""

    def reference(x, axis=(), keepdim=False, **rest):
        dim = (axis,) if isinstance(axis, int) else tuple(axis)
        return function(x, dim or tuple(range(x.dim())), keepdim, **fixed, **rest)

    return reference


def supremum(x, dim, keepdim):
    """The greatest, beside -inf in every place that is folded: also of nothing."""
    for axis in dim if x.dim() else ():
        shape = [1 if place == axis % x.dim() else n for place, n in enumerate(x.shape)]
        x = torch.cat([x, torch.full(shape, -torch.inf, dtype=x.dtype)], axis)
    return torch.amax(x, dim, keepdim)


def summed(x, dim, keepdim):
    return torch.sum(x, dim, keepdim, dtype=x.dtype)


def multiplied(x, dim, keepdim):
    for axis in sorted((axis % x.dim() for axis in dim), reverse=True) if x.dim() else ():
        x = torch.prod(x, axis, keepdim, dtype=x.dtype)
    return x


def mean_square(x, dim, keepdim, correction=0.0):
    count = torch.tensor([x.shape[axis] for axis in dim]).prod().item() if x.dim() else 1
    return (x * x).sum(dim, keepdim) / max(0, count - correction)


def counted(x, dim, keepdim):
    return (x != 0).sum(dim, keepdim)


def one(function):
    """A PyTorch function of one axis."""
    return lambda x, axis, keepdim=False: function(x, axis, keepdim)


def norm(x, dim, keepdim, ord=2.0):  # noqa: A002
    return torch.linalg.vector_norm(x, ord, dim, keepdim)


def greatest_size(x, dim, keepdim):
    return torch.amax(torch.abs(x), dim, keepdim)


SUM: dict[str, Any] = {"ulps": 32, "absolute": 64}
"""The order of a fold is free, and its cells cancel."""

ROWS = {
    "sum": Row(over(summed), axes_of(NUMBERS), **SUM),
    "prod": Row(over(multiplied), axes_of(NUMBERS, low=-2, high=2), ulps=64),
    "mean": Row(over(torch.mean), axes_of(FLOATS), **SUM),
    "mean_square": Row(
        over(mean_square), axes_of(FLOATS, correction=st.sampled_from((0.0, 1.0, 3.0))), **SUM
    ),
    "max": Row(over(torch.amax), axes_of(NUMBERS, filled=True, special=True)),
    "supremum": Row(over(supremum), axes_of(FLOATS, special=True)),
    "min": Row(over(torch.amin), axes_of(NUMBERS, filled=True, special=True)),
    "any": Row(over(torch.any), axes_of(ANY, low=-0.2, high=0.2, special=True)),
    "all": Row(over(torch.all), axes_of(ANY, special=True)),
    "count_nonzero": Row(over(counted), axes_of(ANY, low=-0.2, high=0.2, special=True)),
    "vector_norm": Row(
        over(norm), axes_of(FLOATS, ord=st.sampled_from((0.0, 1.0, 2.0, 3.0, 0.5))), ulps=64
    ),
    "vector_norm_max": Row(over(greatest_size), axes_of(FLOATS, filled=True, special=True)),
    "argmax": Row(one(torch.argmax), one_axis(("i32", "f32", "f64"), special=True)),
    "argmin": Row(one(torch.argmin), one_axis(("i32", "f32", "f64"), special=True)),
}

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("reductions")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)
