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

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from math import inf
from typing import TypeVar

from tapestry.devices import DeviceSpec
from tapestry.dialects import triton
from tapestry.dialects.triton import EXTRAS, Schedule, ScheduleAttr
from tapestry.passes._collection import collection_paused
from tapestry.passes.triton.cost.bounds import Counted, least_of
from tapestry.passes.triton.cost.calls import calls_before
from tapestry.passes.triton.cost.counting import work_of
from tapestry.passes.triton.cost.predicting import Build, Calls, Made, Prediction
from tapestry.passes.triton.cost.ranking import Least, Ranking, Rankings, Seen
from tapestry.passes.triton.cost.roofline import Estimate, estimate_of, least_seconds
from tapestry.passes.triton.cost.templates import SIZES
from tapestry.passes.triton.kernels.steps import Options
from tapestry.passes.triton.kernels.writer import Kernel
from tapestry.passes.triton.schedules.candidates import STAGES, candidates
from tapestry.passes.triton.schedules.rungs import Rung
from tapestry.passes.triton.schedules.schedule import is_point_by_point
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.schedules.tiling import Tiling
from tapestry.zspace import Range

Built = TypeVar("Built")

_GAIN = 1.08
"""How many times as fast as the default a schedule has to be predicted to be: by more than times of
products usually differ from predictions (`benchmarks/regret.py`)."""

_LAUNCH_NOISE = 0.4e-6
"""Seconds by which launches differ: what gains less is no gain."""

DESCRIPTORS = 90
"""The least compute capability whose hardware moves what a descriptor describes."""

_MANY = 64
"""How many candidates are looked at one by one."""

_BESTS = 3
"""Around how many of the best of those the others are looked at, where something is multiplied."""

_SURE, _LIKELY, _ALL = 0.8, 0.9, 1.0
"""The shares of a thread's registers that a kernel may be predicted to need, by a guess: a default,
or a choice of most kinds; a choice for one product, of which large tiles were fastest on an H100;
and one for products that need one another, of which those with all registers were fastest on an
H200. What turns out to need more is refused, and costs another kernel."""

_ALIKE = 1.03
"""What is predicted to be as fast within this is as fast."""

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

    standard = kernel.op.schedule.data
    made = {replace(standard, warps=1, stages=1): (built, kernel)}

    def again(schedule: Schedule) -> tuple[Built, Kernel]:
        """What `build` makes: once for all warps and stages, which a kernel's body has no part in.

        So what was looked at need not be built again to be chosen.
        """
        body = replace(schedule, warps=1, stages=1)
        if body not in made:
            made[body] = build(own, schedule)
        made[body][1].op.properties["schedule"] = ScheduleAttr(schedule)
        return made[body]

    def looked_at(schedule: Schedule) -> Made:
        _, other = again(schedule)
        return Made(other.op, calls_before(other, shards), other.answers)

    calls = calls_before(kernel, shards)
    chosen = options.chooser(task, kernel.op, calls, looked_at, options.alike)
    return again(standard if chosen is None else chosen)[0]


def _share(task: Task) -> float:
    """The share of a thread's registers that a choice for a task may be predicted to need."""
    if task.folds_inside and task.multiplied:
        return _ALL
    return _LIKELY if task.kind == "contraction" else _SURE


def never(_: triton.KernelOp) -> bool:
    """Nothing is known against any kernel."""
    return False


