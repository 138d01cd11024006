"""Schedules by measurement: candidates of each kernel are run, and what is fastest is remembered.

    tuner = Tuner(bench, find_spec("h200"))
    found = tuner.tune(module, seconds=60)      # measure; every result is kept
    tuner.give(module, found)                   # have the program use what makes it faster
    give_best(module, bench.device, store, bench.lowering)      # later: use what was found

What is measured is an operation alone (`jobs.py`), of those that are the program's kernels untuned,
on a *bench* (`benches.py`): a GPU, or anything that builds programs and says how long they take.
The schedule that the kernel has untuned is always measured first, and a candidate has to give its
numbers. One that does not, or does not compile, or runs out of something, is a result like any
other. At last the whole program is measured with what was found and without.

Schedules change how fast a program is, never what it computes: results that are lost, or are of an
older version, cost time only.
"""

from tapestry.tuning.benches import Bench, Candidate
from tapestry.tuning.jobs import Job, jobs_of, predicted, settled
from tapestry.tuning.records import Measurement, Records, Whole
from tapestry.tuning.tuned import Tuned
from tapestry.tuning.tuner import Tuner, give_best

__all__ = [
    "Bench",
    "Candidate",
    "Job",
    "Measurement",
    "Records",
    "Tuned",
    "Tuner",
    "Whole",
    "give_best",
    "jobs_of",
    "predicted",
    "settled",
]
