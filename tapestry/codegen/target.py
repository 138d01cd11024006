"""`tapestry-opt -t triton`: print a module as Python.

tapestry-opt model.mlir -p weft-apply,loom-simplify,loom-fuse,loom-to-triton -t triton
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from tapestry.codegen.module_printer import print_module


@dataclass(frozen=True)
class TritonTarget(Target):
    """Prints the Python module that a lowered program is."""

    name = "triton"

    @override
    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the module's source."""
        output.write(print_module(module).source)
