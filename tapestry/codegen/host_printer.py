"""The host of a module as a Python function that allocates, launches and returns.

    def launch(x, *, allocate=torch_allocate):
        y = allocate((8,), "float32")
        for d0_start, d0_end in TWICE_SHARDS:
            grid = (triton.cdiv(d0_end - d0_start, TWICE["BLOCK_P"]),)
            twice[grid](x, y, d0_start, d0_end, **TWICE)
        return y

Block sizes and compile options are tables beside it, a kernel each, and so are shards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tapestry.codegen.expressions import dtype_name, number
from tapestry.codegen.vocabulary import (
    INDENT,
    LONGEST_LINE,
    comment,
    fresh,
    python_name,
    wrapped,
)
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import triton
from tapestry.locations import location_of

ENTRY = "launch"
"""What the host function @main is called in the printed module."""


def not_printable(op: Operation) -> InvalidProgramError:
    """The error for an operation that a printed module cannot hold."""
    dialect = op.name.partition(".")[0]
    hint = "run loom-to-triton first" if dialect in ("loom", "weft") else None
    return InvalidProgramError(
        f"{op.name} cannot be printed as Triton", location=location_of(op), hint=hint
    )


class HostPrinter:
    """Prints host functions, and the tables that they use.

    `names` are those of the module, which tables are added to; `functions` says what kernels are
    called there.
    """

    def __init__(self, names: set[str], functions: Mapping[str, str]) -> None:
        self._names = names
        self._functions = functions
        self._configurations: dict[str, str] = {}
        self._persistent: set[str] = set()
        self.describes = False
        """Whether some kernel makes tensor descriptors, which take memory."""
        self._tables: list[str] = []
        self._shard_tables: dict[str, str] = {}

    def configure(self, kernel: triton.KernelOp) -> None:
        """Make the table of block sizes and compile options of a kernel."""
        name = fresh(self._functions[kernel.sym_name.data].upper(), self._names)
        self.describes |= any(isinstance(op, triton.DescribeOp) for op in kernel.body.walk())
        if kernel.schedule.data.programs:
            self._persistent.add(kernel.sym_name.data)
        options = {
            **kernel.constants,
            "num_warps": kernel.warps,
            "num_stages": kernel.stages,
        }
        values = [f"{option}={value}" for option, value in options.items()]
        if kernel.asserts:
            # Integers wrap: of what Triton can check, only the program's assertions are wanted.
            values += ["debug=True", "sanitize_overflow=False"]
        self._tables += wrapped(f"{name} = dict(", [*values, "enable_fp_fusion=False"], ")")
        self._configurations[kernel.sym_name.data] = name

    def tables(self) -> str:
        """Every table, in the order made."""
        return "\n".join(self._tables) + "\n" if self._tables else ""

    def function(self, function: func.FuncOp) -> str:
        """A host function as Python."""
        launches = [op for op in function.walk() if isinstance(op, triton.LaunchOp)]
        names = self._names.union(*(bound_names(op) for op in launches))
        shown: dict[SSAValue, str] = {}
        for place, argument in enumerate(function.args):
            shown[argument] = _named(argument, f"arg{place}", "in", names)
        lines: list[str] = []
        if self.describes:
            lines.append(f"{INDENT}triton.set_allocator(reserve)")
        for op in function.body.block.ops:
            match op:
                case triton.AllocateOp():
                    shown[op.result] = _named(op.result, "buffer", "out", names)
                    lines.append(f"{INDENT}{shown[op.result]} = {_allocation(op)}")
                case triton.ConstantOp():
                    shown[op.result] = _named(op.result, "constant", "in", names)
                    lines += self._constant(op, shown[op.result])
                case triton.ExternalOp():
                    lines += self._external(op, [shown[buffer] for buffer in op.buffers])
                case triton.AliasOp():
                    shown[op.result] = _named(op.result, "alias", "view", names)
                    shape = _shape(op.result)
                    lines.append(
                        f"{INDENT}{shown[op.result]} = {shown[op.source]}.reshape({shape})"
                    )
                case triton.LaunchOp():
                    lines += self._launch(op, [shown[buffer] for buffer in op.buffers])
                case func.ReturnOp():
                    returned = ", ".join(shown[value] for value in op.operands)
                    lines.append(f"{INDENT}return {returned or '()'}")
                case _:
                    raise not_printable(op)
        constants = [op for op in function.walk() if isinstance(op, triton.ConstantOp)]
        uses_files = any(op.path is not None for op in constants)
        name = ENTRY if function.sym_name.data == "main" else function.sym_name.data
        options = ["allocate=torch_allocate"]
        options += ["externals"] if any(function_calls(function)) else []
        options += ["upload=torch_upload"] if constants else []
        options += ['folder="."'] if uses_files else []
        head = f"def {name}({', '.join([*(shown[a] for a in function.args), '*', *options])}):"
        summary = [INDENT + line if line else "" for line in _summary(function, shown)]
        return "\n".join([head, *summary, *lines]) + "\n"

    def _constant(self, op: triton.ConstantOp, name: str) -> list[str]:
        """The lines that make a constant's buffer; its bytes are a table of the module."""
        if op.data is not None:
            cells = fresh(f"{name.upper()}_BYTES", self._names)
            self._tables += _byte_table(cells, op.data.data)
        else:
            assert op.path is not None
            assert op.entry is not None
            cells = f"read_entry(folder, {json.dumps(op.path.data)}, {json.dumps(op.entry.data)})"
        element = dtype_name(triton.buffer_type(op.result).element_type)
        return wrapped(f"{name} = upload(", [cells, _shape(op.result), f'"{element}"'], ")", 1)

    def _external(self, op: triton.ExternalOp, buffers: list[str]) -> list[str]:
        """The calls of a function that the module is given, on parts of buffers."""
        rows = [f"{INDENT}({', '.join(map(str, row))})," for row in op.rows]
        boxes = fresh(f"{op.function.data.upper()}_BOXES", self._names)
        self._tables += [f"{boxes} = (", *rows, ")"]
        parts: list[str] = []
        place = 0
        for name, buffer in zip(buffers, op.buffers, strict=True):
            rank = len(triton.buffer_type(buffer).get_shape())
            ends = range(place, place + 2 * rank, 2)
            place += 2 * rank
            parts.append(f"{name}[{', '.join(f'box[{at}]:box[{at + 1}]' for at in ends) or '...'}]")
        split = op.inputs.value.data
        groups = [f"[{', '.join(group)}]" for group in (parts[:split], parts[split:])]
        none: dict[str, Attribute] = {}
        given = none if op.parameters is None else op.parameters.data
        parameters = [f"{json.dumps(name)}: {python_value(value)}" for name, value in given.items()]
        head = f"externals[{json.dumps(op.function.data)}]("
        operands = [*groups, f"{{{', '.join(parameters)}}}"]
        return [f"{INDENT}for box in {boxes}:", *wrapped(head, operands, ")", 2)]

    def _launch(self, op: triton.LaunchOp, buffers: list[str]) -> list[str]:
        configuration = self._configurations[op.kernel_name]
        kernel, bounds = self._functions[op.kernel_name], bound_names(op)
        said = [] if op.comment is None else comment(op.comment.data)
        lines = [INDENT + line for line in said]
        depth = 1
        if bounds:
            lines.append(f"{INDENT}for {', '.join(bounds)} in {self._shards(op, bounds)}:")
            depth = 2
        lines += (INDENT * depth + line for line in _grid(op, configuration))
        if op.kernel_name in self._persistent:
            most = f'{configuration}["PROGRAMS"]'
            lines.append(f"{INDENT * depth}grid = (min({most}, grid[0]),)")
        operands = [*buffers, *bounds, f"**{configuration}"]
        return lines + wrapped(f"{kernel}[grid](", operands, ")", depth)

    def _shards(self, op: triton.LaunchOp, bounds: list[str]) -> str:
        """The name of the table of a launch's shards; launches with equal shards share one."""
        rows = [f"{INDENT}({', '.join(map(str, row))})," for row in op.rows]
        table = "\n".join([f"{INDENT}# {', '.join(bounds)}", *rows])
        if table not in self._shard_tables:
            name = self._shard_tables[table] = fresh("SHARDS", self._names)
            self._tables += [f"{name} = (", table, ")"]
        return self._shard_tables[table]


