"""Whatever a program is, its plan computes it: no buffer lies on what is still needed.

Programs are random, split at random, and run on a device whose fresh memory is poison.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tapestry
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.prepared.kernels import PreparedKernels
from tapestry.runtime.triton import compiled
from tapestry.runtime.triton.executor import TritonExecutor
from tests.codegen.standing import Gpu, compiled_at_once

STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "relu", "softmax", "columns"]), st.integers(), st.integers()),
    min_size=1,
    max_size=5,
)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "compile_kernels", compiled_at_once)


def program(steps: list[tuple[str, int, int]], returned: list[int], shards: int) -> Any:
    values = [tapestry.input("x", (6, 8)), tapestry.input("y", (6, 8))]
    for name, one, two in steps:
        a, b = values[one % len(values)], values[two % len(values)]
        made = {
            "add": lambda a=a, b=b: a + b,
            "relu": lambda a=a: tapestry.relu(a),
            "softmax": lambda a=a: tapestry.softmax(a),
            "columns": lambda a=a, b=b: a * 0.5 + b.max(axis=0),
        }[name]()
        values.append(made)
    results = tuple(values[2 + n % len(steps)] for n in returned)
    whole = tapestry.compile(results, pipeline="weft-apply")
    return (whole if shards == 1 else whole.sharded(shards=shards)).lowered


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=STEPS,
    returned=st.lists(st.integers(0, 6), min_size=1, max_size=3),
    shards=st.integers(1, 3),
    graphs=st.booleans(),
)
def test_a_plan_computes_its_program(steps, returned, shards, graphs) -> None:
    module = program(steps, returned, shards)
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=(6, 8)).astype(np.float32) for name in "xy"}
    want = find_executor("reference").run(module, inputs, NoWatch()).outputs
    names = [argument.name for argument in tapestry.runtime.program.arguments(module)]
    run = PreparedKernels(module, TritonExecutor(device=Gpu(), graphs=graphs))
    for _ in range(3 if graphs else 1):
        for got, expected in zip(run([inputs[name] for name in names]), want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
