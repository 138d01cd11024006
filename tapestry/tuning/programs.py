"""Programs that are tuned as they are compiled: `tapestry.compile(program, on="triton", tune=30)`.

What earlier runs measured is used at once; the seconds go to what was not measured yet. A program
is changed only where it was measured to be faster so. Without a GPU nothing is measured, and the
channel `tuning` says so.
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec as find_module
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tapestry.codegen.refusals import find_refusals
from tapestry.devices import TYPICAL, DeviceSpec, find_spec, name_of
from tapestry.logs import channel
from tapestry.passes.triton.loom_to_triton import NO_DEVICE, LoomToTriton
from tapestry.passes.triton.schedules.choosing import never
from tapestry.runtime.triton.compiled import GpuError, check_capability, gpu_errors
from tapestry.store import Store, find_store
from tapestry.tuning.benches import Bench
from tapestry.tuning.cuda import CudaBench
from tapestry.tuning.records import KIND
from tapestry.tuning.tuner import Tuner, Watch, give_best

_NEWEST = f"sm_{max(TYPICAL)}"


def find_bench(lowering: LoomToTriton) -> tuple[CudaBench, str] | None:
    """The GPU to measure on, and the device that it is like; None where there is no GPU.

    The bench lowers for the device, if it is a known one, as programs are that run there. Raises
    GpuError for one that is too old, or that cannot be used.
    """
    if os.environ.get("TRITON_INTERPRET") == "1" or find_module("torch") is None:
        return None
    torch: Any = import_module("torch")
    if not torch.cuda.is_available():
        return None
    with gpu_errors():
        major, minor = torch.cuda.get_device_capability()
        known = name_of(torch.cuda.get_device_name(), 10 * major + minor)
    check_capability(10 * major + minor)
    return CudaBench(torch, replace(lowering, device=known or NO_DEVICE)), known or _NEWEST


def tuner_on(
    bench: Bench, spec: DeviceSpec, store: Store | None, watch: Watch | None = None
) -> Tuner:
    """What tunes programs on a bench, with what compilers are known to refuse there."""
    device = bench.lowering.device
    refused = never if device == NO_DEVICE else find_refusals(device)
    return Tuner(bench, spec, store, watch, refused)


def tune_program(module: ModuleOp, seconds: float) -> None:
    """Have a program in loom use the schedules that make it faster, by measurement."""
    try:
        found = find_bench(LoomToTriton())
    except GpuError as error:  # which is said again where the program does not run
        channel("tuning").info("nothing is measured: %s", error.message)
        return
    if found is None:
        channel("tuning").info("there is no GPU to measure on")
        return
    bench, like = found
    store = find_store(KIND)
    if seconds:
        tuner = tuner_on(bench, find_spec(like), store)
        tuner.give(module, tuner.tune(module, seconds))
    else:
        give_best(module, bench.device, store, bench.lowering)
