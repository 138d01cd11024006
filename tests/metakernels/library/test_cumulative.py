"""Running folds of the library are PyTorch's, along any axis and however they are split."""

# pyright: basic
# PyTorch has no types to speak of.

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    FLOATS,
    NUMBERS,
    Row,
    array,
    entries,
    examples_agree,
    law,
    torch,
)
from tests.metakernels.library.applying import run


@st.composite
def along(draw, dtypes, special=False):
    shape = tuple(draw(st.integers(0, 5)) for _ in range(draw(st.integers(1, 3))))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    return [draw(array(dtypes, shape, special=special))], {"axis": axis}


ROWS = {
    "cummax": Row(lambda x, axis: tuple(torch.cummax(x, axis)), along(NUMBERS, special=True)),
    "cummin": Row(lambda x, axis: tuple(torch.cummin(x, axis)), along(NUMBERS, special=True)),
    "cumprod": Row(lambda x, axis: torch.cumprod(x, axis, dtype=x.dtype), along(NUMBERS), ulps=8),
    "cumsum": Row(
        lambda x, axis: torch.cumsum(x, axis, dtype=x.dtype), along(NUMBERS), absolute=32
    ),
    "logcumsumexp": Row(torch.logcumsumexp, along(FLOATS, special=True), ulps=8, absolute=8),
}

test_cumulative = law(ROWS)


def test_every_entry_is_compared():
    assert entries("cumulative") == set(ROWS)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_worked_examples(name):
    examples_agree(ROWS, name)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64])
@pytest.mark.parametrize(("name", "function"), [("cummax", np.maximum), ("cummin", np.minimum)])
def test_unsigned_numbers_have_no_sign(name, function, dtype):
    most = np.iinfo(dtype).max
    x = np.array([[3, most - 55, 5], [most - 5, 0, most]], dtype)
    values, places = run(name, [x], {"axis": 1})
    np.testing.assert_array_equal(values, function.accumulate(x, axis=1))
    np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)
    assert values.dtype == dtype