@dataclass
class Chooser:
    """Chooses schedules for a device; `refused` says which kernels turned out badly there.

    Schedules by which a kernel takes more than `worth` seconds are no choice, where the default one
    fits or takes longer.
    """

    spec: DeviceSpec
    tiling: Tiling
    refused: Callable[[triton.KernelOp], bool] = never
    rankings: Rankings = field(default_factory=dict[Hashable, Ranking])
    """What was found of kernels that are alike, which choosers of one device may share."""
    worth: float = inf
    _known: dict[Hashable, Schedule | None] = field(
        default_factory=dict[Hashable, "Schedule | None"]
    )

    def __call__(
        self,
        task: Task,
        default: triton.KernelOp,
        calls: Calls,
        build: Build,
        alike: Hashable = None,
    ) -> Schedule | None:
        """The schedule to build a kernel with in place of its default one; None to keep that.

        What `build` makes is all the same where `alike` is, unless that is None.
        """
        counted = [(work_of(default, call), call, count) for call, count in calls]
        about = (task.described, task.grows, task.extras, task.matches)
        kind = (task.kind, tuple(task.lengths.items()))
        key = (*kind, *about, *((work.summary, count) for work, _, count in counted))
        if key not in self._known:
            with collection_paused():
                self._known[key] = self._chosen(task, default, counted, build, alike)
        return self._known[key]

    def _chosen(
        self,
        task: Task,
        default: triton.KernelOp,
        counted: Sequence[Counted],
        build: Build,
        alike: Hashable,
    ) -> Schedule | None:
        standard = default.schedule.data  # later it may be another one's kernel (`best`)
        works = [(work, count) for work, _, count in counted]
        now = sum(estimate_of(work, self.spec).seconds * count for work, count in works)
        least = sum(least_seconds(work, self.spec) * count for work, count in works)
        fits = all(self._is_safe(estimate_of(work, self.spec), _SURE) for work, _ in works)
        sound = fits and not self.refused(default)
        most = min(now / _GAIN, now - _LAUNCH_NOISE)
        if sound and most <= least:
            return None
        share = _share(task)
        longest = most if sound else inf
        if sound or now > self.worth:
            longest = min(longest, self.worth)
        found = self.rankings.get((alike, task.kind, sound))
        if found is None:
            bound = least_of(task, standard, counted, self.spec)
            found, is_all = self._ranked(task, build, bound, share, longest, everything=not sound)
            if alike is not None and is_all:
                self.rankings[alike, task.kind, sound] = found
        else:
            found.go_on_with(build)
        better = Seen(one for one in found.within(longest) if self._is_safe(one.estimate, share))
        if task.multiplied:
            better = Seen(_grouped_first(better))
            if task.folds_inside:
                better = Seen(pointers_first(better))
        else:
            better = Seen(_plain_first(better))
        if longest == inf and better.first is None:
            # All that fit may spill: what that takes is counted.
            whole = all(estimate_of(work, self.spec).fits for work, _ in works)
            better = Seen(
                one
                for one in found
                if one.estimate.fits and (not whole or one.estimate.seconds * _GAIN <= now)
            )
        # Where all are refused, a default that is not is better; else the fastest of them, unless
        # it is stages that are wrong.
        chosen = self._accepted(better, build)
        if chosen is None and better.first is not None and not sound:
            waits = task.multiplied and self._has_to_wait(standard, build)
            chosen = replace(standard, stages=1) if waits else better.first.schedule
        return None if chosen == standard else chosen

    def _has_to_wait(self, standard: Schedule, build: Build) -> bool:
        """Whether the default is refused with any stages, and not with one.

        What spills does so as it was compiled; of other stages nothing is known then.
        """
        made = (build(replace(standard, stages=n)).kernel for n in (1, *STAGES))
        return [self.refused(kernel) for kernel in made] == [False, *(True for _ in STAGES)]

    def _accepted(self, found: Iterable[Prediction], build: Build) -> Schedule | None:
        """The first schedule whose kernel is not refused, of some that are tried.

        Of equal tiles one is tried: that threads hold too much of it, other stages do not mend.
        """
        refused: set[Hashable] = set()
        for schedule in (one.schedule for one in found):
            own = (schedule.warps, schedule.loads, schedule.extras)
            held = (tuple(schedule.tile.items()), *own)
            if held in refused:
                continue
            if not self.refused(build(schedule).kernel):
                return schedule
            refused.add(held)
            if len(refused) == _TRIES:
                break
        return None

    def _ranked(
        self,
        task: Task,
        build: Build,
        least: Least,
        share: float,
        longest: float,
        *,
        everything: bool,
    ) -> tuple[Ranking, bool]:
        """The candidates of a task, and whether they are the same however long they may take.

        Of many they are some, and then what is near the best of these, and near the best of both,
        until all that is near was looked at. Where nothing is multiplied, tiles are found first:
        how loops and masks are written is for the best of them, and so is what is loaded early.
        """
        described = self.spec.capability >= DESCRIPTORS
        every = list(candidates(task, self.tiling, descriptors=described))
        first, depth = every[0], list(task.lengths)[-1]
        late = [one for one in every if one.extras == first.extras]
        wanted = _BESTS if task.multiplied else 1
        if everything or (task.multiplied and len(late) <= _MANY):
            some, wanted = late, 1
        else:
            plain = first.besides(*SIZES, "loads")
            some = [
                one
                for one in late
                if one.besides(*SIZES, "loads") == plain
                or (is_point_by_point(task, one) and one.masks == first.masks)
            ]
            if len(some) > _MANY:
                some = [one for one in some if one.tile[depth] == first.tile[depth]]
            some += [one for one in late if one.visits != first.visits]
        found = Ranking(some, build, self.spec, least)
        if len(some) == len(every):
            return found, True
        # What persistent programs read last lies in shared memory beside stages: smaller ones fit.
        free = depth if task.extras else None
        looked_at = set(some)
        while True:
            within = found.within(longest) if self.worth < inf else found
            safe = (one.schedule for one in within if self._is_safe(one.estimate, share))
            bests = [*islice(_of_other_tiles(safe), wanted)]
            around = bests or [first]
            early = [replace(best, extras=EXTRAS[1]) for best in around]
            more = [
                one
                for one in every
                if one not in looked_at
                and (
                    one in early
                    or (
                        one.extras == first.extras
                        and any(_distance(one, best, free) == 1 for best in around)
                    )
                )
            ]
            if not more:
                return found, self.worth == inf or len(bests) == wanted
            found.add(more)
            looked_at.update(more)

    def _is_safe(self, estimate: Estimate, share: float) -> bool:
        """Whether a kernel fits the device, registers as guessed being a share of all at most."""
        most = (1 if estimate.exact else share) * self.spec.limits.registers_per_thread
        return not estimate.problems and estimate.registers <= most


