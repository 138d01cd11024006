"""Sums over windows on NumPy are what their definition says, however they are cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.runtime.prepared.library import Slide
from tapestry.runtime.prepared.products.sliding import slid
from tests.runtime.slides import Example, examples


@settings(max_examples=200, deadline=None)
@given(
    example=examples(["f4", "f8", "i4", "i8", "c8"]),
    cache=st.sampled_from([1, 500, 1 << 20]),
    threads=st.integers(1, 2),
)
def test_any_sums(example: Example, cache: int, threads: int) -> None:
    got = slid(example.signal, example.kernel, example.slides, cache=cache, threads=threads)
    want = example.sums()
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_what_lies_between_rows_does_not_count() -> None:
    """An infinite cell of the signal reaches the sums that meet it alone."""
    signal = np.ones((1, 1, 1, 4, 4), "f4")
    signal[..., 1, 3] = np.inf
    few, many = np.ones((1, 1, 1, 2, 2), "f4"), np.ones((1, 1, 1, 3, 3), "f4")
    for kernel, cells in ((few, 3), (many, 2)):
        slides = [Slide(cells, 1, 1, 0)] * 2
        got = slid(signal, kernel, slides)
        want = Example(signal, kernel, slides).sums()
        assert np.isinf(want).any()
        assert np.isfinite(want).any()
        np.testing.assert_array_equal(got, want)


def test_a_zero_outside_times_infinity_is_not_a_number() -> None:
    signal, kernel = np.ones((1, 1, 1, 3), "f4"), np.full((1, 1, 1, 2), np.inf, "f4")
    with np.errstate(all="ignore"):
        got = slid(signal, kernel, [Slide(3, 1, 1, -1)])
    np.testing.assert_array_equal(got, np.array([[[[np.nan, np.inf, np.inf]]]], "f4"))
