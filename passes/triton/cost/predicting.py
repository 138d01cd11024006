"""What launches take by the cost model.

for one in predictions(lowered, find_spec("h200")):
    one.name, one.schedule, one.estimate.seconds
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from tapestry.devices import DeviceSpec
from tapestry.dialects import triton
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.cost.calls import Call, calls_of
from tapestry.passes.triton.cost.counting import work_of
from tapestry.passes.triton.cost.roofline import Estimate, estimate_of
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.tiles.builder import Answers

Calls: TypeAlias = "Sequence[tuple[Call, int]]"
Build: TypeAlias = "Callable[[Schedule], Made]"
Choose: TypeAlias = "Callable[[Task, triton.KernelOp, Calls, Build, Hashable], Schedule | None]"
"""What chooses a schedule in place of a kernel's default one, or None to keep that. Kernels that
are alike by the last of what it is given are the same, if that is not None."""


@dataclass(frozen=True, eq=False)
class Made:
    """A kernel that was built, and its launches.

    `answers` are what the sizes of its blocks decided besides types; None where that is not known.
    """

    kernel: triton.KernelOp
    calls: Calls
    answers: Answers | None = None


@dataclass(frozen=True)
class Prediction:
    """A kernel and what all its launches take."""

    name: str
    schedule: Schedule
    estimate: Estimate


def estimate_calls(kernel: triton.KernelOp, calls: Calls, spec: DeviceSpec) -> Estimate:
    """What launches of a kernel take, one after another."""
    return summed([(estimate_of(work_of(kernel, call), spec), count) for call, count in calls])


def summed(estimates: Sequence[tuple[Estimate, int]]) -> Estimate:
    """Estimates of launches one after another, each so many times; limits are the largest's."""
    if len(estimates) == 1 and estimates[0][1] == 1:
        return estimates[0][0]
    largest = max((one for one, _ in estimates), key=lambda one: one.seconds)
    parts: dict[str, float] = {}
    for one, count in estimates:
        for name, seconds in one.parts.items():
            parts[name] = parts.get(name, 0.0) + seconds * count
    return replace(
        largest,
        seconds=sum(one.seconds * count for one, count in estimates),
        parts=parts,
        bytes=sum(one.bytes * count for one, count in estimates),
        flops=sum(one.flops * count for one, count in estimates),
        fits=all(one.fits for one, _ in estimates),
        problems=tuple(dict.fromkeys(p for one, _ in estimates for p in one.problems)),
    )


def predictions(lowered: ModuleOp, spec: DeviceSpec) -> list[Prediction]:
    """What each launch operation of a program in triton takes, in order."""
    kernels = {
        op.sym_name.data: op for op in lowered.body.block.ops if isinstance(op, triton.KernelOp)
    }
    found: list[Prediction] = []
    for launch in lowered.walk():
        if isinstance(launch, triton.LaunchOp) and launch.rows:
            kernel = kernels[launch.kernel_name]
            estimate = estimate_calls(kernel, calls_of(launch), spec)
            found.append(Prediction(launch.kernel_name, kernel.schedule.data, estimate))
    return found
