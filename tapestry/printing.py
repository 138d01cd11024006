"""Modules as text whose functions take arguments of the names that they were written with.

    func.func @main(%w_2: ..., %w_1: ...)       # is printed so, and not as (%w: ..., %w_1: ...)

xDSL keeps names without a numeric suffix, and numbers values of one name anew when it prints: the
arguments of a program, which inputs are given by, would be others than before.
"""

from __future__ import annotations

import re
from io import StringIO
from typing import IO, Any, cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, NameLoc
from xdsl.ir import SSAValue
from xdsl.printer import Printer
from xdsl.syntax_printer import SyntaxPrinter
from xdsl.targets.mlir import MLIRTarget

_NAME = re.compile(r"[A-Za-z_$.-][\w$.-]*")
_NUMBERED = re.compile(r"(.+)_(\d+)")


class NamedMLIR(MLIRTarget):
    """xDSL's target `mlir`, with the names of arguments."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write a module."""
        kind = SyntaxPrinter if self.syntax_highlight else Printer
        printer = kind(
            stream=output,
            print_generic_format=self.print_generic_format,
            print_properties_as_attributes=self.print_properties_as_attributes,
            print_debuginfo=self.print_debuginfo,
        )
        keep_names(printer, module)
        printer.print_op(module)
        printer.print_metadata(ctx.loaded_dialects)
        print("\n", file=output)


def text_of(module: ModuleOp) -> str:
    """What a file that holds the module says."""
    stream = StringIO()
    printer = Printer(stream)
    keep_names(printer, module)
    printer.print_op(module)
    return f"{stream.getvalue()}\n"


def keep_names(printer: Printer, module: ModuleOp) -> None:
    """Have a printer call the arguments of a module's functions as they were written."""
    names: dict[SSAValue, str] = cast(Any, printer)._ssa_values  # noqa: SLF001 (there is no other)
    for function in module.body.block.ops:
        if not isinstance(function, func.FuncOp) or not function.body.blocks:
            continue
        for argument in function.body.block.args:
            name = argument.location.desc.data if isinstance(argument.location, NameLoc) else ""
            if not _NAME.fullmatch(name) or name in (names[a] for a in function.args if a in names):
                continue
            names[argument] = name
            numbered = _NUMBERED.fullmatch(name)
            base, count = (numbered[1], int(numbered[2])) if numbered else (name, 0)
            printer.ssa_names[base] = max(printer.ssa_names.get(base, 0), count + 1)
