import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from tapestry.tools._arrays import ArrayFileError
from tapestry.tools._compare import Tolerance, compare, compare_all

ANY = Tolerance()


def agreement(actual, expected, tolerance=ANY):
    return compare("out0", np.asarray(actual), np.asarray(expected), tolerance)


@given(arrays(np.float32, array_shapes(min_dims=0, min_side=0)), st.floats(0, 1), st.floats(0, 1))
def test_agrees_with_itself(array, rtol, atol):
    assert agreement(array, array, Tolerance(rtol, atol)).agrees


@given(
    arrays(np.float64, 5, elements=st.floats(-1e3, 1e3)),
    arrays(np.float64, 5, elements=st.floats(-1e3, 1e3)),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_is_allclose(actual, expected, rtol, atol):
    close = bool(np.allclose(actual, expected, rtol=rtol, atol=atol))
    assert agreement(actual, expected, Tolerance(rtol, atol)).agrees == close


def test_errors_are_the_largest():
    found = agreement([1.0, 2.0, 4.5, 0.25], [1.0, 2.5, 4.0, 0.0])
    assert (found.beyond, found.max_absolute, found.max_relative) == (3, 0.5, 0.2)


def test_integers_must_be_equal_whatever_the_tolerance():
    found = agreement([1, 2], [1, 3], Tolerance(10.0, 10.0))
    assert (found.agrees, found.beyond, found.max_absolute) == (False, 1, 1.0)


def test_the_error_of_integers_does_not_wrap():
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    assert agreement([low], [high]).max_absolute == pytest.approx(2.0**64)


@pytest.mark.parametrize(
    ("actual", "expected", "agrees"),
    [
        (np.nan, np.nan, True),
        (np.nan, 1.0, False),
        (1.0, np.nan, False),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (1e30, np.inf, False),
    ],
)
def test_what_is_not_finite(actual, expected, agrees):
    found = agreement([actual, 1.0], [expected, 1.0], Tolerance(0.5, 0.5))
    assert found.agrees == agrees
    assert found.max_absolute == (0.0 if agrees else np.inf)


def test_bf16_is_compared_with_the_float32_it_is_written_as():
    actual = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    assert agreement(actual, np.float32([1.01, 2.0])).agrees
    assert not agreement(actual, np.float32([1.1, 2.0])).agrees


@pytest.mark.parametrize("expected", [np.zeros((2, 1)), np.zeros(3), np.zeros(2, np.int64)])
def test_other_shapes_and_kinds_do_not_agree(expected):
    found = agreement(np.zeros(2), expected)
    assert not found.agrees
    assert found.mismatch is not None


def test_names_must_be_those_of_the_outputs():
    with pytest.raises(ArrayFileError, match="e.npz lacks out1 and also holds y"):
        compare_all([np.zeros(1)] * 2, {"out0": np.zeros(1), "y": np.zeros(1)}, "e.npz", ANY)
