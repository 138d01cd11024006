"""Factors of products as matrices: the cells of every order, copied in long runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from tapestry.runtime.arrays.contracting import merged_sides


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(5)), st.integers(0, 2), st.integers(0, 2))
def test_sides_are_merged_in_order(order: list[int], lead: int, rows: int) -> None:
    factor = np.arange(2 * 3 * 1 * 4 * 5).reshape(2, 3, 1, 4, 5).transpose(order)
    counts = [lead, rows, 5 - lead - rows]
    bounds = [0, lead, lead + rows, 5]
    shape = [int(np.prod(factor.shape[bounds[n] : bounds[n + 1]])) for n in range(3)]
    np.testing.assert_array_equal(merged_sides(factor, counts), factor.reshape(shape))


@pytest.mark.parametrize("turned", [False, True])
def test_nothing_is_copied_that_is_a_matrix(turned: bool) -> None:
    matrix = np.ones((3, 4, 5))
    factor = matrix.transpose(2, 0, 1) if turned else matrix
    counts = [1, 2] if turned else [2, 1]
    assert np.shares_memory(merged_sides(factor, counts), matrix)


def test_windows_are_copied_by_rows_of_the_image() -> None:
    windows = sliding_window_view(np.ones((8, 16)), (3, 3))
    made = merged_sides(windows, [2, 2])
    assert made.shape == (6 * 14, 9)
    assert made.T.flags.c_contiguous
