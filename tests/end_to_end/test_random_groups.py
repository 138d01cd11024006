"""Random programs in groups, folds split side by side or not, give the cells of the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tests.amounts import drawn
from tests.end_to_end.programs import Program, programs

_PIPELINES = [
    "default",
    "default,loom-split-fold{parts=3 least=1}",
    "weft-apply,loom-simplify,loom-group",
    "weft-apply,loom-simplify,loom-fuse,loom-derive,loom-group{programs=1 resident=4096}",
]


def _run(name: str, module: ModuleOp, inputs: dict[str, Array]) -> tuple[Array, ...]:
    verify_module(module)
    return tuple(find_executor(name).run(module, inputs, NoWatch()).outputs)


@pytest.mark.parametrize("pipeline", _PIPELINES)
@given(program=programs(), shards=st.integers(1, 4))
@settings(
    max_examples=drawn(10),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_kernels_of_groups_agree(pipeline: str, program: Program, shards: int) -> None:
    plain = parse_text(program.text)
    run_pipeline(plain, "weft-apply")
    want = _run("reference", plain, program.inputs)
    module = parse_text(program.text)
    run_pipeline(module, pipeline)
    if shards > 1:
        run_pipeline(module, f"loom-shard{{shards={shards}}}")
    got = _run("triton", module, program.inputs)
    for value, one, other in zip(program.outputs, got, want, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if value.dtype.startswith("i"):
            np.testing.assert_array_equal(one, other)
        else:
            tolerance = (1e-4 if value.dtype == "f32" else 1e-12) * max(value.bound, 1.0)
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)
