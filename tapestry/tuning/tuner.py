"""Measures candidates for some time, the most promising first, and keeps every result.

    tuner = Tuner(bench, find_spec("h200"))     # a bench that lowers for an H200
    tuner.give(module, tuner.tune(module, seconds=60))

Tuning starts from the kernels that the program has untuned on the device (`settled`). The schedule
that each has then comes first, and the default one; then in turns the candidate of each that is
predicted to be the fastest of those left, so that no job takes all the time. What was measured
before is not measured again: more time goes on where less time ended. An interrupted run loses
nothing that was measured. While one candidate is measured, the next ones are compiled (`ahead.py`).

A schedule is given only where it was measured to be faster than the one that the kernel has
untuned, and where the whole program is faster with all that are given than without.

A candidate that takes the process or the GPU along, or never ends, is not tried again: that it is
being tried is kept before it runs. What is the machine's fault is not held against a candidate
(`faults.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import byte_size
from tapestry.devices import DeviceSpec
from tapestry.diagnostics import TapestryError
from tapestry.dialects.triton import Schedule
from tapestry.logs import channel
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.choosing import never
from tapestry.passes.triton.schedules.measured import keep_measured
from tapestry.runtime.program import outputs as output_types
from tapestry.store import Store
from tapestry.tuning.ahead import Ahead
from tapestry.tuning.benches import Bench, Candidate
from tapestry.tuning.faults import Fault, TuningError, fault_of, said
from tapestry.tuning.jobs import Job, Refused, jobs_of, predicted, settled
from tapestry.tuning.records import Measurement, Records, Whole, record_key, whole_key
from tapestry.tuning.tuned import Tuned

TOLERANCES: Final = {1: 0.2, 2: 2e-2, 4: 1e-3, 8: 1e-6}
"""How far outputs may be from those of the untuned, by the bytes of the narrowest output."""

_ROUNDS: Final = 3
"""How often a program is measured without schedules and with them, in turns."""

UNFINISHED: Final = "the process ended while it was measured"
"""The problem of a candidate while it is measured."""

_LONGEST_PROBLEM: Final = 300

Watch = Callable[[Tuned, Measurement, int], None]
"""Told of each measurement, and how many candidates are left."""


@dataclass
class Tuner:
    """Tunes programs on a bench; `spec` is the device that predictions are for.

    `refused` says which kernels compilers are known to refuse there.
    """

    bench: Bench
    spec: DeviceSpec
    store: Store | None = None
    watch: Watch | None = None
    refused: Refused = never

    @property
    def lowering(self) -> LoomToTriton:
        """How programs are lowered for the bench."""
        return self.bench.lowering

    def tune(self, module: ModuleOp, seconds: float) -> list[Tuned]:
        """Measure the candidates of a program in loom for some time; it stays as it is.

        Raises TuningError where nothing more can be measured.
        """
        found = self.jobs(module)
        if seconds <= 0:
            return found
        end = self.bench.clock() + seconds
        left = sum(len(list(tuned.left())) for tuned in found)
        references = {tuned.key: _Reference() for tuned in found}
        with Ahead(self._compiled, self.bench.workers) as ahead:
            for (tuned, schedule), compiled in ahead.of(_in_turns(found)):
                if self.bench.clock() >= end:
                    break
                measurement = self._tried(tuned, schedule, references[tuned.key], compiled)
                left -= 1
                self._say(tuned, measurement, left)
        return found

    def jobs(self, module: ModuleOp) -> list[Tuned]:
        """What is to be tuned, with what is known of it."""
        # Compilers may refuse what the cost model chooses: that is known once all is compiled.
        with suppress(Exception):
            self.bench.whole(module)
        jobs = jobs_of(settled(module, self.lowering), self.lowering, self.refused)
        return [self.prepared(job) for job in jobs]

    def prepared(self, job: Job) -> Tuned:
        """A job with its predictions and what is known of it."""
        key = record_key(job, self.bench.device, self.lowering)
        return Tuned(job, predicted(job, self.spec), Records.read(self.store, key), key)

    def give(self, module: ModuleOp, found: Sequence[Tuned]) -> Whole | None:
        """Have a program use what was found, if it is faster so; what it takes, where known.

        What another run found for it stays where that gained more.
        """
        better = {one.job.place: s for one in found if (s := one.better) is not None}
        key = whole_key(module, self.bench.device, self.lowering)
        known = Whole.read(self.store, key)
        if better and (known is None or dict(known.schedules) != better):
            fresh = self._compared(module, better)
            if fresh is not None and (known is None or fresh.gain > known.gain):
                fresh.write(self.store, key)
                known = fresh
        keep_measured(module, self.lowering.device, {} if known is None else known.given)
        return known

    def _compared(self, module: ModuleOp, schedules: Mapping[str, Schedule]) -> Whole | None:
        """What a program takes without schedules and with some, in turns; None where it fails."""
        plain, other = module.clone(), module.clone()
        keep_measured(plain, self.lowering.device, {})
        keep_measured(other, self.lowering.device, schedules)
        try:
            untuned, tuned = self.bench.whole(plain), self.bench.whole(other)
            difference = self.bench.difference(tuned.outputs(), untuned.outputs())
            if not difference <= _tolerance(module):
                channel("tuning").info("the program computes something else with its schedules")
                return None
            times = [(untuned.seconds(), tuned.seconds()) for _ in range(_ROUNDS)]
        except Exception as error:  # noqa: BLE001 - then it stays as it is
            channel("tuning").info("the program is not measured: %s", said(error))
            return None
        before, after = (median(column) for column in zip(*times, strict=True))
        shown = "the program takes %.2f us untuned, and %.2f us with what was found"
        channel("tuning").info(shown, before * 1e6, after * 1e6)
        return Whole(schedules, before, after)

    def _compiled(self, candidate: tuple[Tuned, Schedule]) -> None:
        tuned, schedule = candidate
        self.bench.compile(tuned.job.scheduled(schedule))

    def _tried(
        self, tuned: Tuned, schedule: Schedule, reference: _Reference, compiled: Future[None]
    ) -> Measurement:
        """A candidate's time, or what is wrong with it; it is kept."""
        records = tuned.records
        try:
            try:
                compiled.result()
                records.add(Measurement(schedule, None, float("nan"), UNFINISHED))
                records.write(self.store, tuned.key)
                made = self._measured(tuned, schedule, reference)
            except Exception as error:  # noqa: BLE001 - whatever a candidate fails with is its result
                made = self._failed(tuned, schedule, error)
        except BaseException:  # it was interrupted, or cannot be measured here: it may be later
            records.drop(schedule)
            records.write(self.store, tuned.key)
            raise
        records.add(made)
        records.write(self.store, tuned.key)
        if not self.bench.works():
            raise TuningError(
                f"the GPU failed while @{tuned.job.task.name} was measured with {schedule}: "
                f"{made.problem or 'it does not answer any more'}",
                hint="start again: what was measured is kept, and this schedule is not tried again",
            )
        return made

    def _measured(self, tuned: Tuned, schedule: Schedule, reference: _Reference) -> Measurement:
        """A candidate's time, or that it computes something else."""
        failed = tuned.job.untuned in tuned.records.made and not tuned.records.worked(
            tuned.job.untuned
        )
        if schedule != tuned.job.untuned and not failed:
            reference.try_once(lambda: self._built(tuned, tuned.job.untuned).outputs())
        built = self._built(tuned, schedule)
        outputs = built.outputs()
        difference = self.bench.difference(outputs, reference.of(outputs))
        if not difference <= _tolerance(tuned.job.program):
            problem = "its outputs are not those of the untuned kernel"
            return Measurement(schedule, None, difference, problem)
        return Measurement(schedule, float(built.seconds()), difference)

    def _failed(self, tuned: Tuned, schedule: Schedule, error: Exception) -> Measurement:
        """That a candidate failed; TuningError where all do."""
        fault = fault_of(error)
        if fault is Fault.MACHINE and self.bench.works():
            raise TuningError(
                f"@{tuned.job.task.name} cannot be measured with {schedule}: {said(error)}",
                hint=error.hint if isinstance(error, TapestryError) else None,
            ) from error
        problem = said(error)[:_LONGEST_PROBLEM]
        return Measurement(schedule, None, float("nan"), problem, passing=fault is Fault.MEMORY)

    def _built(self, tuned: Tuned, schedule: Schedule) -> Candidate:
        return self.bench.build(tuned.job.scheduled(schedule))

    def _say(self, tuned: Tuned, measurement: Measurement, left: int) -> None:
        what = measurement.problem or f"{(measurement.seconds or 0.0) * 1e6:.2f} us"
        channel("tuning").info("%s: %s: %s", tuned.job.task.name, measurement.schedule, what)
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
    """What candidates have to compute: what the kernel does untuned, else the first other."""

    def __init__(self) -> None:
        self._outputs: Sequence[Any] | None = None
        self._tried = False

    def try_once(self, run: Callable[[], Sequence[Any]]) -> None:
        """Have `run` make the outputs, if nothing has, and it has not failed before."""
        if self._outputs is None and not self._tried:
            self._tried = True
            # A kernel that fails is a result of its own; here it is nothing to compare with.
            with suppress(Exception):
                self._outputs = run()

    def of(self, outputs: Sequence[Any]) -> Sequence[Any]:
        """What is wanted: these outputs, where there are none before."""
        if self._outputs is None:
            self._outputs = outputs
        return self._outputs


def give_best(module: ModuleOp, device: str, store: Store | None, lowering: LoomToTriton) -> int:
    """Have a program use what was measured to be faster for it; how many schedules that are.

    `device` is what results are filed under; nothing is measured.
    """
    known = Whole.read(store, whole_key(module, device, lowering))
    given: Mapping[str, Schedule] = {} if known is None else known.given
    keep_measured(module, lowering.device, given)
    return len(given)


def _tolerance(program: ModuleOp) -> float:
    return max(TOLERANCES.get(byte_size(one.element_type), 0.0) for one in output_types(program))
