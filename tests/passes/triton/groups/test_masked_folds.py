"""Folds of some points of a row that other folds of the same points read, in one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapestry
from tapestry.frontend import run_pipeline
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.executor import TritonExecutor

MASKS = {
    "of each row": lambda n, m: (
        tapestry.arange(m).reshape((1, m)) <= tapestry.arange(n).reshape((n, 1))
    ),
    "the same of all": lambda _, m: tapestry.arange(m).reshape((1, m)) <= 2,
}


def _sum(x: Any, mask: Any) -> Any:
    return tapestry.sum(tapestry.where(mask, x, tapestry.zeros_like(x)), (1,), keepdim=True)


def _max(x: Any, mask: Any) -> Any:
    low = tapestry.full_like(x, float("-inf"))
    return tapestry.max(tapestry.where(mask, x, low), (1,), keepdim=True)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("fold", [_sum, _max])
@pytest.mark.parametrize("shape", [(1, 5), (33, 33)])
def test_each_folds_its_own_points_alone(fold: Any, mask: str, shape: tuple[int, int]) -> None:
    x = tapestry.input("x", shape)
    seen = MASKS[mask](*shape)
    made = _sum(tapestry.tanh(x * fold(x, seen)), seen)
    inputs = {"x": np.random.default_rng(0).normal(size=shape).astype(np.float32)}
    (want,) = tapestry.compile(made, on="reference").run(inputs).outputs
    program = tapestry.compile(made).lowered
    result = TritonExecutor(fallback=False).run(program, inputs, NoWatch())
    np.testing.assert_allclose(result.outputs[0], want, rtol=1e-5, atol=1e-5)
    assert len(result.records) == 1


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("fold", [tapestry.max, tapestry.min])
def test_what_is_folded_beside_statistics_is_merged_in_its_own_type(fold: Any, dtype: str) -> None:
    """Triton wants of what merges two states that it gives a state of the same types."""
    x = tapestry.input("x", (33, 64), dtype)
    program = tapestry.compile([tapestry.var(x, (1,)), fold(x, (1,))]).lowered.clone()
    run_pipeline(program, "loom-to-triton")
    program.verify()
