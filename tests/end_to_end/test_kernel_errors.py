"""What counts as right in the kernel benchmark: no row may be wrong."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

_FOLDER = str(Path(__file__).parents[2] / "benchmarks")
sys.path.insert(0, _FOLDER)
ERRORS: Any = importlib.import_module("_kernel_errors")
sys.path.remove(_FOLDER)

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def _right(got: Any, want: Any, dtype: str) -> bool:
    return ERRORS.error_of(torch, got, want, dtype) <= ERRORS.TOLERANCES[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_rounded_once_is_right_and_one_wrong_row_of_8192_is_not(dtype: str) -> None:
    torch.manual_seed(0)
    want = torch.randn(8192, 256, dtype=torch.float64)
    got = want.to(DTYPES[dtype])
    assert _right(got, want, dtype)
    got[4711] *= 1.05
    norms = (got.double() - want).norm() / want.norm()
    assert norms < 2e-2  # the norm of all does not tell
    assert not _right(got, want, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_nothing_may_not_have_something(dtype: str) -> None:
    torch.manual_seed(0)
    want = torch.randn(64, 256, dtype=torch.float64)
    want[7] = 0
    got = want.to(DTYPES[dtype])
    got[7] = 1e-9
    assert _right(got, want, dtype)
    got[7] = 0.1
    assert not _right(got, want, dtype)


def test_cells_below_full_precision_are_held_against_what_there_is() -> None:
    torch.manual_seed(0)
    want = torch.rand(8, 4096, dtype=torch.float64) * 4e-6
    assert _right(want.half(), want, "f16")
    assert not _right(torch.zeros_like(want), want, "f16")


def test_long_vectors_are_looked_at_in_chunks() -> None:
    torch.manual_seed(0)
    want = torch.randn(1 << 20, dtype=torch.float64)
    got = want.float()
    assert _right(got, want, "f32")
    got[-1] += 1e-2
    assert not _right(got, want, "f32")


def test_a_number_is_a_row_and_what_is_no_number_is_wrong() -> None:
    want = torch.tensor(3.0, dtype=torch.float64)
    assert _right(want.half(), want, "f16")
    assert not _right(want.half() * 1.01, want, "f16")
    assert not _right(torch.full((4, 4), float("nan")), torch.ones(4, 4), "f32")
