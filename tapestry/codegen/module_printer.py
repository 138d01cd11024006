"""A module of Triton kernels and a host as one Python file that stands alone.

It needs only Triton, and PyTorch to allocate (or an `allocate` of the caller's). A user can read it,
change block sizes in one place, and run it:

    y = launch(x, w, b)

`print_module` makes the text, and lists what ahead-of-time compilation needs to know of its kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue

from tapestry.codegen.expressions import dtype_name, number
from tapestry.codegen.helpers import HELPERS, sources
from tapestry.codegen.kernel_printer import Shared, fresh, print_kernel
from tapestry.codegen.specs import KernelSpec, spec_of
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import triton
from tapestry.locations import location_of

_HEADER = '''\
"""Triton kernels, and `{entry}`, which runs them in order.

Written by Tapestry for Triton 3.6 or newer. Buffers are row-major and contiguous. `{entry}` allocates
with PyTorch, or by an `allocate(shape, dtype, fill)` that it is given.
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

ENTRY = "launch"
"""What the host function @main is called in the printed module."""

_RESERVED = frozenset({ENTRY, "allocate", "dict", "grid", "tl", "torch", "torch_allocate", "triton"})

_INDENT = "    "


@dataclass(frozen=True)
class PrintedModule:
    """A module's Python source, and its kernels as they are compiled."""

    source: str
    kernels: tuple[KernelSpec, ...]


def print_module(module: ModuleOp) -> PrintedModule:
    """The Python source of a module that `loom-to-triton` made.

    Raises InvalidProgramError for an operation that is not of the triton floor.
    """
    kernels = [op for op in module.body.block.ops if isinstance(op, triton.KernelOp)]
    names = {*_RESERVED, *HELPERS, *(kernel.sym_name.data for kernel in kernels)}
    shared = Shared(names)
    printed = [print_kernel(kernel, shared) for kernel in kernels]
    host = _HostPrinter(shared.names)
    functions: list[str] = []
    for kernel in kernels:
        host.configure(kernel)
    for op in module.body.block.ops:
        match op:
            case triton.KernelOp():
                pass
            case func.FuncOp():
                functions.append(host.function(op))
            case _:
                raise _not_printable(op)
    combiners = [
        f"@triton.jit\ndef {name}{text}\n" for text, name in shared.combiners.items()
    ]
    parts = [
        *sources(shared.helpers),
        *combiners,
        *(kernel.text for kernel in printed),
        host.configuration(),
        _ALLOCATE,
        *functions,
    ]
    text = "\n\n".join([_HEADER.format(entry=ENTRY), *(part for part in parts if part)])
    specs = [spec_of(k, p.arguments) for k, p in zip(kernels, printed, strict=True)]
    return PrintedModule(text, tuple(specs))


def _not_printable(op: Operation) -> InvalidProgramError:
    dialect = op.name.partition(".")[0]
    hint = "run loom-to-triton first" if dialect in ("loom", "weft") else None
    return InvalidProgramError(
        f"{op.name} cannot be printed as Triton", location=location_of(op), hint=hint
    )


