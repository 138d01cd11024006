"""`tapestry equal`: load two programs, compare them, and say what was found.

code = compare_files(Request(Path("a.mlir"), Path("b.mlir"), Options()))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, ParseError

from tapestry.diagnostics import TapestryError
from tapestry.frontend import describe_error, load_module
from tapestry.proving.counterexample import Counterexample
from tapestry.proving.equality import Options, compare_programs, in_loom
from tapestry.proving.report import describe
from tapestry.runtime.program import arguments
from tapestry.tools._arrays import BFLOAT16
from tapestry.tools._files import check_writable, whole_file

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


def compare_files(request: Request) -> int:
    """Compare two files, print what was found, and return the exit code."""
    if request.counterexample is not None:
        check_writable(request.counterexample)
    try:
        modules = [in_loom(load_module(path)) for path in (request.first, request.second)]
        for module in modules:
            arguments(module)
    except (TapestryError, ParseError, DiagnosticException) as error:
        _say(Console(stderr=True), [describe_error(error)])
        return ILL_FORMED
    verdict = compare_programs(modules[0], modules[1], request.options)
    lines = describe(verdict)
    if request.counterexample is not None and verdict.counterexample is not None:
        lines += _write(request, modules, verdict.counterexample)
    _say(Console(), lines)
    return EXIT_CODES[verdict.answer]


def _say(console: Console, lines: Sequence[str]) -> None:
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def _write(request: Request, modules: Sequence[ModuleOp], found: Counterexample) -> list[str]:
    """Write the inputs that part the programs, and say how to run them."""
    assert request.counterexample is not None
    lines = ["replay with"]
    path = request.counterexample
    names = [[argument.name for argument in arguments(module)] for module in modules]
    for file, own in zip((request.first, request.second), names, strict=True):
        if own != names[0]:
            path = path.with_name(f"{path.stem}.second{path.suffix}")
        arrays = {name: draw.as_argument() for name, draw in zip(own, found.inputs, strict=True)}
        stored = {
            name: array.astype(np.float32) if array.dtype == BFLOAT16 else array
            for name, array in arrays.items()
        }
        with whole_file(path) as temporary, temporary.open("wb") as opened:
            np.savez(opened, allow_pickle=False, **stored)
        lines.append(f"  tapestry run {file} --inputs {path} --on reference")
    return lines
