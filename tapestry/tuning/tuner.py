"""Measures candidates for some time, the most promising first, and keeps every result.

The default of each job comes first, then in turns the candidate of each that is predicted to be the
fastest of those left, so that no job takes all the time. What was measured before is not measured
again: more time goes on where less time ended. An interrupted run loses nothing that was measured.
While one candidate is measured, the next ones are compiled (`ahead.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import byte_size
from tapestry.devices import DeviceSpec
from tapestry.dialects.triton import Schedule
from tapestry.logs import channel
from tapestry.passes.triton.cost.predicting import Prediction
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.schedule import default, is_legal
from tapestry.passes.triton.schedules.tiling import Tiling
from tapestry.runtime.program import outputs as output_types
from tapestry.store import Store
from tapestry.tuning.ahead import Ahead
from tapestry.tuning.benches import Bench, Candidate
from tapestry.tuning.jobs import Job, jobs_of, predicted
from tapestry.tuning.records import Measurement, Records, record_key

HOPELESS: Final = 4.0
"""What is predicted to take so many times what the best takes is not measured."""

TOLERANCES: Final = {1: 0.2, 2: 2e-2, 4: 1e-3, 8: 1e-6}
"""How far outputs may be from those of the default, by the bytes of the narrowest output."""

_LONGEST_PROBLEM: Final = 300


@dataclass(eq=False)
class Tuned:
    """A job, what is predicted of its candidates, and what was measured."""

    job: Job
    predictions: Sequence[Prediction]
    records: Records
    key: str
    default: Schedule

    @property
    def best(self) -> Measurement | None:
        """The fastest measurement."""
        return self.records.best()

    @property
    def gain(self) -> float | None:
        """How many times as fast as the default the best one is; None where that is not known."""
        now, best = self.records.made.get(self.default), self.best
        if now is None or best is None or now.seconds is None or best.seconds is None:
            return None
        return now.seconds / best.seconds

    def left(self) -> Iterator[Schedule]:
        """What is to be measured, in order."""
        fitting = [one for one in self.predictions if not one.estimate.problems]
        limit = HOPELESS * fitting[0].estimate.seconds if fitting else 0.0
        worth = [one.schedule for one in fitting if one.estimate.seconds <= limit]
        for schedule in dict.fromkeys((self.default, *worth)):
            if schedule not in self.records.made:
                yield schedule


Watch = Callable[[Tuned, Measurement, int], None]
"""Told of each measurement, and how many candidates are left."""


@dataclass
class Tuner:
    """Tunes programs on a bench; `spec` is the device that predictions are for."""

    bench: Bench
    spec: DeviceSpec
    lowering: LoomToTriton = field(default_factory=LoomToTriton)
    store: Store | None = None
    watch: Watch | None = None

    def tune(self, module: ModuleOp, seconds: float) -> list[Tuned]:
        """Measure the candidates of a program in loom for some time; it stays as it is."""
        end = self.bench.clock() + seconds
        found = [self.prepared(job) for job in jobs_of(module, self.lowering)]
        left = sum(len(list(tuned.left())) for tuned in found)
        references = {tuned.key: _Reference() for tuned in found}
        with Ahead(self._compiled, self.bench.workers) as ahead:
            for (tuned, schedule), compiled in ahead.of(_in_turns(found)):
                if self.bench.clock() >= end:
                    break
                measurement = self._measured(tuned, schedule, references[tuned.key], compiled)
                tuned.records.add(measurement)
                tuned.records.write(self.store, tuned.key)
                left -= 1
                self._say(tuned, measurement, left)
        return found

    def prepared(self, job: Job) -> Tuned:
        """A job with its predictions and what is known of it."""
        key = record_key(job, self.bench.device, self.lowering)
        return Tuned(
            job,
            predicted(job, self.lowering, self.spec),
            Records.read(self.store, key),
            key,
            default(job.task, Tiling(self.lowering.tile)),
        )

    def _compiled(self, candidate: tuple[Tuned, Schedule]) -> None:
        tuned, schedule = candidate
        self.bench.compile(tuned.job.scheduled(schedule))

    def _measured(
        self, tuned: Tuned, schedule: Schedule, reference: _Reference, compiled: Future[None]
    ) -> Measurement:
        """A candidate's time, or what is wrong with it."""
        try:
            compiled.result()
            if schedule != tuned.default:
                reference.try_once(lambda: self._built(tuned, tuned.default).outputs())
            built = self._built(tuned, schedule)
            outputs = built.outputs()
            difference = self.bench.difference(outputs, reference.of(outputs))
            if not difference <= _tolerance(tuned.job.program):
                problem = "its outputs are not those of the default"
                return Measurement(schedule, None, difference, problem)
            return Measurement(schedule, float(built.seconds()), difference)
        except Exception as error:  # noqa: BLE001 - whatever a candidate fails with is its result
            return Measurement(schedule, None, float("nan"), _problem(error))

    def _built(self, tuned: Tuned, schedule: Schedule) -> Candidate:
        return self.bench.build(tuned.job.scheduled(schedule))

    def _say(self, tuned: Tuned, measurement: Measurement, left: int) -> None:
        said = measurement.problem or f"{(measurement.seconds or 0.0) * 1e6:.2f} us"
        channel("tuning").info("%s: %s: %s", tuned.job.task.name, measurement.schedule, said)
        if self.watch is not None:
            self.watch(tuned, measurement, left)


def _in_turns(found: Sequence[Tuned]) -> Iterator[tuple[Tuned, Schedule]]:
    """What is to be measured: the first candidate of each job, then the second of each, ..."""
    waiting = [(tuned, iter(list(tuned.left()))) for tuned in found]
    while waiting:
        going: list[tuple[Tuned, Iterator[Schedule]]] = []
        for tuned, schedules in waiting:
            schedule = next(schedules, None)
            if schedule is not None:
                yield tuned, schedule
                going.append((tuned, schedules))
        waiting = going


class _Reference:
    """What candidates have to compute: what the default does; where it fails, the first other."""

    def __init__(self) -> None:
        self._outputs: Sequence[Any] | None = None
        self._tried = False

    def try_once(self, run: Callable[[], Sequence[Any]]) -> None:
        """Have `run` make the outputs, if nothing has, and it has not failed before."""
        if self._outputs is None and not self._tried:
            self._tried = True
            # A default that fails is a result of its own; here it is nothing to compare with.
            with suppress(Exception):
                self._outputs = run()

    def of(self, outputs: Sequence[Any]) -> Sequence[Any]:
        """What is wanted: these outputs, where there are none before."""
        if self._outputs is None:
            self._outputs = outputs
        return self._outputs


def give_best(module: ModuleOp, device: str, store: Store | None, lowering: LoomToTriton) -> int:
    """Give operations of a program the fastest schedules that are known; how many there are."""
    count = 0
    for job in jobs_of(module, lowering):
        best = Records.read(store, record_key(job, device, lowering)).best()
        if best is not None and is_legal(job.task, best.schedule):
            job.give(best.schedule)
            count += len(job.places)
    return count


def _tolerance(program: ModuleOp) -> float:
    return max(TOLERANCES.get(byte_size(one.element_type), 0.0) for one in output_types(program))


def _problem(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__
    return text[:_LONGEST_PROBLEM]
