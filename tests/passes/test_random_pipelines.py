"""The law on random graphs under random pipelines: as the reference of the program as written.

2,000 graphs in 40 parts (`--slow 1`), and some as kernels; a few in an ordinary run. Integers are
equal bit for bit, floats within TOLERANCE of the errors that `graphs` derives. Everything is
verified after each pass, and a partition that is illegal must be refused and change nothing
(`pipelines.cut`).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tests.amounts import drawn
from tests.passes import pipelines
from tests.passes.graphs import Graph, Value
from tests.passes.random_graphs import random_graph

TOLERANCE = 4.0
"""Times the first-order bound on the error, for what is of higher order."""

PARTS, EACH = 40, 50

ARRAYS = ("numpy", "reference")
"""Where rewritten programs run: on the first, and once in a while on all."""


def check(random: Random, most_steps: int = 7, executors: Sequence[str] = ARRAYS) -> None:
    """Draw a graph and a pipeline, and compare what they give."""
    graph = random_graph(random, most_steps)
    steps = pipelines.steps(random)
    done: list[str] = []
    try:
        _check(graph, steps, done, random, executors)
    except Exception as error:
        error.add_note(f"after {', '.join(done)} of {steps}:\n{graph.text}")
        raise


def _check(
    graph: Graph, steps: list[str], done: list[str], random: Random, executors: Sequence[str]
) -> None:
    module = parse_text(graph.text)
    verify_module(module)
    naive = module.clone()
    run_pipeline(naive, "weft-apply")
    want = find_executor("reference").run(naive, graph.inputs, NoWatch()).outputs
    for step in steps:
        done.append(pipelines.apply(module, step, random))
        if random.random() < 0.1:
            module = _reread(str(module))
    run_pipeline(module, "loom-inline")
    for executor in executors if random.random() < 0.1 else executors[:1]:
        got = find_executor(executor).run(module, graph.inputs, NoWatch()).outputs
        for value, a, b in zip(graph.outputs, got, want, strict=True):
            agree(value, a, b, executor)


def _reread(text: str) -> ModuleOp:
    """The module that a printed one is."""
    module = parse_text(text)
    verify_module(module)
    assert str(module) == text
    return module


def agree(value: Value, got: Array, want: Array, where: str) -> None:
    """Compare an output with the reference's."""
    what = f"%{value.name} on {where}"
    assert got.dtype == want.dtype, what
    assert got.shape == want.shape == value.shape, what
    if not value.is_float:
        np.testing.assert_array_equal(got, want, err_msg=what)
    else:
        wide = (array.astype(np.float64) for array in (got, want))
        np.testing.assert_allclose(*wide, rtol=0, atol=TOLERANCE * value.error, err_msg=what)


_SETTINGS = settings(
    max_examples=drawn(EACH),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@settings(_SETTINGS, max_examples=drawn(20))
@given(st.randoms(use_true_random=False))
def test_some(random: Random) -> None:
    check(random)


@settings(_SETTINGS, max_examples=3)
@given(st.randoms(use_true_random=False))
def test_some_kernels(random: Random) -> None:
    check(random, 3, ("triton",))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_kernels(part: int) -> None:
    law = given(st.randoms(use_true_random=False))(lambda random: check(random, 3, ("triton",)))
    seed(part)(_SETTINGS(law))()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_many(part: int) -> None:
    law = given(st.randoms(use_true_random=False))(lambda random: check(random))
    seed(part)(_SETTINGS(law))()
