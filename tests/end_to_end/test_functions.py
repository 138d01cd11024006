"""Elementwise functions as kernels, at special values and over wide ranges, beside float64."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import on_gpu

_FOLDER = str(Path(__file__).parents[2] / "benchmarks")
sys.path.insert(0, _FOLDER)
FUNCTIONS: Any = importlib.import_module("_gpu_functions")
sys.path.remove(_FOLDER)

SOME = ("exp", "expm1", "log1p", "tanh", "sqrt", "rsqrt", "reciprocal", "floor_divide", "div")


def _wrong(names: list[str] | None) -> list[Any]:
    rows = [row for group in FUNCTIONS.groups(names) for row in FUNCTIONS.rows_of(*group, "triton")]
    assert rows
    return [row for row in rows if not row.right]


@pytest.mark.skipif(
    not on_gpu.ASKED, reason=f"rounding of kernels is a GPU's: ask with {on_gpu.SWITCH}=gpu"
)
@pytest.mark.filterwarnings("ignore")
def test_every_function_on_a_gpu() -> None:
    assert not _wrong(None)


@pytest.mark.filterwarnings("ignore")
def test_some_functions() -> None:
    assert not _wrong(list(SOME))


@pytest.mark.parametrize(
    ("exact", "found", "ulps"),
    [
        (1.0, 1.0, 0.0),
        (1.0, 1.0 + 2**-23, 1.0),
        (1.0, 1.0 - 2**-24, 0.5),
        (1e-42, 0.0, 0.0),
        (2.0**-140, 2.0**-139, 512.0),
        (np.inf, np.inf, 0.0),
        (np.nan, np.nan, 0.0),
        (3.5e38, 3.4028235e38, 1.0),
        (1.0, np.nan, np.inf),
        (np.inf, 1.0, np.inf),
        (0.0, -0.0, np.inf),
    ],
)
def test_units_in_the_last_place(exact: float, found: float, ulps: float) -> None:
    with np.errstate(all="ignore"):
        got = FUNCTIONS.ulps(np.array([exact]), np.array([found], np.float32))
    np.testing.assert_allclose(got, ulps, rtol=1e-6)


def test_every_kind_of_function_is_among_them() -> None:
    known = FUNCTIONS.functions()
    assert known["exp"] == known["gelu"] == 1
    assert known["pow"] == known["atan2"] == 2
    assert len(known) > 90
    assert not {"sum", "softmax", "where", "bitwise_not", "matmul"} & set(known)
