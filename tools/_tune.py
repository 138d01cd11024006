"""`tapestry tune`: schedules of a program's kernels, by the cost model or by measurement.

$ tapestry tune model.mlir --predict --target h200
$ tapestry tune model.mlir --budget 60          # on a GPU; results are kept and used from then on
$ tapestry calibrate -o mine.yaml               # on a GPU: its own figures for the cost model
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from tapestry.codegen.driver import LoadError, MemoryShortError
from tapestry.codegen.refusals import find_refusals
from tapestry.devices import find_spec
from tapestry.diagnostics import UsageError
from tapestry.files import check_writable
from tapestry.frontend import load_module, run_pipeline
from tapestry.passes.triton.cost.predicting import Prediction
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.triton.compiled import GpuError, gpu_errors
from tapestry.store import find_store
from tapestry.tools._pipelines import require_file, with_metakernels
from tapestry.tools._report import ProgressBar, table_console
from tapestry.tuning import (
    Bench,
    Job,
    Measurement,
    Tuned,
    Whole,
    jobs_of,
    predicted,
    settled,
)
from tapestry.tuning.calibration import CudaStopwatch, calibrate, write_spec
from tapestry.tuning.cuda import CudaBench
from tapestry.tuning.programs import find_bench, tuner_on
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
    lowering = LoomToTriton(numerics=numerics, device=target)
    console = table_console()
    jobs = jobs_of(settled(module, lowering), lowering, find_refusals(target))
    if not jobs:
        console.print(_NOTHING)
        return
    console.print(f"predicted for {spec.title}", highlight=False, markup=False)
    for job in jobs:
        console.print(_predictions(job, predicted(job, spec), rows))


def tune_file(
    file: Path,
    pipeline: str,
    metakernels: Path | None,
    target: str | None,
    numerics: str,
    seconds: float,
) -> None:
    """Measure candidates on the GPU for some time, and print the best of each kernel."""
    hint = "--predict ranks schedules by the cost model, without a GPU"
    bench, like = _bench(LoomToTriton(numerics=numerics), hint)
    spec = find_spec(target or like)
    module = load_module(file)
    run_pipeline(module, with_metakernels(pipeline, metakernels))
    with ProgressBar(Console(stderr=True), patience=0.0) as bar:
        done: list[Measurement] = []

        def watch(tuned: Tuned, measurement: Measurement, left: int) -> None:
            done.append(measurement)
            bar.total(len(done) + left)
            bar.step(f"{tuned.job.task.name}: {measurement.schedule}")

        tuner = tuner_on(bench, spec, find_store(KIND), watch)
        found = tuner.tune(module, seconds)
        whole = tuner.give(module, found)
    console = table_console()
    if not found:
        console.print(_NOTHING)
        return
    console.print(_results(found, bench.device))
    console.print(_said(whole, found), highlight=False)


def calibrate_file(output: Path, base: str | None) -> None:
    """Measure the GPU, and write a file that describes it."""
    check_writable(output)
    bench, like = _bench(LoomToTriton(), None)
    assert isinstance(bench, CudaBench)
    own = base or like
    try:
        with gpu_errors():
            spec, measured = calibrate(find_spec(own), CudaStopwatch(bench.torch))
    except MemoryShortError as error:
        hint = "probes take up to 8 GiB at once: free memory on the GPU"
        raise GpuError(f"the GPU cannot be measured: {error}", hint=hint) from None
    except LoadError as error:
        raise GpuError(f"the GPU cannot be measured: {error}") from None
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
    lengths = ", ".join(f"{axis} {length}" for axis, length in job.task.lengths.items())
    many = f", {len(job.places)} times" if len(job.places) > 1 else ""
    title = f"{job.task.name} over {lengths}{many}"
    table = Table("schedule", title=escape(title), title_justify="left")
    for column in ("us", "bound by", "bytes", "flops", "at once", "waves", "registers", "shared"):
        table.add_column(column, justify="right")
    table.add_column("")
    named = {job.default: "default", job.untuned: "untuned"}
    for place, one in enumerate(predictions):
        if place < rows or one.schedule in named:
            table.add_row(*_row(one), named.get(one.schedule, ""))
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
    for column in ("us", "predicted us", "untuned us", "measured", "failed"):
        table.add_column(column, justify="right")
    for tuned in found:
        made, best = tuned.records.made, tuned.best
        now = tuned.untuned
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


def _said(whole: Whole | None, found: Sequence[Tuned]) -> str:
    """What the whole program takes, and what becomes of it."""
    if whole is not None:
        taken = f"{_micros(whole.tuned)} us with schedules, {_micros(whole.untuned)} us untuned"
        return f"the program takes {taken}" + ("" if whole.given else ": it stays as it is")
    if all(tuned.better is None for tuned in found):
        return "nothing is faster than the kernels that the program has untuned"
    return "the whole program could not be measured, so it stays as it is"


def _micros(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.1f}"
