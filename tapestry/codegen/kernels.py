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

USUAL_DEVICE = "sm_90"
"""The device that schedules are chosen for where none is named, and none is there."""


def kernel_source(module: ModuleOp, device: str = USUAL_DEVICE) -> str:
    """The source of the kernels of a module in loom, which stays as it is.

    Schedules are what the cost model takes for the fastest on the device (`none`: the default
    ones). Raises a TapestryError, located, for what has no kernel, UsageError for no device.
    """
    lowered = module.clone()
    LoomToTriton(device=device).apply(Context(), lowered)
    return print_module(lowered).source
