"""The kernels that an H100 has for the programs of the kernel benchmark, over few cells.

What is chosen by sizes is chosen at the real ones: loops, descriptors, persistent programs, orders
and folds in parts run in the interpreter as they do there, and are held against float64.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tapestry.dialects.triton import Schedule, ScheduleError
from tapestry.importers.expressions.functions import dtype_of
from tapestry.passes.triton.schedules.task import Task
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.devices import Cpu
from tests.end_to_end.shrinking import STEP, Chosen, Shrunk, chosen, names, same, small

torch = pytest.importorskip("torch")

_FOLDER = str(Path(__file__).parents[2] / "benchmarks")
sys.path.insert(0, _FOLDER)
CASE: Any = importlib.import_module("_kernel_case")
CASES: Any = importlib.import_module("_kernel_cases")
COMPILING: Any = importlib.import_module("_kernel_compiling")
sys.path.remove(_FOLDER)

DEVICE = "h100"
TOLERANCE = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 2e-6, "f64": 1e-14}

LONG = 80
"""Four steps of a product, and more of what multiplies nothing."""


def _sizes(case: Any) -> tuple[int, ...]:
    """Sizes of a case whose walks are long and which has few heads, images and channels."""
    if case.family == "attention":
        batch, heads, queries, keys, width, groups = case.sizes
        long = (CASE.shortened(queries, LONG), CASE.shortened(keys, LONG))
        return (min(batch, 2), heads // 4, *long, CASE.shortened(width), groups // 4)
    if case.family == "attention backward":
        # Weights are computed anew where rows are so much longer than they are wide.
        _, _, rows, width = case.sizes
        return (2, 2, CASE.shortened(rows, LONG), CASE.shortened(width, 16))
    if case.family == "convolution":
        _, channels, side, out = case.sizes
        return (2, CASE.shortened(channels), CASE.shortened(side, 14), CASE.shortened(out))
    if case.family == "windows":
        _, channels, side = case.sizes
        return (2, CASE.shortened(channels, 4), CASE.shortened(side, 14))
    if "swiglu" in case.name:
        # A program holds fewer columns whole.
        rows, width, out = case.sizes
        return (CASE.shortened(rows), CASE.shortened(width, LONG), CASE.shortened(out, 500))
    if len(case.sizes) > 3:
        return tuple(CASE.shortened(size, 16) for size in case.sizes[:1]) + tuple(
            CASE.shortened(size, LONG) for size in case.sizes[1:]
        )
    return tuple(CASE.shortened(size, LONG) for size in case.sizes)


def _rows(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64).reshape(-1, array.shape[-1] if array.ndim else 1)


def _error(got: np.ndarray, want: np.ndarray) -> float:
    """The greatest error of a row in relation to it, or to a tenth of what rows are like."""
    wanted = _rows(want)
    sizes: np.ndarray = np.linalg.norm(wanted, axis=1)
    like = float(np.sqrt(np.mean(sizes**2)))
    off: np.ndarray = np.linalg.norm(_rows(got) - wanted, axis=1)
    return float(np.max(off / np.maximum(sizes, max(like / 10, 1e-30))))


def _marked() -> list[Any]:
    """The cases: the first of a family and what is unlike it; others of the family are slow."""
    quick = (
        *("matmul f16 4096", "matmul bf16 8192", "matmul f32 512", "odd", "thin", "batched"),
        *(
            "linear+bias+gelu+residual 8192",
            "swiglu 2048",
            "512x262144",
            "layer norm",
            "rms norm 1024",
        ),
        *("cross entropy 4096", "attention causal d=64", "grouped", "decode", "axis 0", "axis 2"),
        *("transpose", "chain", "32x64x56", "512x7x7", "embedding", "optimizer", "backward"),
    )
    return [
        pytest.param(
            case,
            marks=() if any(word in case.name for word in quick) else pytest.mark.slow,
            id=case.name.replace(" ", "_"),
        )
        for case in CASES.CASES
    ]


@pytest.mark.sweep(4)
@pytest.mark.parametrize("case", _marked())
def test_what_is_chosen_at_the_real_size_is_right(case: Any) -> None:
    made = chosen(COMPILING.loom_of(case), DEVICE)
    few = case.over(_sizes(case))
    module = COMPILING.loom_of(few)
    assert names(same(module, DEVICE, made)) == sorted(made.schedules)
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {
        one.name: rng.integers(0, one.below, one.shape)
        if one.below
        else np.asarray(rng.normal(size=one.shape), dtype_of(one.dtype))
        for one in few.inputs
    }
    got = Shrunk(Cpu(), fallback=False, made=made).run(module, given, NoWatch()).outputs
    wide = [
        torch.from_numpy(given[one.name].astype(np.int64 if one.below else np.float64))
        for one in few.inputs
    ]
    want = few.peer(torch, *wide)
    every: list[Any] = [*want] if isinstance(want, tuple) else [want]
    for one, other in zip(got, every, strict=True):
        assert one.shape == tuple(other.shape)
        assert _error(one, other.numpy()) <= TOLERANCE[few.inputs[0].dtype]


def test_a_small_schedule_keeps_what_a_real_one_says() -> None:
    real = Task("product", "contraction", {"M": 4096, "N": 4096, "K": 4096}, grid=("M", "N"))
    task = Task("product", "contraction", {"M": 64, "N": 64, "K": 64}, grid=("M", "N"))
    text = "M = 256, N = 128, K = 64, warps = 8, stages = 3, swizzle = 8, programs = 132"
    shown = "M = 16, N = 16, K = 16, warps = 8, stages = 3, swizzle = 2, programs = 3"
    more = ", loads = descriptor, segments = 2"
    assert small(Schedule.parse(text + more), real, task) == Schedule.parse(shown + more)


def test_a_row_that_one_block_holds_stays_whole_and_another_is_a_loop() -> None:
    schedule = Schedule({"M": 1, "K": 4096}, again="backward")
    task = Task("softmax", "group", {"M": 64, "K": 64}, walks=2)
    whole = Task("softmax", "group", {"M": 8192, "K": 4096}, walks=2)
    longer = Task("softmax", "group", {"M": 8192, "K": 8192}, walks=2)
    assert small(schedule, whole, task).tile == {"M": 1, "K": 64}
    assert small(schedule, longer, task).tile == {"M": 1, "K": STEP}
    assert small(schedule, longer, task).again == "backward"


def test_wrong_schedules_are_refused() -> None:
    (case,) = (one for one in CASES.CASES if one.name == "softmax 8192x4096")
    made = chosen(COMPILING.loom_of(case), DEVICE)
    assert isinstance(made, Chosen)
    ((name, schedule),) = made.schedules.items()
    made.schedules[name] = Schedule(schedule.tile, segments=2)
    with pytest.raises(ScheduleError, match="no boundary along K"):
        same(COMPILING.loom_of(case.small), DEVICE, made)
