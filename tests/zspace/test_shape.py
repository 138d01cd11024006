"""Shapes: broadcasting and strides, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.zspace import (
    InvalidArgumentError,
    shape,
)


@given(st.lists(st.lists(st.integers(0, 3), max_size=3).map(tuple), max_size=3))
def test_broadcast_agrees_with_numpy(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(shape.BroadcastMismatchError):
            shape.broadcast(*shapes)
    else:
        assert shape.broadcast(*shapes) == expected


@given(st.lists(st.integers(2, 4), max_size=4))
def test_strides_agree_with_numpy(sizes):
    assert shape.strides(sizes) == tuple(np.empty(sizes, np.int8).strides)


def test_dimensions_that_never_move_have_stride_0():
    assert shape.strides((2, 1, 3)) == (3, 0, 1)
    assert shape.strides((2, 0, 3)) == (3, 0, 1)


def test_sizes_are_not_negative():
    with pytest.raises(InvalidArgumentError, match=r"\[2, -1\] has a negative size"):
        shape.strides((2, -1))
    with pytest.raises(InvalidArgumentError):
        shape.broadcast((2,), (-1,))
