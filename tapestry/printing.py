"""Modules as text whose functions take arguments of the names that they were written with.

    func.func @main(%w_2: ..., %w_1: ...)       # is printed so, and not as (%w: ..., %w_1: ...)

xDSL keeps names without a numeric suffix, and numbers values of one name anew when it prints: the
arguments of a program, which inputs are given by, would be others than before.
"""

from __future__ import annotations

import re
from io import StringIO
from typing import IO

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, NameLoc
from xdsl.ir import BlockArgument, SSAValue
from xdsl.printer import Printer
from xdsl.syntax_printer import SyntaxPrinter
from xdsl.targets.mlir import MLIRTarget

_NAME = re.compile(r"[A-Za-z_$.-][\w$.-]*")
_NUMBERED = re.compile(r"(.+)_(\d+)")


class NamedPrinter(Printer):
    """A printer that calls the arguments of functions as they were written."""

    def print_ssa_value(self, value: SSAValue) -> str:
        """Print the name of a value."""
        if isinstance(value, BlockArgument) and value not in self._ssa_values:
            function = value.block.parent_op()
            if isinstance(function, func.FuncOp):
                self._name_arguments(function)
        return super().print_ssa_value(value)

    def _name_arguments(self, function: func.FuncOp) -> None:
        """Name arguments in the scope of their function, before any value in it has a name."""
        for argument in function.args:
            name = argument.location.desc.data if isinstance(argument.location, NameLoc) else ""
            taken = {self._ssa_values.get(other) for other in function.args}
            if not _NAME.fullmatch(name) or name in taken:
                continue
            self._ssa_values[argument] = name
            numbered = _NUMBERED.fullmatch(name)
            base, count = (numbered[1], int(numbered[2])) if numbered else (name, 0)
            self.ssa_names[base] = max(self.ssa_names.get(base, 0), count + 1)


class _NamedSyntaxPrinter(NamedPrinter, SyntaxPrinter):
    """The same in colours."""


class NamedMLIR(MLIRTarget):
    """xDSL's target `mlir`, with the names of arguments."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write a module."""
        kind = _NamedSyntaxPrinter if self.syntax_highlight else NamedPrinter
        printer = kind(
            stream=output,
            print_generic_format=self.print_generic_format,
            print_properties_as_attributes=self.print_properties_as_attributes,
            print_debuginfo=self.print_debuginfo,
        )
        printer.print_op(module)
        printer.print_metadata(ctx.loaded_dialects)
        print("\n", file=output)


def text_of(module: ModuleOp) -> str:
    """What a file that holds the module says."""
    stream = StringIO()
    NamedPrinter(stream).print_op(module)
    return f"{stream.getvalue()}\n"
