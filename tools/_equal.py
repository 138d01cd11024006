"""`tapestry equal`: load two programs, compare them, and say what was found.

code = compare_files(Request(Path("a.mlir"), Path("b.mlir"), Options()))
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
from rich.console import Console
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.printer import Printer
from xdsl.utils.exceptions import DiagnosticException, ParseError

from tapestry.diagnostics import TapestryError
from tapestry.files import check_writable, whole_file
from tapestry.frontend import describe_error, issues_json_text, load_module, parse_text
from tapestry.proving.counterexample import Counterexample
from tapestry.proving.equality import compare_programs, in_loom
from tapestry.proving.inputs import Draw
from tapestry.proving.pair import Options
from tapestry.proving.report import describe
from tapestry.runtime.fitting import EXTENDED
from tapestry.runtime.program import arguments, main_function

EXIT_CODES = {"certified": 0, "numeric": 0, "differs": 1, "undecided": 3}

ILL_FORMED = 2
"""The exit code for a program that is not well formed."""


@dataclass(frozen=True)
class Request:
    """What `tapestry equal` was asked."""

    first: Path
    second: Path
    options: Options
    counterexample: Path | None = None
    issues_json: bool = False

    def complain(self, errors: Sequence[BaseException], preamble: str = "") -> None:
        """Say on stderr what is wrong: to people, or as a JSON list of issues."""
        if self.issues_json:
            lines = [issues_json_text(*errors)]
        else:
            lines = [f"{preamble}{describe_error(error)}" for error in errors]
        _say(Console(stderr=True), lines)


def compare_files(request: Request) -> int:
    """Compare two files, print what was found, and return the exit code."""
    if request.counterexample is not None:
        check_writable(request.counterexample, request.first, request.second)
    modules: list[ModuleOp] = []
    wrong: list[BaseException] = []
    for path in (request.first, request.second):
        try:
            modules.append(in_loom(load_module(path), request.options.metakernels))
            arguments(modules[-1])
        except (TapestryError, ParseError, DiagnosticException) as error:
            wrong.append(error)
    if wrong:
        request.complain(wrong)
        return ILL_FORMED
    try:
        verdict = compare_programs(modules[0], modules[1], request.options)
    except (TapestryError, ParseError, DiagnosticException, MemoryError) as error:
        request.complain([error], "undecided: they cannot be compared: ")
        return EXIT_CODES["undecided"]
    except Exception:  # noqa: BLE001 - not even a mistake of ours may look like a difference
        traceback.print_exc()
        return EXIT_CODES["undecided"]
    lines = describe(verdict)
    if request.counterexample is not None and verdict.counterexample is not None:
        lines += _write(request, modules, verdict.counterexample)
    _say(Console(), lines)
    return EXIT_CODES[verdict.answer]


def _say(console: Console, lines: Sequence[str]) -> None:
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def _write(request: Request, modules: Sequence[ModuleOp], found: Counterexample) -> list[str]:
    """Write the inputs that part the programs, and say how to run them.

    Programs that were made smaller are written beside the inputs.
    """
    assert request.counterexample is not None
    path = request.counterexample
    lines = ["replay with"]
    first_names: list[str] | None = None
    given = zip(
        ("first", "second"), (request.first, request.second), modules, found.programs, strict=True
    )
    for which, file, module, program in given:
        if [a.type for a in arguments(program)] != [a.type for a in arguments(module)]:
            file = path.with_suffix(f".{which}.mlir")
            text = _text(program)
            program = parse_text(text)  # its arguments are named as written
            with whole_file(file) as temporary:
                temporary.write_text(text)
        names = [argument.name for argument in arguments(program)]
        inputs = path
        if first_names is not None and names != first_names:
            inputs = path.with_suffix(f".{which}{path.suffix}")
        first_names = first_names or names
        if inputs != path or which == "first":
            _write_inputs(inputs, dict(zip(names, found.inputs, strict=True)))
        lines.append(f"  tapestry run {file} --inputs {inputs} --on reference")
    return lines


def _text(module: ModuleOp) -> str:
    for value, argument in zip(main_function(module).args, arguments(module), strict=True):
        if SSAValue.is_valid_name(argument.name):
            value.name_hint = argument.name
    stream = StringIO()
    Printer(stream).print_op(module)
    return f"{stream.getvalue()}\n"


def _write_inputs(path: Path, inputs: Mapping[str, Draw]) -> None:
    arrays = {name: draw.as_argument() for name, draw in inputs.items()}
    stored = {
        name: array.astype(np.float32) if array.dtype in EXTENDED else array
        for name, array in arrays.items()
    }
    with whole_file(path) as temporary, temporary.open("wb") as opened:
        np.savez(opened, allow_pickle=False, **stored)
