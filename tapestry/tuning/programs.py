"""Programs that are tuned as they are compiled: `tapestry.compile(program, on="triton", tune=30)`.

What earlier runs measured is used at once; the seconds go to what was not measured yet. Without a
GPU nothing is measured, and the channel `tuning` says so.
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec as find_module
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tapestry.devices import TYPICAL, find_spec, name_of
from tapestry.logs import channel
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.store import find_store
from tapestry.tuning.benches import Bench
from tapestry.tuning.cuda import CudaBench
from tapestry.tuning.records import KIND
from tapestry.tuning.tuner import Tuner, give_best

_NEWEST = f"sm_{max(TYPICAL)}"


def find_bench(lowering: LoomToTriton) -> tuple[Bench, str] | None:
    """The GPU to measure on and the device that it is like; None where there is no GPU."""
    if os.environ.get("TRITON_INTERPRET") == "1" or find_module("torch") is None:
        return None
    torch: Any = import_module("torch")
    if not torch.cuda.is_available():
        return None
    major, minor = torch.cuda.get_device_capability()
    known = name_of(torch.cuda.get_device_name(), 10 * major + minor)
    return CudaBench(torch, lowering), known or _NEWEST


def tune_program(module: ModuleOp, seconds: float) -> None:
    """Give the operations of a program in loom schedules by measurement."""
    lowering = LoomToTriton()
    found = find_bench(lowering)
    if found is None:
        channel("tuning").info("there is no GPU to measure on")
        return
    bench, like = found
    store = find_store(KIND)
    # What is measured are the kernels that there will be.
    replace(lowering, device=like).split_folds(Context(), module)
    tuner = Tuner(bench, find_spec(like), lowering, store)
    for tuned in tuner.tune(module, seconds) if seconds else ():
        if store is None and tuned.best is not None:
            tuned.job.give(tuned.best.schedule)
    if store is not None:
        give_best(module, bench.device, store, lowering)
