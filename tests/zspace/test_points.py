"""Points: the partial order, and lists of dimensions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.zspace import (
    DimMismatchError,
    DuplicateError,
    IndexOutOfRangeError,
    InvalidArgumentError,
    InvalidPermutationError,
    Range,
    compare,
    format_point,
    less,
    less_equal,
    permute,
    resolve_dim,
    resolve_dims,
    resolve_permutation,
)
from tapestry.zspace.points import as_point

coordinates = st.integers(-3, 3)
pairs = st.integers(0, 3).flatmap(
    lambda rank: st.tuples(*(st.lists(coordinates, min_size=rank, max_size=rank),) * 2)
)
MIRROR = {"lt": "gt", "gt": "lt", "eq": "eq", "incomparable": "incomparable"}


@given(pairs)
def test_order_is_that_of_every_coordinate(pair):
    a, b = pair
    assert less_equal(a, b) == all(x <= y for x, y in zip(a, b, strict=True))
    assert less(a, b) == (less_equal(a, b) and a != b)
    assert compare(b, a) == MIRROR[compare(a, b)]
    assert (compare(a, b) == "incomparable") == (not less_equal(a, b) and not less_equal(b, a))


def test_points_of_different_rank_do_not_compare():
    with pytest.raises(DimMismatchError, match=r"\[1\] has 1 dimensions and \[1, 2\] has 2"):
        compare((1,), (1, 2))


@given(st.permutations(range(4)), st.lists(coordinates, min_size=4, max_size=4))
def test_permuting_back_gives_the_point(permutation, point):
    back = [permutation.index(dim) for dim in range(4)]
    assert permute(permute(point, permutation), back) == tuple(point)
    assert all(permute(point, permutation)[i] == point[dim] for i, dim in enumerate(permutation))


def test_negative_dimensions_count_from_the_end():
    assert resolve_dim(-1, 3) == 2
    assert resolve_dims((-1, 0), 2) == (1, 0)
    assert resolve_permutation((-1, -2, -3), 3) == (2, 1, 0)


@pytest.mark.parametrize("dim", [3, -4])
def test_a_dimension_that_is_not_there(dim):
    with pytest.raises(IndexOutOfRangeError, match=r"must be in \[-3, 2\]"):
        resolve_dim(dim, 3)


def test_rank_0_has_no_dimension():
    with pytest.raises(IndexOutOfRangeError, match="there are 0$"):
        resolve_dim(0, 0)


def test_wrong_lists_of_dimensions():
    with pytest.raises(DuplicateError):
        resolve_dims((1, -1), 2)
    with pytest.raises(InvalidPermutationError):
        resolve_permutation((1, 1, 2), 3)
    with pytest.raises(DimMismatchError):
        resolve_permutation((0, 1), 3)
    with pytest.raises(IndexOutOfRangeError):
        resolve_permutation((3, 4, 5), 3)


def test_numpy_integers_become_exact_ones():
    huge = Range((np.int64(0),), (np.int64(2**62),)).translate((np.int64(2**62),))
    assert huge.end == (2**63,)
    assert {type(x) for x in (*huge.start, *huge.end)} == {int}


def test_a_point_is_made_of_integers():
    with pytest.raises(InvalidArgumentError, match="integers"):
        as_point((1.5,))


def test_text_of_a_point():
    assert format_point((0, -1)) == "[0, -1]"
    assert format_point(()) == "[]"
