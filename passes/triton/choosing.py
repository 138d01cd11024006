"""The schedule of a kernel for which none is given: what the cost model takes for the fastest.

    options = Options(..., chooser=Chooser(find_spec("h200")))
    lowered = best(options, shards, build)

The default stays where it is about as fast as the device allows, and where nothing is clearly
faster: a model is not a measurement. Kernels that do the same work get the same schedule, and are
looked at once. What the model takes for too large is no choice, nor what is near the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tapestry.devices import DeviceSpec
from tapestry.dialects import triton
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.calls import calls_before
from tapestry.passes.triton.cost import Estimate, estimate_of, least_seconds
from tapestry.passes.triton.counting import work_of
from tapestry.passes.triton.predicting import Build, Calls, ranked
from tapestry.passes.triton.rungs import Rung
from tapestry.passes.triton.schedule import Task, candidates
from tapestry.passes.triton.steps import Options
from tapestry.passes.triton.tiling import Tiling
from tapestry.passes.triton.work import Work
from tapestry.passes.triton.writer import Kernel
from tapestry.zspace import Range

Built = TypeVar("Built")

_GAIN = 1.1
"""How many times as fast as the default a schedule has to be predicted to be."""

_CAREFUL = 0.8
"""The share of a thread's registers that a choice may be predicted to need."""


def best(
    options: Options,
    shards: Sequence[Range],
    build: Callable[[Options, Schedule | None], tuple[Built, Kernel]],
) -> Built:
    """What `build` makes with the schedule that is chosen for its kernel, or by default.

    `build` is given options and a schedule, None for the default one.
    """
    seen: list[Task] = []
    own = replace(options, chooser=None, seen=seen.append)
    built, kernel = build(own, None)
    for task in seen:
        options.see(task)
    axes = set(kernel.op.schedule.data.tile)
    task = next((task for task in seen if set(task.lengths) == axes), None)
    if options.chooser is None or task is None or options.rung(task.name) > Rung.GIVEN:
        return built

    def again(schedule: Schedule) -> tuple[triton.KernelOp, Calls]:
        _, other = build(own, schedule)
        return other.op, calls_before(other, shards)

    chosen = options.chooser(task, kernel.op, calls_before(kernel, shards), again)
    return built if chosen is None else build(own, chosen)[0]


@dataclass
class Chooser:
    """Chooses schedules for a device."""

    spec: DeviceSpec
    tiling: Tiling
    _known: dict[Hashable, Schedule | None] = field(
        default_factory=dict[Hashable, "Schedule | None"]
    )

    def __call__(
        self, task: Task, default: triton.KernelOp, calls: Calls, build: Build
    ) -> Schedule | None:
        """The schedule to build a kernel with in place of its default one; None to keep that."""
        works = [(work_of(default, call), count) for call, count in calls]
        key = (task.kind, tuple(task.lengths.items()), *((w.summary, n) for w, n in works))
        if key not in self._known:
            self._known[key] = self._chosen(task, default, works, build)
        return self._known[key]

    def _chosen(
        self, task: Task, default: triton.KernelOp, works: list[tuple[Work, int]], build: Build
    ) -> Schedule | None:
        now = sum(estimate_of(work, self.spec).seconds * count for work, count in works)
        least = sum(least_seconds(work, self.spec) * count for work, count in works)
        fits = all(self._is_safe(estimate_of(work, self.spec)) for work, _ in works)
        if fits and now <= _GAIN * least:
            return None
        for one in ranked(candidates(task, self.tiling), build, self.spec):
            if self._is_safe(one.estimate):
                faster = one.estimate.seconds * _GAIN <= now
                chosen = faster or not fits
                return one.schedule if chosen and one.schedule != default.schedule.data else None
        return None

    def _is_safe(self, estimate: Estimate) -> bool:
        """Whether a kernel surely fits the device."""
        most = _CAREFUL * self.spec.limits.registers_per_thread
        return not estimate.problems and estimate.registers <= most
