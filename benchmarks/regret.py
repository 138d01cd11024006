"""What choosing schedules by the cost model costs, by the times of `results/schedules_*.json`.

    python benchmarks/regret.py
    python benchmarks/regret.py --case softmax --schedules 10
    python benchmarks/regret.py benchmarks/results/schedules_h200.json --device h200

Needs no GPU. For each kernel whose schedules were timed: how long what the model takes for the
fastest of them took, over the least time (1.00 is the best choice); how much the order by the
model is that of the times (rank correlation); by what factor predictions are off. `--schedules`
prints the fastest ones of each kernel with what the model says of them.

Beside that is what `loom-to-triton` picks for the device, of all candidates: the default, unless
another is faster by its margin and surely fits. What of it was not timed has no regret, but a
prediction: the geometric mean is over the others.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from _kernel_cases import CASES
from _kernel_compiling import loom_of
from rich.console import Console
from rich.table import Table
from xdsl.dialects.builtin import ModuleOp

from tapestry.devices import DeviceSpec, find_spec
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.cost.predicting import Prediction
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.tuning import Job, jobs_of, settled
from tapestry.tuning.jobs import predicted
from tapestry.tuning.regret import Regret, geometric_mean, regret_of

MEASURED = Path(__file__).parent / "results" / "schedules_h100.json"


@dataclass(frozen=True)
class Judged:
    """A kernel with what was measured of it, what is predicted, and what that makes."""

    case: str
    seconds: Mapping[Schedule, float]
    predictions: Sequence[Prediction]
    regret: Regret
    job: Job
    spec: DeviceSpec

    @cached_property
    def picked(self) -> Prediction:
        """What is picked where the kernel is made for the device, and what is predicted of it."""
        (found,) = predicted(self.job, self.spec, [self.job.untuned])
        return found

    @property
    def picked_seconds(self) -> float | None:
        """What the kernel takes as it is made for the device; None where that was not timed."""
        return self.seconds.get(self.picked.schedule)

    @property
    def picked_regret(self) -> float | None:
        """The same over the least time that was measured."""
        taken = self.picked_seconds
        return None if taken is None else taken / self.seconds[self.regret.best]


def judged(table: Mapping[str, Any], device: str, case: str = "") -> Iterator[Judged]:
    """The kernels of a table, of cases whose name starts with `case`."""
    known, spec = {one.name: one for one in CASES}, find_spec(device)
    for row in table["kernels"]:
        if row["case"].startswith(case):
            lowering = LoomToTriton(numerics=row["numerics"], device=device)
            seconds = {Schedule.parse(text): us * 1e-6 for text, us in row["microseconds"].items()}
            job = _timed(loom_of(known[row["case"]]), lowering, row["kernel"], seconds)
            found = predicted(job, spec, seconds)
            yield Judged(row["case"], seconds, found, regret_of(found, seconds), job, spec)


def _timed(
    module: ModuleOp, lowering: LoomToTriton, kernel: str, schedules: Iterable[Schedule]
) -> Job:
    """The job whose schedules were timed: of what a program is settled as, or of itself."""
    axes = list(next(iter(schedules)).tile)
    every = [
        job for program in (settled(module, lowering), module) for job in jobs_of(program, lowering)
    ]
    named = [job for job in every if job.task.name == kernel]
    # One of a product's own has its axes in another order than one of two beside each other.
    for alike in (list, set):
        for job in named:
            if alike(job.task.lengths) == alike(axes):
                return job
    sys.exit(f"no kernel @{kernel} over {', '.join(axes)} is made for {lowering.device} any more")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where the table has no such case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path, nargs="?", default=MEASURED)
    parser.add_argument("--device", default="h100", help="whose figures the model takes")
    parser.add_argument("--case", default="", help="what names of cases start with")
    parser.add_argument("--schedules", type=int, default=0, help="how many of each are printed")
    options = parser.parse_args(arguments)
    measured = json.loads(options.table.read_text())
    found = list(judged(measured, options.device, options.case))
    console = Console()
    if not found:
        console.print(f"no case starts with {options.case!r}")
        return 1
    console.print(_table(found))
    for one in found if options.schedules else ():
        console.print(_schedules(one, options.schedules))
    regrets = [one.regret.regret for one in found]
    console.print(
        f"{sum(one.regret.count for one in found)} schedules on {measured['gpu']}: "
        f"regret {geometric_mean(regrets):.3f} on the geometric mean, {max(regrets):.2f} at worst"
    )
    timed = [one.picked_regret for one in found if one.picked_regret is not None]
    if timed:
        console.print(
            f"{len(timed)} of {len(found)} picked schedules were timed: regret "
            f"{geometric_mean(timed):.3f} on the geometric mean, {max(timed):.2f} at worst"
        )
    return 0


def _table(found: Sequence[Judged]) -> Table:
    table = Table()
    table.add_column("case", no_wrap=True)
    for column in ("schedules", "best us", "model's us", "regret", "picked us", "regret"):
        table.add_column(column, justify="right")
    for column in ("order", "off", "spread"):
        table.add_column(column, justify="right")
    for one in found:
        own = one.regret
        table.add_row(
            one.case,
            str(own.count),
            f"{one.seconds[own.best] * 1e6:.1f}",
            f"{one.seconds[own.chosen] * 1e6:.1f}",
            f"{own.regret:.2f}",
            _picked_us(one),
            "" if one.picked_regret is None else f"{one.picked_regret:.2f}",
            f"{own.order:.2f}",
            f"{own.off:.2f}",
            f"{own.spread:.2f}",
        )
    return table


def _picked_us(one: Judged) -> str:
    """What the picked schedule took; what is predicted, in brackets, where it was not timed."""
    taken = one.picked_seconds
    if taken is None:
        return f"({one.picked.estimate.seconds * 1e6:.1f})"
    return f"{taken * 1e6:.1f}"


def _schedules(one: Judged, count: int) -> Table:
    table = Table(title=f"{one.case}: picked is {one.picked.schedule}", title_justify="left")
    for column in ("measured us", "predicted us", "at once", "registers"):
        table.add_column(column, justify="right")
    for column in ("bound by", "schedule"):
        table.add_column(column)
    for prediction in sorted(one.predictions, key=lambda p: one.seconds[p.schedule])[:count]:
        estimate = prediction.estimate
        table.add_row(
            f"{one.seconds[prediction.schedule] * 1e6:.1f}",
            f"{estimate.seconds * 1e6:.1f}",
            str(estimate.occupancy),
            str(estimate.registers),
            estimate.bound,
            str(prediction.schedule),
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
