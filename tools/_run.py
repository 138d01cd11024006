"""`tapestry run`: load a program, apply a pipeline, run it, write, compare and report.

agrees = run_job(Job(Path("model.mlir"), on="numpy", inputs=Path("in.npz"), shards=4))
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from xdsl.utils.arg_spec import ArgSpec

from tapestry.caching import lowered
from tapestry.dumping import Dump
from tapestry.files import check_writable
from tapestry.frontend import load_module
from tapestry.movement_log import log_plan
from tapestry.pipelines import DEFAULT_PIPELINE, pass_specs
from tapestry.runtime.executor import find_executor
from tapestry.runtime.fitting import fit_inputs
from tapestry.tools._arrays import read_arrays, write_outputs
from tapestry.tools._compare import Tolerance, compare_all
from tapestry.tools._pipelines import APPLY, with_metakernels
from tapestry.tools._report import ProgressBar, agreement_line, records_table, table_console

SHARD = "loom-shard"


@dataclass(frozen=True)
class Job:
    """What one `tapestry run` was asked to do; the fields are its options."""

    program: Path
    on: str
    inputs: Path | None = None
    output: Path | None = None
    pipeline: str | None = None
    shards: int | None = None
    expected: Path | None = None
    rtol: float | None = None
    atol: float | None = None
    metakernels: Path | None = None
    dump: Path | None = None

    def passes(self) -> str:
        """The pipeline given, or the executor's own, with `shards` and `metakernels`.

        `shards` adds nothing to a pipeline that shards already. Raises UsageError for a pipeline
        that is wrong, and for `metakernels` where nothing applies them.
        """
        text = self.pipeline
        if text is None:
            text = APPLY if self.on == "reference" else DEFAULT_PIPELINE
        text = with_metakernels(text, self.metakernels)
        passes = pass_specs(text)
        if self.shards is not None and all(one.name != SHARD for one in passes):
            passes.append(ArgSpec(SHARD, {"shards": (self.shards,)}))
        return ",".join(str(one) for one in passes)


def run_job(job: Job) -> bool:
    """Do the job; whether the outputs agree with those expected (True when none are).

    Everything that can be wrong is looked at before the program runs. The table of what ran and the
    agreement go to stdout, the progress bar to stderr.
    """
    if job.output is not None:
        check_writable(job.output, job.program, job.inputs, job.expected)
    executor = find_executor(job.on)
    passes = job.passes()
    module = load_module(job.program)
    inputs = fit_inputs(module, {} if job.inputs is None else read_arrays(job.inputs))
    expected = None if job.expected is None else read_arrays(job.expected)
    dump = None if job.dump is None else Dump(job.dump)
    module = lowered(module, passes, dump=dump)
    log_plan(module)
    if dump is not None:
        dump.finish(module, on=job.on, pipeline=passes)
        dump.inputs(inputs)
    with ProgressBar(Console(stderr=True)) as watch:
        result = executor.run(module, inputs, watch)
    if job.output is not None:
        write_outputs(job.output, result.outputs)
    console = table_console()
    console.print(records_table(result.records, "kernel" if job.on == "triton" else "operation"))
    if expected is None:
        return True
    tolerance = Tolerance(job.rtol, job.atol)
    agreements = compare_all(result.outputs, expected, str(job.expected), tolerance)
    for agreement in agreements:
        console.print(agreement_line(agreement), highlight=False, markup=False, soft_wrap=True)
    return all(agreement.agrees for agreement in agreements)