def _grouped_first(found: Seen[Prediction]) -> Iterator[Prediction]:
    """Predictions, of which those that are as fast as the first come by what multiplies.

    How fast warps multiply beside warpgroups is estimated, and warpgroups take less of a thread.
    """
    return _alike_first(found, lambda one: one.estimate.by_warps)


def pointers_first(found: Seen[Prediction]) -> Iterator[Prediction]:
    """Predictions, of which those that are as fast as the first come by how they load.

    Where a step's products need one another, its blocks are waited for one by one. On an H200
    (`results/schedules_h200.json`) attention by pointers was 5 to 30 % faster than the same tiles
    by descriptors, forward and backward.
    """
    return _alike_first(found, lambda one: one.schedule.loads == "descriptor")


def _plain_first(found: Seen[Prediction]) -> Iterator[Prediction]:
    """Predictions, of which those that are as fast as the first come by what programs hold.

    What is not copied to shared memory needs no barriers for it. Threads that hold much may turn
    out to hold more than is predicted: the same cells are held by more threads.
    """
    return _alike_first(
        found, lambda one: (one.estimate.shared, max(_MUCH, one.estimate.registers))
    )


def _alike_first(
    found: Seen[Prediction], cost: Callable[[Prediction], bool | tuple[int, int]]
) -> Iterator[Prediction]:
    """Predictions, of which those that are as fast as the first come by what else they cost.

    No more is looked at than it takes where the first costs nothing.
    """
    first = found.first
    alike: list[Prediction] = []
    if first is not None and cost(first):
        longest = _ALIKE * first.estimate.seconds
        alike += takewhile(lambda one: one.estimate.seconds <= longest, found)
    yield from sorted(alike, key=cost)
    yield from islice(found, len(alike), None)


def _of_other_tiles(found: Iterable[Schedule]) -> Iterator[Schedule]:
    """The first schedule of each tile, in order."""
    seen: set[tuple[tuple[str, int], ...]] = set()
    for one in found:
        tile = tuple(one.tile.items())
        if tile not in seen:
            seen.add(tile)
            yield one


def _distance(one: Schedule, other: Schedule, free: str | None) -> int:
    """In how many tile axes two schedules differ, and in how they are walked; warps are free.

    So is an axis of persistent programs that load by descriptors.
    """
    if not one.programs or one.loads != "descriptor":
        free = None
    tile = {axis: size for axis, size in other.tile.items() if axis != free}
    axes = sum(one.tile[axis] != size for axis, size in tile.items())
    return axes + (one.besides(*SIZES) != other.besides(*SIZES))