def bound_names(op: triton.LaunchOp) -> list[str]:
    """The names of the numbers in a row of a launch's shards."""
    return [f"{name}_{end}" for name in op.bound_names for end in ("start", "end")]


def _named(value: SSAValue, fallback: str, role: str, names: set[str]) -> str:
    """A name for a value: its own, with its role where a kernel has that name."""
    wanted = python_name(value.name_hint or fallback)
    return fresh(f"{wanted}_{role}" if wanted in names else wanted, names)


def _grid(op: triton.LaunchOp, configuration: str) -> list[str]:
    """The lines that say how many programs a launch runs."""
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
    if len(factors) == 1:
        line = f"grid = ({factors[0]},)"
        fits = len(line) + 2 * len(INDENT) <= LONGEST_LINE
        return [line] if fits else ["grid = (", f"{INDENT}{factors[0]},", ")"]
    products = [f"{INDENT}* {factor}" for factor in factors[1:]]
    return ["grid = (", f"{INDENT}{factors[0]}", *products[:-1], f"{products[-1]},", ")"]


def _shape(value: SSAValue) -> str:
    shape = triton.buffer_type(value).get_shape()
    sizes = ", ".join(map(str, shape))
    return f"({sizes},)" if len(shape) == 1 else f"({sizes})"


