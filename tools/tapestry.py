"""The `tapestry` command.

    tapestry run model.mlir --inputs in.npz --output out.npz --on triton --shards 4
    tapestry equal before.mlir after.mlir
    tapestry explain model.mlir

Exit codes: 0 done; 1 the program or its data is wrong, or `--compare` found a difference; 2 the
command is; 130 it was interrupted. Errors are one message on stderr. An output file appears whole
or not at all.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tapestry import __version__
from tapestry.tools._exits import exits
from tapestry.tools._import import commands as import_commands
from tapestry.tools._metakernel import Metakernels
from tapestry.tools._metakernel import commands as metakernel_commands

app = typer.Typer(
    name="tapestry",
    help="Run tensor programs: sharded, fused, as Triton kernels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(import_commands)
app.add_typer(metakernel_commands)


class On(StrEnum):
    """Where a program runs."""

    reference = "reference"
    numpy = "numpy"
    triton = "triton"


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tapestry {__version__}")
        raise typer.Exit


@app.callback()
def tapestry(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Say which version this is."
        ),
    ] = False,
) -> None:
    """Run tensor programs: sharded, fused, as Triton kernels."""


@app.command()
@exits
def run(
    file: Annotated[Path, typer.Argument(help="The program: weft, loom or StableHLO.")],
    inputs: Annotated[
        Path | None,
        typer.Option(
            help="An .npz file with one array per argument of @main, named like the argument "
            "without its %. An argument of bf16 takes float32, or uint16 bit patterns."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="The .npz file to write: out0, out1, ... (bf16 as float32)."),
    ] = None,
    on: Annotated[
        On,
        typer.Option(
            help="The executor: reference runs each operation whole, numpy runs each shard, "
            "triton runs kernels on a GPU, or in Triton's interpreter where there is none."
        ),
    ] = On.triton,
    pipeline: Annotated[
        str | None,
        typer.Option(
            "--pipeline",
            "-p",
            help="The passes to run, as for tapestry-opt; `default` is all of what is recommended. "
            "Without it: weft-apply for reference, default for the others.",
        ),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Split every operation into this many shards, unless the pipeline already shards.",
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(help="An .npz file of expected outputs; exit with 1 where they differ."),
    ] = None,
    rtol: Annotated[
        float | None,
        typer.Option(min=0.0, help="Relative tolerance of --compare; the default is the type's."),
    ] = None,
    atol: Annotated[
        float | None,
        typer.Option(min=0.0, help="Absolute tolerance of --compare; the default is the type's."),
    ] = None,
    dump: Annotated[
        Path | None,
        typer.Option(
            help="A folder to write to: the program after each pass, the kernels, the inputs, and "
            "a script that runs it all again."
        ),
    ] = None,
    metakernels: Metakernels = None,
    issues_json: Annotated[  # noqa: ARG001 - `exits` reads it
        bool,
        typer.Option(
            "--issues-json", help="Print what is wrong on stderr as a JSON list of issues."
        ),
    ] = False,
) -> None:
    """Run @main of FILE on arrays from an .npz file, and say what ran."""
    from tapestry.tools._run import Job, run_job

    agrees = run_job(
        Job(
            program=file,
            on=on.value,
            inputs=inputs,
            output=output,
            pipeline=pipeline,
            shards=shards,
            expected=compare,
            rtol=rtol,
            atol=atol,
            metakernels=metakernels,
            dump=dump,
        )
    )
    if not agrees:
        raise typer.Exit(1)


@app.command()
@exits
def inspect(
    file: Annotated[Path, typer.Argument(help="The program: weft, loom or StableHLO.")],
    pipeline: Annotated[
        str,
        typer.Option("--pipeline", "-p", help="The passes to run first, as for tapestry-opt."),
    ] = "weft-apply",
    metakernels: Metakernels = None,
) -> None:
    """Say what FILE computes, moves and stores, without running it."""
    from tapestry.tools._inspect import inspect_file

    inspect_file(file, pipeline, metakernels)


@app.command()
@exits
def explain(
    file: Annotated[Path, typer.Argument(help="The program: weft, loom or StableHLO.")],
    pipeline: Annotated[
        str,
        typer.Option("--pipeline", "-p", help="The passes to run first, as for tapestry-opt."),
    ] = "default",
    metakernels: Metakernels = None,
) -> None:
    """Say why FILE is in as many pieces as it is: what joined, what could not, what moves."""
    from tapestry.tools._explain import explain_file

    explain_file(file, pipeline, metakernels)


class Rounding(StrEnum):
    """What contractions may round, as `loom-to-triton` takes it."""

    strict = "strict"
    mixed = "mixed"
    fast = "fast"


@app.command()
@exits
def compile(  # noqa: A001 - the name of the command
    file: Annotated[Path, typer.Argument(help="The program: weft, loom or StableHLO.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder to write: kernels, cubins, a loader."),
    ],
    target: Annotated[
        list[str] | None,
        typer.Option(help="What to compile for: sm_90 (the default), sm_80, ...; may be repeated."),
    ] = None,
    pipeline: Annotated[
        str,
        typer.Option("--pipeline", "-p", help="The passes to run, as for tapestry-opt."),
    ] = "default",
    numerics: Annotated[
        Rounding, typer.Option(help="What products may round, as loom-to-triton takes it.")
    ] = Rounding.mixed,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes that compile; as many as cores unless given."),
    ] = None,
    metakernels: Metakernels = None,
) -> None:
    """Compile FILE to a folder that runs on a GPU without a compiler: kernels, cubins, a loader."""
    from tapestry.tools._compile import compile_file

    compile_file(file, output, target or ["sm_90"], pipeline, numerics.value, workers, metakernels)


@app.command()
@exits
def tune(
    file: Annotated[Path, typer.Argument(help="The program: weft, loom or StableHLO.")],
    budget: Annotated[float, typer.Option(min=0.0, help="Seconds to measure for.")] = 60.0,
    predict: Annotated[
        bool, typer.Option("--predict", help="Measure nothing: rank by the cost model.")
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(
            help="The device that predictions are for: a name as h200 (any other lists them), "
            "sm_90, or a YAML file. Without it, the GPU that is there, or h200."
        ),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Schedules that --predict shows.")] = 8,
    pipeline: Annotated[
        str,
        typer.Option("--pipeline", "-p", help="The passes to run first, as for tapestry-opt."),
    ] = "default",
    numerics: Annotated[
        Rounding, typer.Option(help="What contractions may round.")
    ] = Rounding.mixed,
    metakernels: Metakernels = None,
) -> None:
    """Find the fastest schedules of FILE's kernels, by measurement on a GPU or by the cost model.

    What is measured is kept, and used by programs that are compiled with `tune`.
    """
    from tapestry.tools._tune import predict_file, tune_file

    if predict:
        known = target or "h200"
        predict_file(file, pipeline, metakernels, known, numerics.value, rows)
    else:
        tune_file(file, pipeline, metakernels, target, numerics.value, budget)


@app.command()
@exits
def calibrate(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write, which --target takes.")
    ],
    base: Annotated[
        str | None,
        typer.Option(help="The device whose other figures to take; the one that is most like it."),
    ] = None,
) -> None:
    """Measure what the cost model has to know of the GPU that is there."""
    from tapestry.tools._tune import calibrate_file

    calibrate_file(output, base)


class Casts(StrEnum):
    """What a cast between floats means when programs are compared."""

    identity = "identity"
    round = "round"


@app.command()
@exits
def equal(
    first: Annotated[Path, typer.Argument(help="A program, in the weft or loom dialect.")],
    second: Annotated[Path, typer.Argument(help="Another program.")],
    seed: Annotated[
        int, typer.Option(min=0, help="The first seed that inputs are drawn with.")
    ] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds per class of inputs.")] = 3,
    casts: Annotated[
        Casts, typer.Option(help="Whether casts between floats keep the number, or really round.")
    ] = Casts.identity,
    counterexample: Annotated[
        Path | None,
        typer.Option(help="The .npz file to write inputs to on which the programs differ."),
    ] = None,
    metakernels: Metakernels = None,
    issues_json: Annotated[
        bool,
        typer.Option(
            "--issues-json", help="Print what is wrong on stderr as a JSON list of issues."
        ),
    ] = False,
) -> None:
    """Compare two programs as functions over the reals.

    Exits with 0 where they are equal as far as could be checked, 1 where they differ, 2 where a
    program is not well formed, 3 where nothing could be decided.
    """
    from tapestry.proving.pair import Options
    from tapestry.tools._equal import Request, compare_files
    from tapestry.tools._pipelines import require_folder

    folder = None
    if metakernels is not None:
        require_folder(metakernels)
        folder = str(metakernels)
    options = Options(seed, seeds, round_casts=casts is Casts.round, metakernels=folder)
    code = compare_files(Request(first, second, options, counterexample, issues_json))
    if code:
        raise typer.Exit(code)


rules = typer.Typer(help="Rewrite rules over metakernels.", no_args_is_help=True)
app.add_typer(rules, name="rules")


@rules.callback()
def rules_group() -> None:
    """Rewrite rules over metakernels."""


@rules.command()
@exits
def check(
    file: Annotated[
        str, typer.Argument(help="A file of rules, or the name of rules that come with Tapestry.")
    ],
    metakernels: Metakernels = None,
) -> None:
    """Check that every rule of FILE may be used: types and values stay, and where it ends.

    Exits with 1 where a rule does not hold; its message has the place and a counterexample.
    """
    from tapestry.tools._rules import check_rules

    if check_rules(file, None if metakernels is None else str(metakernels)):
        raise typer.Exit(1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code."""
    app(args=list(sys.argv[1:] if arguments is None else arguments), prog_name="tapestry")


if __name__ == "__main__":
    main()
