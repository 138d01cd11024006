"""From a loom program to the Python module of its Triton kernels, in one step.

>>> from tapestry.frontend import parse_module
>>> kind = "!loom.tensor<[0] : [4], f32>"
>>> text = f"func.func @main(%x: {kind}) -> {kind} {{ func.return %x : {kind} }}"
>>> "def launch(" in kernel_source(parse_module(text))
True
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tapestry.codegen.module_printer import print_module
from tapestry.passes.triton.loom_to_triton import LoomToTriton


def kernel_source(module: ModuleOp) -> str:
    """The source of the kernels of a module in loom, which stays as it is.

    Raises a TapestryError, located, for what has no kernel.
    """
    lowered = module.clone()
    LoomToTriton().apply(Context(), lowered)
    return print_module(lowered).source
