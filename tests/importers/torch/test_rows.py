"""Copies of arrays by PyTorch: row by row, however they lie, of any dtype."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("torch")

from tapestry.importers.torch.dtypes import rows_of

_DTYPES = [bool, np.uint8, np.int16, np.uint32, np.float32, np.float64, np.complex64, np.complex128]


@pytest.mark.parametrize(
    "dtype", [*_DTYPES, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
)
def test_copies_are_new_and_row_by_row(dtype: object) -> None:
    whole = np.random.default_rng(0).integers(0, 100, (4, 6, 5)).astype(dtype)
    frozen = whole.copy()
    frozen.flags.writeable = False
    for array in (
        whole, whole.T, whole[::-1], whole[:, ::-2].T, whole[::2, 1:], whole[0, 0, 0], whole[:0],
        whole.transpose(1, 2, 0)[::-1, ::-1, ::-1], np.broadcast_to(whole[:1], (3, 6, 5)), frozen,
    ):  # fmt: skip
        made = rows_of(np.asarray(array))
        assert made.flags.c_contiguous
        assert made.flags.writeable
        assert made.dtype == whole.dtype
        assert not np.shares_memory(made, array)
        np.testing.assert_array_equal(made, array)


def test_cells_that_lie_between_others() -> None:
    records = np.zeros(4, [("a", "f4"), ("b", "u1")])
    records["a"] = np.arange(4)
    np.testing.assert_array_equal(rows_of(records["a"]), np.arange(4))
