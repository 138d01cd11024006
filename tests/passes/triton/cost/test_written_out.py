"""What a step of a loop that is written out does by itself: little more than it computes."""

from __future__ import annotations

from collections import Counter

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Operation

import tapestry as t
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of
from tapestry.passes.triton.cost.written_out import free_in_steps
from tapestry.passes.triton.loom_to_triton import LoomToTriton


def _lowered(schedule: str, padding: int) -> ModuleOp:
    x, w = t.input("x", (2, 8, 64, 64), "float16"), t.input("w", (8, 1, 3, 3), "float16")
    made = t.conv2d(x, w, groups=8, padding=(padding, padding))
    module = t.compile(made, on="triton").lowered.clone()
    LoomToTriton(schedules=(f"conv2d: {schedule}",)).lower(Context(), module)
    return module


def _counted(module: ModuleOp) -> Counter[str]:
    """The operations of a step on integers and masks that are neither free nor only shape tiles."""
    loop = next(op for op in module.walk() if isinstance(op, scf.ForOp))
    free = free_in_steps(loop)
    shapes = triton.BroadcastOp | triton.ExpandDimsOp

    def counts(op: Operation) -> bool:
        if op in free or isinstance(op, shapes) or len(op.results) != 1:
            return False
        return isinstance(element_of(op.results[0]), IntegerType)

    return Counter(op.name for op in loop.body.block.ops if counts(op))


def test_addresses_take_no_time() -> None:
    assert not _counted(_lowered("P = 512, K = 1, unroll = 16", padding=0))


def test_bounds_take_one_comparison_for_each_dimension() -> None:
    found = _counted(_lowered("P = 512, K = 1, unroll = 16", padding=1))
    assert found == Counter({"triton.compare": 2})


def test_lanes_along_a_step_are_numbers_that_no_compiler_knows() -> None:
    assert _counted(_lowered("P = 512, K = 2, unroll = 16", padding=1))["arith.addi"] > 0
