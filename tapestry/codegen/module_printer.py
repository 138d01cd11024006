"""A module of Triton kernels and a host as one Python file that stands alone.

It needs only Triton, and PyTorch to allocate (or an `allocate` of the caller's). A user can read
it, change block sizes in one place, and run it:

    y = launch(x, w, b)

`print_module` makes the text, and lists what ahead-of-time compilation needs to know of its
kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tapestry.codegen.helpers import HELPERS, sources
from tapestry.codegen.host_printer import ENTRY, HostPrinter, bound_names, not_printable
from tapestry.codegen.kernel_printer import print_kernel
from tapestry.codegen.specs import KernelSpec, spec_of
from tapestry.codegen.vocabulary import Shared, fresh
from tapestry.dialects import triton

_HEADER = '''\
"""Triton kernels, and `{entry}`, which runs them in order.

Written by Tapestry for Triton 3.6 or newer. Buffers are row-major and contiguous. `{entry}`
allocates with PyTorch, or by an `allocate(shape, dtype, fill)` that it is given.
"""

import triton
import triton.language as tl
'''

_ALLOCATE = '''\
def torch_allocate(shape, dtype, fill=None):
    """A new tensor on the GPU, every cell `fill` when that is given."""
    import torch

    made = torch.empty(shape, dtype=getattr(torch, dtype), device="cuda")
    return made if fill is None else made.fill_(fill)
'''

_UPLOAD = '''\
def torch_upload(data, shape, dtype):
    """A tensor on the GPU with cells from bytes, little-endian and row-major."""
    import torch

    cells = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    return cells.view(getattr(torch, dtype)).reshape(shape).cuda()
'''

_RESERVE = '''\
def reserve(size, alignment, stream):
    """Memory on the GPU for the tensor descriptors that kernels make."""
    import torch

    return torch.empty(size, dtype=torch.int8, device="cuda")
'''

_READ_ENTRY = '''\
def read_entry(folder, path, entry):
    """The bytes of an array of an .npz file."""
    import os

    import numpy

    with numpy.load(os.path.join(folder, path), allow_pickle=False) as arrays:
        return numpy.ascontiguousarray(arrays[entry]).tobytes()
'''

_RESERVED = frozenset(
    {ENTRY, "allocate", "dict", "float", "getattr", "grid", "range", "tl", "torch"}
    | {
        "box",
        "bytes",
        "externals",
        "folder",
        "read_entry",
        "reserve",
        "torch_allocate",
        "torch_upload",
        "triton",
        "upload",
    }
    | set(HELPERS)
)
"""Names that a printed module uses itself."""


@dataclass(frozen=True)
class PrintedModule:
    """A module's Python source, and its kernels, in order, as they are compiled."""

    source: str
    kernels: tuple[KernelSpec, ...]


def print_module(module: ModuleOp) -> PrintedModule:
    """The Python source of a module that `loom-to-triton` made.

    Raises InvalidProgramError for an operation that is not of the triton floor.
    """
    kernels = [op for op in module.body.block.ops if isinstance(op, triton.KernelOp)]
    shared = Shared(set(_RESERVED))
    # The host's loops over shards have variables of these names.
    taken = shared.names.union(
        *(bound_names(op) for op in module.walk() if isinstance(op, triton.LaunchOp))
    )
    functions = {k.sym_name.data: fresh(k.sym_name.data, taken) for k in kernels}
    shared.names.update(functions.values())
    shared.kernels.update(functions.values())
    printed = [print_kernel(k, functions[k.sym_name.data], shared) for k in kernels]
    host = HostPrinter(shared.names, functions)
    for kernel in kernels:
        host.configure(kernel)
    hosts: list[str] = []
    for op in module.body.block.ops:
        match op:
            case triton.KernelOp():
                pass
            case func.FuncOp():
                hosts.append(host.function(op))
            case _:
                raise not_printable(op)
    constants = [op for op in module.walk() if isinstance(op, triton.ConstantOp)]
    hosting = [
        host.tables(),
        _ALLOCATE,
        _UPLOAD if constants else "",
        _RESERVE if host.describes else "",
        _READ_ENTRY if any(op.path is not None for op in constants) else "",
        *hosts,
    ]
    text = _joined(
        _HEADER.format(entry=ENTRY),
        *_called(shared),
        *(kernel.text for kernel in printed),
        *hosting,
    )
    launches = [op for op in module.walk() if isinstance(op, triton.LaunchOp)]
    specs = [
        spec_of(op, kernel.name, kernel.arguments, _launches_of(op, launches))
        for op, kernel in zip(kernels, printed, strict=True)
    ]
    return PrintedModule(text, tuple(specs))


def print_alone(kernel: triton.KernelOp, launches: Sequence[triton.LaunchOp]) -> PrintedModule:
    """A module of one kernel without a host: what it is compiled from, if nothing has its name."""
    taken = set(_RESERVED).union(*map(bound_names, launches))
    name = fresh(kernel.sym_name.data, taken)
    shared = Shared({*_RESERVED, name}, {name})
    printed = print_kernel(kernel, name, shared)
    text = _joined(_HEADER.format(entry=ENTRY), *_called(shared), printed.text)
    return PrintedModule(text, (spec_of(kernel, name, printed.arguments, launches),))


def _called(shared: Shared) -> list[str]:
    """The functions that kernels call."""
    combiners = [f"@triton.jit\ndef {name}{text}\n" for text, name in shared.combiners.items()]
    return [*sources(shared.helpers), *combiners]


def _launches_of(
    kernel: triton.KernelOp, launches: Sequence[triton.LaunchOp]
) -> list[triton.LaunchOp]:
    return [launch for launch in launches if launch.kernel_name == kernel.sym_name.data]


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
