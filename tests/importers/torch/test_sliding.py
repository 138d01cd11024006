"""Sums over windows by PyTorch's convolutions are what their definition says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

torch = pytest.importorskip("torch")

from tapestry.importers.torch.convolutions import slid  # noqa: E402
from tapestry.runtime.prepared.library import Slide  # noqa: E402
from tests.runtime.slides import Example, examples  # noqa: E402


@settings(max_examples=200, deadline=None)
@given(example=examples(["f4", "f8", "i4"]))
def test_any_sums(example: Example) -> None:
    got = slid(example.signal, example.kernel, example.slides)
    want = example.sums()
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_no_copy_of_the_signal_where_there_is_as_much_padding_on_both_sides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def copied(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(np, "pad", copied)
    images, weights = np.ones((2, 3, 8, 8), "f4"), np.ones((4, 3, 3, 3), "f4")
    for step, cells in ((1, 8), (2, 4)):
        slid(images[None], weights[None], [Slide(cells, step, 1, -1)] * 2)
        gradient = np.ones((1, 4, 2, cells, cells), "f4")
        by_channel = images.swapaxes(0, 1)[None]
        slid(by_channel, gradient, [Slide(3, 1, step, -1)] * 2)


def test_a_zero_outside_times_infinity_is_not_a_number() -> None:
    signal, kernel = np.ones((1, 1, 1, 3), "f4"), np.full((1, 1, 1, 3), np.inf, "f4")
    got = slid(signal, kernel, [Slide(3, 1, 1, -1)])
    np.testing.assert_array_equal(got, np.array([[[[np.nan, np.inf, np.nan]]]], "f4"))


def test_autocasting_leaves_them_alone() -> None:
    signal, kernel = np.ones((1, 1, 1, 9), "f4"), np.full((1, 1, 1, 3), 1 + 2**-20, "f4")
    with torch.autocast("cpu"):
        got = slid(signal, kernel, [Slide(7, 1, 1, 0)])
    assert got.dtype == np.float32
    assert float(got.ravel()[0]) == float(np.float32(3 + 3 * 2**-20))
