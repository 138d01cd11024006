"""A kernel's schedules by what the cost model says of them, looked at as far as is asked for.

    found = Ranking(schedules, build, find_spec("h200"), least)
    next(iter(found))               # the best one; others are built where they could be better
    list(found)                     # all of them, in order

To know what a schedule takes, its kernel is built and counted. What it takes at `least` is known
without that (`bounds.py`): it is only looked at when that is better than what the next one takes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from heapq import heapify, heappop, heappush
from math import inf
from typing import Generic, TypeAlias, TypeVar

from tapestry.devices import DeviceSpec
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.cost.counting import Counts, counts_of
from tapestry.passes.triton.cost.predicting import Build, Prediction, summed
from tapestry.passes.triton.cost.roofline import Estimate, estimate_of
from tapestry.passes.triton.cost.templates import Template

Item = TypeVar("Item")
Worth: TypeAlias = "tuple[bool, bool, float]"
"""Whether a kernel does not fit, whether something is against it, and its seconds: what predictions
are ordered by, the best one least."""
Least: TypeAlias = "Callable[[Schedule], Worth]"
"""What a schedule's kernel is worth at best, known without it."""

_ROUNDED = 1 - 1e-9
"""A sum of floats in another order may be less by so much."""

BEST: Worth = (False, False, 0.0)
"""What no kernel is better than."""
_WORST: Worth = (True, True, inf)


class Seen(Generic[Item]):
    """What an iterator gives, as a sequence that goes on only as far as is asked for."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items
        self._seen: list[Item] = []

    def __iter__(self) -> Iterator[Item]:
        at = 0
        while at < len(self._seen) or self._go_on():
            yield self._seen[at]
            at += 1

    def _go_on(self) -> bool:
        for item in self._items:
            self._seen.append(item)
            return True
        return False

    @property
    def first(self) -> Item | None:
        """The first of them; None where there is none."""
        return next(iter(self), None)


class Ranking:
    """Predictions in order: what fits without spills first, then what fits, faster ones first.

    Of equal ones that comes first which was given first. Warps and stages are not part of a
    kernel's body: it is built once for all of them.
    """

    def __init__(
        self,
        schedules: Iterable[Schedule],
        build: Build,
        spec: DeviceSpec,
        least: Least = lambda _: BEST,
    ) -> None:
        self._build, self._spec, self._least = build, spec, least
        self._given = 0
        self._waiting: list[tuple[Worth, int, Schedule]] = []
        self._found: list[tuple[Worth, int, Prediction]] = []
        self._ordered: list[tuple[Worth, int, Prediction]] = []
        self._counted: dict[Schedule, tuple[str, list[tuple[Counts, int]]]] = {}
        self._templates: list[Template] = []
        self.add(schedules)

    def add(self, schedules: Iterable[Schedule]) -> None:
        """Rank more schedules among those that are there; who goes through them begins again."""
        for schedule in schedules:
            large, bad, seconds = self._least(schedule)
            least = large, bad, seconds * _ROUNDED
            self._waiting.append((least, self._given, schedule))
            self._given += 1
        self._found += self._ordered
        self._ordered = []
        heapify(self._waiting)
        heapify(self._found)

    def __iter__(self) -> Iterator[Prediction]:
        at = 0
        while at < len(self._ordered) or self._go_on():
            yield self._ordered[at][2]
            at += 1

    def within(self, seconds: float) -> Iterator[Prediction]:
        """Those that fit without spills and take no longer than so many seconds, in order.

        What takes longer at least, or spills, is not built.
        """
        at, last = 0, (False, False, seconds)
        while at < len(self._ordered) or self._go_on(last):
            worth, _, one = self._ordered[at]
            if worth > last:
                return
            yield one
            at += 1

    def go_on_with(self, build: Build) -> None:
        """Build what is still looked at by `build`, which makes the same kernels.

        What made those before may be of a program that is lowered by now.
        """
        self._build = build

    def _go_on(self, last: Worth = _WORST) -> bool:
        """Find the next one in order; whether there is one that may be worth so much."""
        while self._waiting and not self._is_next():
            if self._waiting[0][0] > last:
                return False
            _, number, schedule = heappop(self._waiting)
            prediction = self._predicted(schedule)
            heappush(self._found, (worth_of(prediction.estimate), number, prediction))
        if self._found:
            self._ordered.append(heappop(self._found))
            return True
        return False

    def _is_next(self) -> bool:
        """Whether the best one that was looked at is better than all that were not."""
        return bool(self._found) and self._found[0][0] < self._waiting[0][0]

    def _predicted(self, schedule: Schedule) -> Prediction:
        body = replace(schedule, warps=1, stages=1)
        if body not in self._counted:
            self._counted[body] = self._count(schedule)
        name, counts = self._counted[body]
        works = [(one.work(schedule.warps, schedule.stages), count) for one, count in counts]
        estimate = summed([(estimate_of(work, self._spec), count) for work, count in works])
        return Prediction(name, schedule, estimate)

    def _count(self, schedule: Schedule) -> tuple[str, list[tuple[Counts, int]]]:
        """The name of a schedule's kernel, and what its launches do.

        It is built where none of those that were is the same with tiles of other sizes.
        """
        for template in self._templates:
            if (counts := template.counts(schedule)) is not None:
                return template.name, counts
        made = self._build(schedule)
        counts = [(counts_of(made.kernel, call), count) for call, count in made.calls]
        template = Template.of(made) if self._waiting else None
        if template is not None:
            self._templates.append(template)
        return made.kernel.sym_name.data, counts


def worth_of(estimate: Estimate) -> Worth:
    """What a prediction is ordered by."""
    return not estimate.fits, bool(estimate.problems), estimate.seconds


Rankings: TypeAlias = "dict[Hashable, Ranking]"
"""What was found of the schedules of kernels, by what these depend on."""


def ranked(schedules: Iterable[Schedule], build: Build, spec: DeviceSpec) -> list[Prediction]:
    """Schedules by what the kernels take that `build` makes: what fits first, faster ones first."""
    return list(Ranking(schedules, build, spec))
