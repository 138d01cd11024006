"""Rows that are walked again: what the L2 is asked to keep, and the last walk taken backward."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import VerifyException

import tapestry as t
from tapestry.codegen.aot import compile_kernels
from tapestry.codegen.module_files import write_module
from tapestry.codegen.module_printer import print_module
from tapestry.dialects import loom, triton
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.frontend import parse_module, parse_text, run_pipeline
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.candidates import candidates
from tapestry.passes.triton.schedules.schedule import is_legal
from tapestry.passes.triton.schedules.task import SCHEDULE, Task
from tapestry.passes.triton.tasks import tasks
from tapestry.runtime.executor import NoWatch, find_executor
from tests.end_to_end.rows import ROWS, drawn
from tests.passes.triton.cost.test_long_rows import layer_norm, rms_norm, scheduled, softmax

WALKED = ("softmax", "log_softmax", "layer_norm", "rms_norm", "residual_norm")


def lowered(program: Expression, schedule: str) -> ModuleOp:
    module = t.compile(program, on="triton").lowered
    name = tasks(module)[-1].name
    LoomToTriton(schedules=(f"{name}: {schedule}",), device="none").apply(Context(), module)
    return module


def source(again: str) -> str:
    module = lowered(layer_norm(64, 8192), f"M = 1, K = 1024, again = {again}")
    return print_module(module).source


def test_the_first_walk_keeps_what_the_last_one_lets_go() -> None:
    module = lowered(layer_norm(64, 8192), "M = 1, K = 1024, again = kept")
    moves = [op for op in module.walk() if isinstance(op, triton.LoadOp | triton.StoreOp)]
    said = [(op.pointer.name_hint, None if op.evict is None else op.evict.data) for op in moves]
    # Weights and biases are read by all programs, and stay as they are.
    reads = [("x_ptr", "last"), ("x_ptr", "first"), ("w_ptr", None), ("b_ptr", None)]
    assert said == [*reads, ("layer_norm_ptr", "first")]
    text = source("kept")
    assert text.count('eviction_policy="evict_last"') == 1
    assert text.count('eviction_policy="evict_first"') == 2
    assert "_back" not in text
    assert "evict" not in source("plain")


def test_only_the_walk_that_carries_nothing_goes_backward() -> None:
    text = source("backward")
    assert len(re.findall(r"for k_start\w* in", text)) == 2
    assert text.count("_back in range(0, 8192, BLOCK_K):") == 1
    first, last = text.split("_back in", 1)
    assert "tl.sum(" in first.rsplit("for ", 2)[1]
    assert "tl.sum(" not in last


@pytest.mark.parametrize("again", ["kept", "backward"])
@pytest.mark.parametrize("name", [name for name in WALKED if name in ROWS])
def test_rows_are_right_in_any_order(name: str, again: str) -> None:
    """130 columns in steps of 16: the step that is not full comes first."""
    module = parse_module(ROWS[name](5, 130, "f32"))
    run_pipeline(module, "default")
    inputs = drawn(module, 130)
    exact = parse_module(ROWS[name](5, 130, "f64"))
    run_pipeline(exact, "weft-apply")
    wide = {k: a.astype("f8") if a.dtype.kind == "f" else a for k, a in inputs.items()}
    wanted = find_executor("reference").run(exact, wide, NoWatch()).outputs
    (group,) = (op for op in module.walk() if isinstance(op, loom.FusedOp))
    group.attributes[SCHEDULE] = ScheduleAttr(Schedule({"M": 2, "K": 16}, again=again))
    found = find_executor("triton").run(module, inputs, NoWatch()).outputs
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)


def test_what_is_not_read_again_is_no_choice() -> None:
    lengths = {"M": 1024, "K": 1 << 16}
    task = Task("rows", "group", lengths, grid=("M",), walks=2)
    long = Schedule({"M": 1, "K": 4096}, again="kept")
    assert is_legal(task, long)
    assert not is_legal(Task("rows", "group", lengths, grid=("M",), walks=1), long)
    assert not is_legal(task, Schedule({"M": 1, "K": 1 << 16}, again="kept"))
    assert not is_legal(task, Schedule({"M": 1, "K": 4096}, again="backward", segments=2))
    assert {one.again for one in candidates(task)} == {"plain", "kept", "backward"}


@pytest.mark.parametrize("program", [softmax(512, 262144), rms_norm(1024, 65536)])
def test_more_is_there_where_what_passes_leaves_first(program: Expression) -> None:
    """An estimate: on no device has this been measured."""
    tile = "M = 1, K = 32768, warps = 32, again = "
    plain, kept, backward = (
        scheduled(program, tile + again) for again in ("plain", "kept", "backward")
    )
    assert backward.bytes < kept.bytes < 0.95 * plain.bytes
    assert backward.seconds < kept.seconds < 0.97 * plain.seconds


def test_going_back_helps_most_where_little_is_left() -> None:
    tile = "M = 1, K = 4096, warps = 4, again = "
    kept, backward = (scheduled(softmax(512, 262144), tile + a) for a in ("kept", "backward"))
    near, nearer = (
        scheduled(softmax(512, 262144), f"M = 1, K = 32768, warps = 32, again = {a}")
        for a in ("kept", "backward")
    )
    assert kept.bytes - backward.bytes > near.bytes - nearer.bytes > 0


def test_it_compiles_without_spills() -> None:
    schedule = "M = 1, K = 32768, warps = 32, again = backward"
    printed = print_module(lowered(layer_norm(64, 65536), schedule))
    (kernel,) = compile_kernels(write_module(printed.source), printed.kernels, targets=[90])
    assert kernel.spills == 0
    assert kernel.registers <= 64


def test_policies_are_part_of_the_text() -> None:
    module = lowered(softmax(64, 8192), "M = 1, K = 1024, again = kept")
    again = parse_text(str(module))
    kept = [op.evict.data for op in again.walk() if isinstance(op, triton.LoadOp) and op.evict]
    assert kept == ["last", "first"]
    (load, *_) = (op for op in again.walk() if isinstance(op, triton.LoadOp))
    load.properties["evict"] = StringAttr("never")
    with pytest.raises(VerifyException, match='"never" is not one of first, last'):
        load.verify()
