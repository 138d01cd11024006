"""What launches take by the cost model, and which of a kernel's schedules it takes for the fastest.

for one in predictions(lowered, find_spec("h200")):
    one.name, one.schedule, one.estimate.seconds

best, *others = ranked(schedules, build, find_spec("h200"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from tapestry.devices import DeviceSpec
from tapestry.dialects import triton
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.passes.triton.cost.calls import Call, calls_of
from tapestry.passes.triton.cost.counting import work_of
from tapestry.passes.triton.cost.roofline import Estimate, estimate_of
from tapestry.passes.triton.cost.work import Work
from tapestry.passes.triton.schedules.task import Task

Calls: TypeAlias = "Sequence[tuple[Call, int]]"
Build: TypeAlias = "Callable[[Schedule], tuple[triton.KernelOp, Calls]]"
Choose: TypeAlias = "Callable[[Task, triton.KernelOp, Calls, Build], Schedule | None]"
"""What chooses a schedule in place of a kernel's default one, or None to keep that."""


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


def ranked(schedules: Iterable[Schedule], build: Build, spec: DeviceSpec) -> list[Prediction]:
    """Schedules by what the kernels take that `build` makes: what fits first, faster ones first.

    Warps and stages are not part of a kernel's body: it is built once for all of them.
    """
    built: dict[Schedule, tuple[triton.KernelOp, Calls]] = {}
    works: dict[Schedule, list[tuple[Work, int]]] = {}
    found: list[Prediction] = []
    for schedule in schedules:
        staged = replace(schedule, stages=1)
        body = replace(staged, warps=1)
        if body not in built:
            built[body] = build(schedule)
        kernel, calls = built[body]
        if staged not in works:
            kernel.properties["schedule"] = ScheduleAttr(schedule)
            works[staged] = [(work_of(kernel, call), count) for call, count in calls]
        own = [(replace(work, stages=schedule.stages), n) for work, n in works[staged]]
        estimate = summed([(estimate_of(work, spec), count) for work, count in own])
        found.append(Prediction(kernel.sym_name.data, schedule, estimate))
    return by_worth(found)


def by_worth(predictions: Iterable[Prediction]) -> list[Prediction]:
    """Predictions in order: what fits without spills first, then what fits, faster ones first."""

    def worth(one: Prediction) -> tuple[bool, bool, float]:
        estimate = one.estimate
        return not estimate.fits, bool(estimate.problems), estimate.seconds

    return sorted(predictions, key=worth)
