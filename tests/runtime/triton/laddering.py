"""A program for a GPU that stands in (`tests/codegen/standing.py`), and what it computes.

made, prepared, gpu = run(program(), change)    # `change` injects what fails
np.testing.assert_allclose(made, WANT, rtol=1e-4, atol=1e-5)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapestry
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.tasks import give
from tapestry.runtime.prepared.kernels import PreparedKernels
from tapestry.runtime.triton.executor import TritonExecutor
from tests.codegen.standing import Gpu, Standing

RNG = np.random.default_rng(1)
X = RNG.normal(size=(48, 40)).astype(np.float32)
W = RNG.normal(size=(40, 48)).astype(np.float32)
WANT = np.maximum(X @ W, 0)


def program(schedule: str | None = None) -> Any:
    x, w = tapestry.input("x", X.shape), tapestry.input("w", W.shape)
    module = tapestry.compile(tapestry.relu(x @ w)).lowered
    if schedule is not None:
        (op,) = [op for op in module.walk() if op.name in ("loom.operation", "loom.fused")][:1]
        give(op, Schedule.parse(schedule))
    return module


def run(
    module: Any, change: Callable[[Standing], None] = lambda _: None, **options: Any
) -> tuple[np.ndarray, PreparedKernels, Gpu]:
    gpu = Gpu(change)
    prepared = PreparedKernels(module, TritonExecutor(device=gpu, **options))
    (made,) = prepared([X, W])
    return made, prepared, gpu
