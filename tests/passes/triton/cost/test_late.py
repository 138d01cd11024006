"""What programs wait for when their steps are done."""

from __future__ import annotations

import pytest

import tapestry as t
from tapestry.devices import find_spec
from tapestry.dialects import triton
from tapestry.frontend import run_pipeline
from tapestry.passes.triton.cost.calls import calls_of
from tapestry.passes.triton.cost.counting import work_of
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.cost.work import Work

SPEC = find_spec("h100")


def _lowered(schedule: str):
    shapes = {"x": (1024, 512), "w": (512, 2048), "r": (1024, 2048)}
    x, w, r = (t.input(name, shape, "bf16") for name, shape in shapes.items())
    module = t.compile(x @ w + r, on="triton").lowered.clone()
    tile = "M = 128, N = 128, K = 64, warps = 8, stages = 3"
    run_pipeline(module, f'loom-to-triton{{schedules="matmul_add: {tile}{schedule}"}}')
    return module


def _work(schedule: str) -> Work:
    module = _lowered(schedule)
    (kernel,) = (op for op in module.walk() if isinstance(op, triton.KernelOp))
    (launch,) = (op for op in module.walk() if isinstance(op, triton.LaunchOp))
    ((call, _),) = calls_of(launch)
    return work_of(kernel, call)


@pytest.mark.parametrize("loads", ["pointer", "descriptor"])
def test_a_residual_is_waited_for_unless_it_is_loaded_early(loads: str) -> None:
    late, early = (_work(f", loads = {loads}, extras = {extras}") for extras in ("late", "early"))
    assert late.late == 128 * 128 * 2
    assert early.late == 0
    # It takes registers meanwhile.
    assert early.live >= late.live
    waits = [
        predictions(_lowered(f", loads = {loads}, extras = {extras}"), SPEC)[0].estimate
        for extras in ("late", "early")
    ]
    assert waits[1].parts.get("waiting", 0.0) < waits[0].parts["waiting"]


def test_programs_that_share_blocks_load_beside_the_next_one() -> None:
    assert _work(", programs = 132, loads = descriptor").late == 0
