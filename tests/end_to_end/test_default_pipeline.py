"""The recommended pipeline keeps the law: random programs, split at random, on every executor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tapestry.frontend import parse_module, run_pipeline
from tapestry.pipelines import DEFAULT_PIPELINE
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tests.end_to_end.programs import Program, programs


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def _run(program: Program, pipeline: str, on: str) -> list[Array]:
    module = parse_module(program.text)
    run_pipeline(module, pipeline)
    return list(find_executor(on).run(module, program.inputs, NoWatch()).outputs)


def _check(program: Program, more: str, on: str) -> None:
    want = _run(program, "weft-apply", "reference")
    got = _run(program, f"{DEFAULT_PIPELINE}{more}", on)
    for value, one, other in zip(program.outputs, got, want, strict=True):
        assert one.dtype == other.dtype
        if value.dtype.startswith("i"):
            assert np.array_equal(one, other), f"%{value.name}"
        else:
            tolerance = (1e-4 if value.dtype == "f32" else 1e-12) * max(value.bound, 1.0)
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance, err_msg=f"%{value.name}")


MORE = ["", ",loom-shard{shards=2}", ",loom-shard{shards=3},loom-expand-shards", ",loom-ungroup"]


@_settings(40)
@given(programs(), st.sampled_from(MORE))
def test_arrays_agree(program: Program, more: str):
    _check(program, more, "numpy")


@_settings(8)
@given(programs(), st.sampled_from(MORE))
def test_kernels_agree(program: Program, more: str):
    _check(program, more, "triton")


@pytest.mark.slow
@_settings(100)
@given(programs(), st.sampled_from(MORE))
def test_kernels_of_many_programs_agree(program: Program, more: str):
    _check(program, more, "triton")
