"""Schedules by measurement: candidates of each kernel are run, and what is fastest is remembered.

    found = Tuner(bench, lowering).tune(module, seconds=60)     # measure; every result is kept
    give_best(module, bench.device, lowering)                   # later: use what was found

What is measured is an operation alone (`jobs.py`), on a *bench* (`benches.py`): a GPU, or anything
that builds programs and says how long they take. The default schedule is always measured first, and
a candidate has to give its numbers. One that does not, or does not compile, or runs out of
something, is a result like any other.

Schedules change how fast a program is, never what it computes: results that are lost, or are of an
older version, cost time only.
"""

from tapestry.tuning.benches import Bench, Candidate
from tapestry.tuning.jobs import Job, jobs_of, predicted
from tapestry.tuning.records import Measurement, Records
from tapestry.tuning.tuner import Tuned, Tuner, give_best

__all__ = [
    "Bench",
    "Candidate",
    "Job",
    "Measurement",
    "Records",
    "Tuned",
    "Tuner",
    "give_best",
    "jobs_of",
    "predicted",
]
