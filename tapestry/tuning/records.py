"""What was measured, kept in files: `Records` of a job on a device, as plain JSON.

    records = Records.read(store, key)
    records.add(Measurement(schedule, seconds=1.2e-5, difference=0.0))
    records.write(store, key)           # in one step; a damaged file is no file

A result is found by the operation's text without names, the device, Triton's version and the
options of the lowering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from math import inf, isfinite
from typing import Final, cast

from tapestry.dialects.triton import Schedule, ScheduleError
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.store import Store, key_of
from tapestry.tuning.jobs import Job

KIND: Final = "tuning"
"""The folder of results."""


@dataclass(frozen=True)
class Measurement:
    """A schedule that was tried: its seconds, or the problem there was.

    `difference` is how far its outputs are from those of the default, relative to these.
    """

    schedule: Schedule
    seconds: float | None = None
    difference: float = 0.0
    problem: str = ""


@dataclass
class Records:
    """The measurements of a job, one per schedule, in the order in which they were made."""

    made: dict[Schedule, Measurement] = field(default_factory=dict[Schedule, Measurement])

    def add(self, measurement: Measurement) -> None:
        """Keep a measurement."""
        self.made[measurement.schedule] = measurement

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
        """Keep everything."""
        if store is None:
            return
        rows = [
            {
                "schedule": str(one.schedule),
                "seconds": one.seconds,
                "difference": one.difference if isfinite(one.difference) else None,
                "problem": one.problem,
            }
            for one in self.made.values()
        ]
        store.write(key, {"measurements": rows})


def record_key(job: Job, device: str, lowering: LoomToTriton) -> str:
    """What results of a job on a device are found by."""
    return key_of(
        {
            "kind": KIND,
            "operation": job.text,
            "axes": list(job.task.lengths.items()),
            "device": device,
            "triton": version("triton"),
            "numerics": lowering.numerics,
        }
    )


def _measurement(value: object) -> Measurement | None:
    """What a row of an entry says; None for one that is no measurement any more."""
    if not isinstance(value, dict):
        return None
    row = cast("Mapping[str, object]", value)
    schedule, seconds = row.get("schedule"), row.get("seconds")
    difference, problem = row.get("difference"), row.get("problem")
    if not isinstance(schedule, str) or not isinstance(problem, str):
        return None
    if not isinstance(seconds, float | None) or not (seconds is None or 0 < seconds < inf):
        return None
    apart = float(difference) if isinstance(difference, float | int) else float("nan")
    try:
        return Measurement(Schedule.parse(schedule), seconds, apart, problem)
    except ScheduleError:
        return None