class _HostPrinter:
    """Prints host functions, and the tables that they use."""

    def __init__(self, names: set[str]) -> None:
        self._names = names
        self._configurations: dict[str, str] = {}
        self._tables: list[str] = []
        self._lines: list[str] = []

    def configure(self, kernel: triton.KernelOp) -> None:
        """Name the block sizes and compile options of a kernel."""
        name = fresh(kernel.sym_name.data.upper(), self._names)
        options = {
            **kernel.block_sizes,
            "num_warps": kernel.warps,
            "num_stages": kernel.stages,
        }
        values = ", ".join(f"{option}={value}" for option, value in options.items())
        self._lines.append(f"{name} = dict({values}, enable_fp_fusion=False)")
        self._configurations[kernel.sym_name.data] = name

    def configuration(self) -> str:
        """Every table."""
        return "\n".join([*self._lines, *self._tables]) + "\n" if self._lines else ""

    def function(self, function: func.FuncOp) -> str:
        """A host function as Python."""
        names = set(self._names)
        shown: dict[SSAValue, str] = {}
        for number_, argument in enumerate(function.args):
            shown[argument] = fresh(argument.name_hint or f"arg{number_}", names)
        lines: list[str] = []
        for op in function.body.block.ops:
            match op:
                case triton.AllocateOp():
                    shown[op.result] = fresh(op.result.name_hint or "buffer", names)
                    lines.append(f"{shown[op.result]} = {_allocation(op)}")
                case triton.AliasOp():
                    shown[op.result] = fresh(op.result.name_hint or "alias", names)
                    shape = _shape(op.result)
                    lines.append(f"{shown[op.result]} = {shown[op.source]}.reshape({shape})")
                case triton.LaunchOp():
                    lines += self._launch(op, [shown[buffer] for buffer in op.buffers])
                case func.ReturnOp():
                    returned = ", ".join(shown[value] for value in op.operands)
                    lines.append(f"return {returned}" if returned else "return ()")
                case _:
                    raise _not_printable(op)
        name = ENTRY if function.sym_name.data == "main" else function.sym_name.data
        arguments = ", ".join([*(shown[a] for a in function.args), "*"])
        summary = _summary(function, shown)
        body = "\n".join(_INDENT + line for line in (summary, *lines))
        return f"def {name}({arguments}, allocate=torch_allocate):\n{body}\n"

    def _launch(self, op: triton.LaunchOp, buffers: list[str]) -> list[str]:
        configuration = self._configurations[op.kernel_name]
        bounds = [f"{name}_{end}" for name in op.bound_names for end in ("start", "end")]
        arguments = ", ".join([*buffers, *bounds, f"**{configuration}"])
        lines = [
            f"grid = ({_grid(op, configuration)},)",
            f"{op.kernel_name}[grid]({arguments})",
        ]
        comment = [] if op.comment is None else [f"# {op.comment.data}"]
        if not bounds:
            return [*comment, *lines]
        table = fresh(f"{configuration}_SHARDS", self._names)
        rows = "\n".join(f"{_INDENT}({', '.join(map(str, row))})," for row in op.rows)
        self._tables.append(f"{table} = (\n{_INDENT}# {', '.join(bounds)}\n{rows}\n)")
        loop = f"for {', '.join(bounds)} in {table}:"
        return [*comment, loop, *(_INDENT + line for line in lines)]


def _grid(op: triton.LaunchOp, configuration: str) -> str:
    """How many programs a launch runs."""
    factors: list[str] = []
    for axis in op.grid.data:
        lengths = [
            f"({extent}_end - {extent}_start)" if isinstance(extent, str) else str(extent)
            for extent in axis.extents
        ]
        if axis.block is None:
            factors += lengths
            continue
        length = " * ".join(lengths)
        if len(lengths) == 1:
            length = length.removeprefix("(").removesuffix(")")
        factors.append(f'triton.cdiv({length}, {configuration}["{axis.block}"])')
    return " * ".join(factor for factor in factors if factor != "1") or "1"


def _shape(value: SSAValue) -> str:
    assert isinstance(value.type, MemRefType)
    sizes = ", ".join(map(str, value.type.get_shape()))
    return f"({sizes},)" if value.type.get_num_dims() == 1 else f"({sizes})"


def _allocation(op: triton.AllocateOp) -> str:
    assert isinstance(op.result.type, MemRefType)
    fill = "" if op.fill is None else f", {number(op.fill)}"
    element = dtype_name(op.result.type.get_element_type())
    return f'allocate({_shape(op.result)}, "{element}"{fill})'


def _summary(function: func.FuncOp, shown: dict[SSAValue, str]) -> str:
    """The docstring: what the function takes and gives."""

    def kind(value: SSAValue) -> str:
        assert isinstance(value.type, MemRefType)
        sizes = ", ".join(map(str, value.type.get_shape()))
        return f"{dtype_name(value.type.get_element_type())} [{sizes}]"

    taken = ", ".join(f"{shown[a]}: {kind(a)}" for a in function.args)
    end = function.body.block.last_op
    given = ", ".join(kind(value) for value in end.operands) if end is not None else ""
    return f'"""Takes {taken or "nothing"}; gives {given or "nothing"}."""'
