"""Stable sorts of every type, of ties, NaN and zeros of both signs, as a sort of Python's."""

from __future__ import annotations

from math import isnan

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.runtime.arrays import ordering
from tapestry.runtime.arrays.ordering import first_in_order, in_order, stable_order, taken

_SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.5, float("nan"), -float("nan"), float("inf"), -float("inf"))

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "f2", "f4", "f8"]
DTYPES += [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


def _key(value: float) -> tuple[bool, float]:
    return isnan(value), 0 if isnan(value) else value


@pytest.mark.parametrize("dtype", [np.dtype(one) for one in DTYPES], ids=str)
@pytest.mark.parametrize("descending", [False, True])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_rows(dtype: np.dtype, descending: bool, data: st.DataObject) -> None:
    rows, length = data.draw(st.sampled_from([(0, 3), (1, 0), (1, 1), (3, 5), (2, 70)]))
    if dtype.kind in "iu":
        most = np.iinfo(dtype)
        values = st.sampled_from([most.min, most.max, 0, 1, int(most.min) // 2])
    else:
        values = st.booleans() if dtype.kind == "b" else st.sampled_from(_SPECIAL)
    size = rows * length
    drawn = data.draw(st.lists(values, min_size=size, max_size=size))
    cells = np.array(drawn).astype(dtype).reshape(rows, length)
    order = stable_order(cells, descending=descending)
    assert order.dtype == np.int64
    want = [
        sorted(range(length), key=lambda n: _key(float(row[n])), reverse=descending)
        for row in cells
    ]
    if length and rows:
        # Python keeps the order of equal items also in reverse.
        np.testing.assert_array_equal(order, want)
    found = taken(cells, order)
    assert found.dtype == dtype
    assert found.tobytes() == np.take_along_axis(cells, order, -1).tobytes()
    # Also which of two zeros comes first, and which NaN.
    assert in_order(cells, descending=descending).tobytes() == found.tobytes()


def test_large_rows_on_all_threads() -> None:
    cells = np.random.default_rng(0).integers(0, 1000, (3, 40, 4096)).astype("f4")
    for part in (cells, cells[:, ::2, ::-1]):
        want = np.argsort(part, axis=-1, kind="stable")
        np.testing.assert_array_equal(stable_order(part, descending=False), want)
        np.testing.assert_array_equal(in_order(part, descending=False), np.sort(part, axis=-1))


@pytest.mark.parametrize("descending", [False, True])
def test_zeros_of_two_signs_and_missing_numbers_in_many_rows(descending: bool) -> None:
    cells = np.round(np.random.default_rng(0).normal(size=(5000, 8))).astype("f4")
    cells[::7, 3] = np.nan
    want = taken(cells, stable_order(cells, descending=descending))
    assert in_order(cells, descending=descending).tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", [np.dtype(one) for one in DTYPES], ids=str)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shape", [(3, 400), (2, 1, 97), (0, 400), (400,), (2, 3)])
def test_the_first_of_rows(dtype: np.dtype, descending: bool, shape: tuple[int, ...]) -> None:
    # Ties, of few values and of all; NaN in some rows; rows of NaN alone.
    random = np.random.default_rng(0)
    for spread in (1, 5, 120):
        cells = random.integers(0, spread, shape).astype("f4")
        if dtype.kind not in "biu" and len(shape) > 1 and shape[0]:
            cells[0, ..., ::7], cells[1] = np.nan, np.nan if spread == 5 else cells[1]
        cells = cells.astype(dtype)
        want = stable_order(cells, descending=descending)
        for count in (0, 1, 3, 12, shape[-1]):
            found = first_in_order(cells, min(count, shape[-1]), descending=descending)
            np.testing.assert_array_equal(found, want[..., :count], strict=True)


@pytest.mark.parametrize("at_once", [1, 900, 1 << 18])
def test_the_first_of_rows_some_at_a_time(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(ordering, "_AT_ONCE", at_once)
    cells = np.random.default_rng(0).integers(0, 50, (7, 3, 300)).astype("f4")
    for descending in (False, True):
        want = stable_order(cells, descending=descending)[..., :4]
        found = first_in_order(cells, 4, descending=descending)
        np.testing.assert_array_equal(found, want, strict=True)
