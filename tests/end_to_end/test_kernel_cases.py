"""The programs that the kernel benchmark measures, over few cells, against PyTorch in float64."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapestry
from tapestry.importers.expressions.functions import dtype_of

torch = pytest.importorskip("torch")

_FOLDER = str(Path(__file__).parents[2] / "benchmarks")
sys.path.insert(0, _FOLDER)
CASES: Any = importlib.import_module("_kernel_cases").CASES
sys.path.remove(_FOLDER)

TOLERANCE = {"f16": 3e-3, "bf16": 2e-2, "f32": 2e-5, "f64": 1e-13}


def _inputs(case: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [
        rng.integers(0, one.below, one.shape)
        if one.below
        else rng.normal(size=one.shape).astype(dtype_of(one.dtype))
        for one in case.inputs
    ]


def _error(got: np.ndarray, want: np.ndarray) -> float:
    """How far they are apart, relative to how large they are."""
    got, want = got.astype(np.float64), want.astype(np.float64)
    return float(np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-30))


@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_a_case_is_what_pytorch_computes(case: Any, on: str) -> None:
    small = case.small
    given = _inputs(small)
    names = [one.name for one in small.inputs]
    got = tapestry.run(small.expression(), dict(zip(names, given, strict=True)), on=on)
    wide = [torch.from_numpy(x.astype(np.float64) if x.dtype.kind != "i" else x) for x in given]
    want = small.peer(torch, *wide)
    outputs = (got, want) if isinstance(want, tuple) else ((got,), (want,))
    for one, other in zip(*outputs, strict=True):
        assert one.shape == tuple(other.shape)
        assert _error(one, other.numpy()) < TOLERANCE[small.inputs[0].dtype]


def test_small_cases_keep_what_is_odd() -> None:
    odd = next(case for case in CASES if "odd" in case.name).small
    assert all(size % 2 and 1 < size < 40 for size in odd.sizes)
