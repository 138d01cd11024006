"""Rank and inverse of small integer matrices."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.zspace.matrices import inverse, rank

entries = st.integers(-9, 9)


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.tuples(*(entries,) * n), min_size=1,
                                                    max_size=4)))  # fmt: skip
def test_rank_is_that_of_the_rows_and_of_the_columns(matrix):
    matrix = tuple(matrix)
    columns = tuple(zip(*matrix, strict=True))
    assert rank(matrix) == rank(columns) <= min(len(matrix), len(columns))
    assert rank((*matrix, tuple(map(sum, zip(*matrix, strict=True))))) == rank(matrix)


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [((), 0), (((0, 0),), 0), (((0, 2), (3, 0)), 2), (((1, 2), (2, 4), (0, 1)), 2)],
)
def test_rank_of(matrix, expected):
    assert rank(matrix) == expected


@given(st.integers(1, 3).flatmap(lambda n: st.tuples(*(st.tuples(*(entries,) * n),) * n)))
def test_inverse_times_matrix_is_one(matrix):
    n = len(matrix)
    back = inverse(matrix)
    if back is not None:
        assert [[sum(a * b for a, b in zip(row, column, strict=True))
                 for column in zip(*matrix, strict=True)] for row in back] == [
            [Fraction(r == c) for c in range(n)] for r in range(n)
        ]  # fmt: skip


@pytest.mark.parametrize("matrix", [((2,),), ((0, 0), (0, 1)), ((1, 2), (2, 4)), ((1, 1), (1, 3))])
def test_other_matrices_have_no_integer_inverse(matrix):
    assert inverse(matrix) is None
