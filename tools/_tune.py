"""`tapestry tune`: schedules of a program's kernels, by the cost model or by measurement.

$ tapestry tune model.mlir --predict --target h200
$ tapestry tune model.mlir --budget 60          # on a GPU; results are kept and used from then on
$ tapestry calibrate -o mine.yaml               # on a GPU: its own figures for the cost model
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table
from xdsl.context import Context

from tapestry.devices import find_spec
from tapestry.diagnostics import UsageError
from tapestry.files import check_writable
from tapestry.frontend import load_module, run_pipeline
from tapestry.passes.triton.cost.predicting import Prediction
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.schedule import default
from tapestry.passes.triton.schedules.tiling import Tiling
from tapestry.store import find_store
from tapestry.tools._pipelines import require_file, with_metakernels
from tapestry.tools._report import ProgressBar, table_console
from tapestry.tuning import Bench, Job, Measurement, Tuned, Tuner, jobs_of, predicted
from tapestry.tuning.calibration import CudaStopwatch, calibrate, write_spec
from tapestry.tuning.cuda import CudaBench
from tapestry.tuning.programs import find_bench
from tapestry.tuning.records import KIND

_NOTHING = "there is nothing to choose: each operation has a schedule already, or no kernel"


def predict_file(
    file: Path, pipeline: str, metakernels: Path | None, target: str, numerics: str, rows: int
) -> None:
    """Print what the cost model says of the candidates of each kernel."""
    if Path(target).suffix:
        require_file(Path(target))
    spec = find_spec(target)
    module = load_module(file)
    run_pipeline(module, with_metakernels(pipeline, metakernels))
    lowering = LoomToTriton(numerics=numerics)
    replace(lowering, device=target).split_folds(Context(), module)
    console = table_console()
    jobs = jobs_of(module, lowering)
    if not jobs:
        console.print(_NOTHING)
        return
    console.print(f"predicted for {spec.title}", highlight=False, markup=False)
    for job in jobs:
        console.print(_predictions(job, predicted(job, lowering, spec), rows))


def tune_file(
    file: Path,
    pipeline: str,
    metakernels: Path | None,
    target: str | None,
    numerics: str,
    seconds: float,
) -> None:
    """Measure candidates on the GPU for some time, and print the best of each kernel."""
    lowering = LoomToTriton(numerics=numerics)
    hint = "--predict ranks schedules by the cost model, without a GPU"
    bench, like = _bench(lowering, hint)
    spec = find_spec(target or like)
    module = load_module(file)
    run_pipeline(module, with_metakernels(pipeline, metakernels))
    replace(lowering, device=target or like).split_folds(Context(), module)
    with ProgressBar(Console(stderr=True), patience=0.0) as bar:
        done: list[Measurement] = []

        def watch(tuned: Tuned, measurement: Measurement, left: int) -> None:
            done.append(measurement)
            bar.total(len(done) + left)
            bar.step(f"{tuned.job.task.name}: {measurement.schedule}")

        tuner = Tuner(bench, spec, lowering, find_store(KIND), watch)
        found = tuner.tune(module, seconds)
    console = table_console()
    console.print(_results(found, bench.device) if found else _NOTHING)


def calibrate_file(output: Path, base: str | None) -> None:
    """Measure the GPU, and write a file that describes it."""
    check_writable(output)
    bench, like = _bench(LoomToTriton(), None)
    assert isinstance(bench, CudaBench)
    own = base or like
    spec, measured = calibrate(find_spec(own), CudaStopwatch(bench.torch))
    named = spec.model_copy(update={"name": output.stem, "title": bench.device})
    write_spec(output, named, measured, own)
    table_console().print(
        f"{len(measured)} figures of {bench.device} are in {output}", highlight=False
    )


def _bench(lowering: LoomToTriton, hint: str | None) -> tuple[Bench, str]:
    """The GPU that is there and the device that it is like; UsageError where there is none."""
    found = find_bench(lowering)
    if found is None:
        raise UsageError("there is no GPU to measure on", hint=hint)
    return found


def _predictions(job: Job, predictions: Sequence[Prediction], rows: int) -> Table:
    first = default(job.task, Tiling())
    lengths = ", ".join(f"{axis} {length}" for axis, length in job.task.lengths.items())
    many = f", {len(job.places)} times" if len(job.places) > 1 else ""
    title = f"{job.task.name} over {lengths}{many}"
    table = Table("schedule", title=escape(title), title_justify="left")
    for column in ("us", "bound by", "bytes", "flops", "at once", "waves", "registers", "shared"):
        table.add_column(column, justify="right")
    table.add_column("")
    for place, one in enumerate(predictions):
        is_default = one.schedule == first
        if place < rows or is_default:
            table.add_row(*_row(one), "default" if is_default else "")
    return table


def _row(one: Prediction) -> tuple[str, ...]:
    found = one.estimate
    return (
        escape(str(one.schedule)),
        f"{found.seconds * 1e6:.1f}",
        "does not fit: " + "; ".join(found.problems) if found.problems else found.bound,
        decimal(int(found.bytes)),
        f"{found.flops:.3g}",
        str(found.occupancy),
        f"{found.waves:.1f}",
        str(found.registers),
        f"{found.shared / 1024:.0f} KiB",
    )


def _results(found: Sequence[Tuned], device: str) -> Table:
    table = Table("kernel", "best schedule", title=f"measured on {escape(device)}")
    for column in ("us", "predicted us", "default us", "measured", "failed"):
        table.add_column(column, justify="right")
    for tuned in found:
        made, best = tuned.records.made, tuned.best
        now = made.get(tuned.default)
        known = {one.schedule: one.estimate.seconds for one in tuned.predictions}
        table.add_row(
            escape(tuned.job.task.name),
            "" if best is None else escape(str(best.schedule)),
            "" if best is None else _micros(best.seconds),
            "" if best is None else _micros(known.get(best.schedule)),
            "" if now is None else _micros(now.seconds) or escape(now.problem),
            str(len(made)),
            str(sum(one.seconds is None for one in made.values())),
        )
    return table


def _micros(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.1f}"
