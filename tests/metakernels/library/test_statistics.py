"""Softmax and its kin, variances and norms are PyTorch's."""

# pyright: basic
# PyTorch has no types to speak of.

import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    FLOATS,
    Row,
    axes_of,
    entries,
    examples_agree,
    law,
    one_axis,
    torch,
)

functional = torch.nn.functional


def softmax(function):
    return lambda x, axis=-1: function(x, dim=axis)


def every(x, axis):
    """The axes that a list of axes means: all of them when it is empty."""
    return (axis if isinstance(axis, int) else tuple(axis)) or tuple(range(x.dim()))


def logsumexp(x, axis=(), keepdim=False):
    axes = every(x, axis)
    return x.clone() if axes == () else torch.logsumexp(x, axes, keepdim)


def spread(function):
    def reference(x, axis=(), keepdim=False, correction=1.0):
        return function(x, every(x, axis), correction=correction, keepdim=keepdim)

    return reference


def normalized(x, axis=1, ord=2.0, eps=1e-12):  # noqa: A002
    return functional.normalize(x, ord, axis, eps)


CORRECTION = st.sampled_from((0.0, 1.0, 2.0))

ROWS = {
    "softmax": Row(softmax(torch.softmax), one_axis(FLOATS, low=-9, high=9), ulps=32),
    "softmin": Row(softmax(functional.softmin), one_axis(FLOATS, low=-9, high=9), ulps=32),
    "log_softmax": Row(
        softmax(torch.log_softmax), one_axis(FLOATS, low=-9, high=9), ulps=32, absolute=16
    ),
    "logsumexp": Row(
        logsumexp, axes_of(FLOATS, special=True, low=-9, high=9),
        ulps=32, absolute=16,
    ),
    "var": Row(spread(torch.var), axes_of(FLOATS, correction=CORRECTION), ulps=64, absolute=64),
    "std": Row(spread(torch.std), axes_of(FLOATS, correction=CORRECTION), ulps=64, absolute=64),
    "var_mean": Row(
        spread(torch.var_mean), axes_of(FLOATS, correction=CORRECTION), ulps=64, absolute=64
    ),
    "normalize": Row(
        normalized, one_axis(FLOATS, ord=st.sampled_from((1.0, 2.0, 3.0))), ulps=64
    ),
}  # fmt: skip

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("statistics")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)