def _allocation(op: triton.AllocateOp) -> str:
    fill = "" if op.fill is None else f", {number(op.fill)}"
    element = dtype_name(triton.buffer_type(op.result).element_type)
    return f'allocate({_shape(op.result)}, "{element}"{fill})'


def function_calls(function: func.FuncOp) -> Iterator[triton.ExternalOp]:
    """The calls of functions that a host function is given."""
    return (op for op in function.walk() if isinstance(op, triton.ExternalOp))


def python_value(value: Attribute) -> str:
    """A parameter as a Python expression."""
    match value:
        case IntegerAttr() | FloatAttr():
            return number(value)
        case StringAttr():
            return json.dumps(value.data)
        case ArrayAttr():
            return f"[{', '.join(map(python_value, value.data))}]"
        case _:
            return json.dumps(str(value))


def _byte_table(name: str, digits: str) -> list[str]:
    """A table of bytes, written as hexadecimal digits."""
    width = LONGEST_LINE - len(INDENT) - 2
    lines = [f'"{digits[at : at + width]}"' for at in range(0, max(len(digits), 1), width)]
    head = f"{name} = bytes.fromhex("
    if len(lines) == 1:
        return wrapped(head, lines, ")")
    return [head, *(f"{INDENT}{line}" for line in lines), ")"]


def _summary(function: func.FuncOp, shown: dict[SSAValue, str]) -> list[str]:
    """The docstring: what the function takes and gives."""

    def kind(value: SSAValue) -> str:
        buffer = triton.buffer_type(value)
        return f"{dtype_name(buffer.element_type)} [{', '.join(map(str, buffer.get_shape()))}]"

    end = function.body.block.last_op
    given = [kind(value) for value in end.operands] if end is not None else []
    taken = [f"    {shown[a]}: {kind(a)}" for a in function.args]
    return [
        '"""Run every kernel.',
        "",
        "Takes:",
        *taken,
        "Gives:",
        f"    {', '.join(given)}",
        '"""',
    ]
