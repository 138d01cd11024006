"""What was measured, kept in files: `Records` of a job on a device, as plain JSON.

    records = Records.read(store, key)
    records.add(Measurement(schedule, seconds=1.2e-5, difference=0.0))
    records.write(store, key)           # in one step; a damaged file is no file

A result is found by the operation's text without names, what its kernels are with default
schedules, the device, Triton's version and the options of the lowering. What a whole program takes
with schedules and without (`Whole`) is found by the program and all that it is lowered by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import inf, isfinite
from typing import Final, TypeGuard, cast

from xdsl.dialects.builtin import ModuleOp

from tapestry.codegen.aot_jobs import installed
from tapestry.dialects.triton import Schedule, ScheduleError
from tapestry.encoding import EncodingError, text_without_names
from tapestry.environment import environment
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.measured import MEASURED
from tapestry.store import Store, key_of
from tapestry.tuning.jobs import Job

KIND: Final = "tuning"
"""The folder of results."""


@dataclass(frozen=True)
class Measurement:
    """A schedule that was tried: its seconds, or the problem there was.

    `difference` is how far its outputs are from those of the default, relative to these. A problem
    that is `passing` is not kept: memory that another process has now.
    """

    schedule: Schedule
    seconds: float | None = None
    difference: float = 0.0
    problem: str = ""
    passing: bool = False


@dataclass
class Records:
    """The measurements of a job, one per schedule, in the order in which they were made."""

    made: dict[Schedule, Measurement] = field(default_factory=dict[Schedule, Measurement])
    _dropped: set[Schedule] = field(default_factory=set[Schedule])

    def add(self, measurement: Measurement) -> None:
        """Keep a measurement."""
        self.made[measurement.schedule] = measurement
        self._dropped.discard(measurement.schedule)

    def drop(self, schedule: Schedule) -> None:
        """Forget the measurement of a schedule."""
        self.made.pop(schedule, None)
        self._dropped.add(schedule)

    def worked(self, schedule: Schedule) -> bool:
        """Whether a schedule was measured without a problem."""
        return schedule in self.made and self.made[schedule].seconds is not None

    def best(self) -> Measurement | None:
        """The fastest one; None where nothing worked."""
        worked = [one for one in self.made.values() if one.seconds is not None]
        return min(worked, key=lambda one: one.seconds or 0.0, default=None)

    @staticmethod
    def read(store: Store | None, key: str) -> Records:
        """What is kept; nothing where there is no entry, or one of another form."""
        entry = None if store is None else store.read(key)
        found = Records()
        rows: object = None if entry is None else entry.get("measurements")
        for row in cast("list[object]", rows) if isinstance(rows, list) else ():
            measurement = _measurement(row)
            if measurement is not None:
                found.add(measurement)
        return found

    def write(self, store: Store | None, key: str) -> None:
        """Keep everything, beside what other processes have measured since."""
        if store is None:
            return
        others = Records.read(store, key).made
        kept = {n: one for n, one in others.items() if n not in self._dropped} | self.made
        rows = [
            {
                "schedule": str(one.schedule),
                "seconds": one.seconds,
                "difference": one.difference if isfinite(one.difference) else None,
                "problem": one.problem,
            }
            for one in kept.values()
            if not one.passing
        ]
        store.write(key, {"measurements": rows})


def record_key(job: Job, device: str, lowering: LoomToTriton) -> str:
    """What results of a job on a device are found by."""
    return key_of(
        {
            "kind": KIND,
            "operation": job.text,
            "kernels": job.kernels,
            "number": job.number,
            "axes": list(job.task.lengths.items()),
            "device": device,
            "triton": installed(),
            "numerics": lowering.numerics,
        }
    )


@dataclass(frozen=True)
class Whole:
    """What a program takes without schedules and with some, which are by place (`measured.py`)."""

    schedules: Mapping[str, Schedule]
    untuned: float
    tuned: float

    @property
    def gain(self) -> float:
        """How many times as fast the program is with its schedules."""
        return self.untuned / self.tuned

    @property
    def given(self) -> Mapping[str, Schedule]:
        """The schedules that the program is to have: none where it is not faster with them."""
        return self.schedules if self.gain > 1 else {}

    @staticmethod
    def read(store: Store | None, key: str | None) -> Whole | None:
        """What is kept; None where there is no entry, or one of another form."""
        entry = None if store is None or key is None else store.read(key)
        if entry is None:
            return None
        rows, untuned, tuned = (entry.get(name) for name in ("schedules", "untuned", "tuned"))
        if not isinstance(rows, dict) or not (_is_time(untuned) and _is_time(tuned)):
            return None
        try:
            texts = cast("dict[str, str]", rows)
            schedules = {place: Schedule.parse(str(text)) for place, text in texts.items()}
        except ScheduleError:
            return None
        return Whole(schedules, untuned, tuned)

    def write(self, store: Store | None, key: str | None) -> None:
        """Keep it."""
        if store is not None and key is not None:
            rows = {place: str(schedule) for place, schedule in self.schedules.items()}
            store.write(key, {"schedules": rows, "untuned": self.untuned, "tuned": self.tuned})


def whole_key(module: ModuleOp, device: str, lowering: LoomToTriton) -> str | None:
    """What a program's times on a device are found by; None for one that cannot be kept.

    Another version of Tapestry may make other kernels of it: its sources are part of the key.
    """
    bare = module.clone()
    bare.attributes.pop(MEASURED, None)
    try:
        text = text_without_names(bare)
    except EncodingError:
        return None
    return key_of(
        {
            "kind": KIND,
            "program": sha256(text.encode()).hexdigest(),
            "device": device,
            "triton": installed(),
            "lowering": str(lowering.spec(include_default=True)),
            "environment": environment(),
        }
    )


def _is_time(value: object) -> TypeGuard[float]:
    return isinstance(value, float) and 0 < value < inf


def _measurement(value: object) -> Measurement | None:
    """What a row of an entry says; None for one that is no measurement any more."""
    if not isinstance(value, dict):
        return None
    row = cast("Mapping[str, object]", value)
    schedule, seconds = row.get("schedule"), row.get("seconds")
    difference, problem = row.get("difference"), row.get("problem")
    if not isinstance(schedule, str) or not isinstance(problem, str):
        return None
    if not (seconds is None or _is_time(seconds)):
        return None
    apart = float(difference) if isinstance(difference, float | int) else float("nan")
    try:
        return Measurement(Schedule.parse(schedule), seconds, apart, problem)
    except ScheduleError:
        return None
