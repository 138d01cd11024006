"""The law on random programs of raw operations: any rewrites, shards and executor, same bits."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import NoWatch, find_executor
from tests.amounts import drawn
from tests.end_to_end.operations import random_program

_REWRITES = ("loom-simplify", "loom-fuse", "loom-materialize", "loom-group", "loom-ungroup")


def pipeline(random: Random) -> str:
    """Some rewrites in some order, then shards, perhaps spelled out."""
    chosen = random.sample(_REWRITES, random.randint(0, len(_REWRITES)))
    if random.random() < 0.7:
        chosen.append(f"loom-shard{{shards={random.randint(2, 6)}}}")
        if random.random() < 0.5:
            chosen.append("loom-expand-shards")
            if random.random() < 0.5:
                chosen.append("loom-simplify")
    return ",".join(chosen)


def check(seed: int, on: str) -> None:
    program = random_program(seed)
    inputs = program.inputs()
    module = parse_text(program.text)
    verify_module(module)
    expected = find_executor("reference").run(module, inputs, NoWatch()).outputs
    passes = pipeline(program.random)
    run_pipeline(module, passes)
    verify_module(module)
    outputs = find_executor(on).run(module, inputs, NoWatch()).outputs
    for output, want in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(output, want, err_msg=f"seed {seed}, {passes!r}, on {on}")


@settings(max_examples=drawn(150), deadline=None)
@example(12269)  # a group with an empty fold among its members
@given(st.integers(0, 10**6))
def test_arrays(seed: int) -> None:
    check(seed, "numpy")
    check(seed, "reference")


@settings(max_examples=drawn(25), deadline=None)
@given(st.integers(0, 10**6))
def test_kernels(seed: int) -> None:
    check(seed, "triton")


@pytest.mark.slow
@pytest.mark.parametrize("on", ["numpy", "triton"])
def test_many(on: str) -> None:
    for seed in range(400):
        check(seed, on)
