"""The schedule of a kernel for which none is given: what the cost model takes for the fastest.

    options = Options(..., chooser=Chooser(find_spec("h200")))
    lowered = best(options, shards, build)

The default stays where it is about as fast as the device allows, and where nothing is clearly
faster: a model is not a measurement. Kernels that do the same work get the same schedule, and are
looked at once. What the model takes for too large is no choice, nor what is near the limit, nor,
where there is another one, what a compiler is known to have refused. Where all is too large, what
fits the shared memory is chosen by what its spilled registers cost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tapestry.devices import DeviceSpec
from tapestry.dialects import triton
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.cost.calls import calls_before
from tapestry.passes.triton.cost.counting import work_of
from tapestry.passes.triton.cost.predicting import Build, Calls, Prediction, by_worth, ranked
from tapestry.passes.triton.cost.roofline import Estimate, estimate_of, least_seconds
from tapestry.passes.triton.cost.work import Work
from tapestry.passes.triton.kernels.steps import Options
from tapestry.passes.triton.kernels.writer import Kernel
from tapestry.passes.triton.schedules.candidates import candidates
from tapestry.passes.triton.schedules.rungs import Rung
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.schedules.tiling import Tiling
from tapestry.zspace import Range

Built = TypeVar("Built")

_GAIN = 1.12
"""How many times as fast as the default a schedule has to be predicted to be: by more than times of
products usually differ from predictions (`benchmarks/regret.py`)."""

DESCRIPTORS = 90
"""The least compute capability whose hardware moves what a descriptor describes."""

_MANY = 64
"""How many candidates are looked at one by one."""

_CAREFUL = 0.8
"""The share of a thread's registers that a choice may be predicted to need, by a guess."""

_ALIKE = 1.03
"""Where nothing is multiplied, what is predicted to be as fast within this is as fast."""

_MUCH = 64
"""Registers of a thread with which 1024 threads have all that there are."""

_TRIES = 8
"""How many schedules are looked at for one whose kernel is not refused."""


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


def never(_: triton.KernelOp) -> bool:
    """Nothing is known against any kernel."""
    return False


@dataclass
class Chooser:
    """Chooses schedules for a device; `refused` says which kernels turned out badly there."""

    spec: DeviceSpec
    tiling: Tiling
    refused: Callable[[triton.KernelOp], bool] = never
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
        sound = fits and not self.refused(default)
        if sound and now <= _GAIN * least:
            return None
        found = self._ranked(task, build, everything=not sound)
        faster = [
            one
            for one in found
            if self._is_safe(one.estimate) and (not sound or one.estimate.seconds * _GAIN <= now)
        ]
        better = faster if task.multiplied else _plain_first(faster)
        if not sound and not better:
            # All that fit may spill: what that takes is counted.
            whole = all(estimate_of(work, self.spec).fits for work, _ in works)
            better = [
                one
                for one in found
                if one.estimate.fits and (not whole or one.estimate.seconds * _GAIN <= now)
            ]
        # Where all are refused, a default that is not is better; else the fastest of them.
        chosen = self._accepted(better, build)
        if chosen is None and better and not sound:
            chosen = better[0].schedule
        return None if chosen == default.schedule.data else chosen

    def _accepted(self, found: Sequence[Prediction], build: Build) -> Schedule | None:
        """The first schedule whose kernel is not refused, of some that are tried.

        Of equal tiles one is tried: that threads hold too much of it, other stages do not mend.
        """
        refused: set[Hashable] = set()
        for schedule in (one.schedule for one in found):
            held = (tuple(schedule.tile.items()), schedule.warps, schedule.loads)
            if held in refused:
                continue
            if not self.refused(build(schedule)[0]):
                return schedule
            refused.add(held)
            if len(refused) == _TRIES:
                break
        return None

    def _ranked(self, task: Task, build: Build, *, everything: bool) -> list[Prediction]:
        """The candidates of a task; of many, some first, then what is near the best of these.

        Where nothing is multiplied, tiles are found first: how loops and masks are written is for
        the best of them.
        """
        described = self.spec.capability >= DESCRIPTORS
        every = list(candidates(task, self.tiling, descriptors=described))
        if everything or (task.multiplied and len(every) <= _MANY):
            return ranked(every, build, self.spec)
        first, depth = every[0], list(task.lengths)[-1]
        some = [one for one in every if _walk(one) == _walk(first, one.loads)]
        if len(some) > _MANY:
            some = [one for one in some if one.tile[depth] == first.tile[depth]]
        found = ranked(some, build, self.spec)
        best = next((one.schedule for one in found if self._is_safe(one.estimate)), first)
        near = [one for one in every if one not in some and _distance(one, best) == 1]
        return by_worth([*found, *ranked(near, build, self.spec)])

    def _is_safe(self, estimate: Estimate) -> bool:
        """Whether a kernel surely fits the device."""
        share = 1 if estimate.exact else _CAREFUL
        most = share * self.spec.limits.registers_per_thread
        return not estimate.problems and estimate.registers <= most


def _plain_first(found: Sequence[Prediction]) -> list[Prediction]:
    """Predictions, of which those that are as fast as the first come by what programs hold.

    What is not copied to shared memory needs no barriers for it. Threads that hold much may turn
    out to hold more than is predicted: the same cells are held by more threads.
    """
    alike = [one for one in found if one.estimate.seconds <= _ALIKE * found[0].estimate.seconds]
    alike.sort(key=lambda one: (one.estimate.shared, max(_MUCH, one.estimate.registers)))
    return [*alike, *(one for one in found if one not in alike)]


def _walk(schedule: Schedule, loads: str = "") -> Hashable:
    """What a schedule says besides tile, warps and stages; of others, with these loads."""
    return replace(schedule, tile={}, warps=1, stages=1, loads=loads or schedule.loads)


def _distance(one: Schedule, other: Schedule) -> int:
    """In how many tile axes two schedules differ, and in how they are walked; warps are free."""
    axes = sum(one.tile[axis] != size for axis, size in other.tile.items())
    return axes + (_walk(one) != _walk(other))
