"""What is known of a kernel that is tuned: predictions, measurements, what they come to.

tuned = Tuned(job, predicted(job, spec), Records.read(store, key), key)
list(tuned.left())          # what is to be measured, the untuned schedule first
tuned.better                # the schedule to give, None where the untuned one stays
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.cost.predicting import Prediction
from tapestry.passes.triton.schedules.schedule import is_legal
from tapestry.tuning.jobs import Job
from tapestry.tuning.records import Measurement, Records

HOPELESS: Final = 4.0
"""What is predicted to take so many times what the best takes is not measured."""


@dataclass(eq=False)
class Tuned:
    """A job, what is predicted of its candidates, and what was measured."""

    job: Job
    predictions: Sequence[Prediction]
    records: Records
    key: str

    @property
    def best(self) -> Measurement | None:
        """The fastest measurement."""
        return self.records.best()

    @property
    def untuned(self) -> Measurement | None:
        """That of the schedule which the kernel has untuned."""
        return self.records.made.get(self.job.untuned)

    @property
    def gain(self) -> float | None:
        """How many times as fast as untuned the best one is; None where that is not known."""
        now, best = self.untuned, self.best
        if now is None or best is None or now.seconds is None or best.seconds is None:
            return None
        return now.seconds / best.seconds

    @property
    def better(self) -> Schedule | None:
        """The best schedule, if it was measured to be faster than the kernel is untuned."""
        gain, best = self.gain, self.best
        if gain is None or best is None or gain <= 1 or not is_legal(self.job.task, best.schedule):
            return None
        return best.schedule

    def left(self) -> Iterator[Schedule]:
        """What is to be measured, in order."""
        fitting = [one for one in self.predictions if not one.estimate.problems]
        limit = HOPELESS * fitting[0].estimate.seconds if fitting else 0.0
        worth = [one.schedule for one in fitting if one.estimate.seconds <= limit]
        for schedule in dict.fromkeys((self.job.untuned, self.job.default, *worth)):
            if schedule not in self.records.made:
                yield schedule
