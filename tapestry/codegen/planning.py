"""The plan of a module that `loom-to-triton` made: see `plans.py`.

    plan = plan_of(lowered, print_module(lowered).kernels)

An allocation without a launch that touches it takes no room, an alias is its source under another
shape, and a fill is done right before the first launch that touches the buffer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.literals import number_in
from tapestry.attributes import Plain, plain_value
from tapestry.codegen.host_printer import not_printable
from tapestry.codegen.plans import (
    Buffer,
    Call,
    Cells,
    Filling,
    Kind,
    Launch,
    Plan,
    PlanStep,
    Returned,
)
from tapestry.codegen.specs import KernelSpec
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import triton
from tapestry.locations import location_of

MAX_PROGRAMS = (1 << 31) - 1
"""The most programs of one launch: what CUDA's first grid dimension takes."""


def plan_of(lowered: ModuleOp, kernels: Sequence[KernelSpec]) -> Plan:
    """The plan of @main; `kernels` are those of the module, in its order, as they were printed.

    InvalidProgramError for an operation that is not of the triton floor, and for a launch of more
    programs than a GPU takes.
    """
    ops = [op for op in lowered.body.block.ops if isinstance(op, triton.KernelOp)]
    named = {op.sym_name.data: spec for op, spec in zip(ops, kernels, strict=True)}
    main = next(
        op
        for op in lowered.body.block.ops
        if isinstance(op, func.FuncOp) and op.sym_name.data == "main"
    )
    origins = {op.sym_name.data: _operation(op) for op in ops}
    return _Planning(main, named, origins).plan()


class _Planning:
    """Goes through a host function once."""

    def __init__(
        self, main: func.FuncOp, kernels: Mapping[str, KernelSpec], origins: Mapping[str, str]
    ) -> None:
        self._main = main
        self._kernels = kernels
        self._origins = origins
        self._buffers: list[Buffer] = []
        self._steps: list[PlanStep] = []
        self._at: dict[SSAValue, int] = {}
        self._unfilled: dict[int, bytes] = {}
        self._sources = 0

    def plan(self) -> Plan:
        """The plan, its temporaries not placed yet."""
        block = self._main.body.block
        end = block.last_op
        assert isinstance(end, func.ReturnOp)
        sources = {_source(value) for value in end.operands}
        for argument in block.args:
            self._add(argument, "input")
        for op in block.ops:
            match op:
                case triton.AllocateOp():
                    kind = "output" if op.result in sources else "temporary"
                    self._add(op.result, kind)
                    self._fill(op)
                case triton.ConstantOp():
                    self._add(op.result, "constant", _cells(op))
                case triton.AliasOp():
                    self._at[op.result] = self._at[op.source]
                case triton.LaunchOp():
                    self._launch(op)
                case triton.ExternalOp():
                    self._call(op)
                case func.ReturnOp():
                    pass
                case _:
                    raise not_printable(op)
        returned = tuple(
            Returned(self._at[value], tuple(triton.buffer_type(value).get_shape()))
            for value in end.operands
        )
        self._filled([one.buffer for one in returned])
        return Plan(tuple(self._buffers), tuple(self._steps), returned)

    def _add(self, value: SSAValue, kind: Kind, cells: Cells | None = None) -> None:
        made = triton.buffer_type(value)
        dtype = str(numpy_dtype(made.element_type))
        shape = tuple(made.get_shape())
        self._at[value] = len(self._buffers)
        self._buffers.append(Buffer(kind, dtype, shape, value.name_hint or "", cells))

    def _fill(self, op: triton.AllocateOp) -> None:
        if op.fill is not None:
            dtype = numpy_dtype(triton.buffer_type(op.result).element_type)
            cell = np.asarray(number_in(op.fill)).astype(dtype)
            self._unfilled[self._at[op.result]] = cell.tobytes()

    def _filled(self, buffers: Sequence[int]) -> None:
        """Fill those of some buffers that are to be, and are not yet."""
        for buffer in buffers:
            cell = self._unfilled.pop(buffer, None)
            if cell is not None and self._buffers[buffer].bytes:
                self._steps.append(Filling(buffer, cell))

    def _launch(self, op: triton.LaunchOp) -> None:
        buffers = tuple(self._at[buffer] for buffer in op.buffers)
        self._filled(buffers)
        source = self._sources
        self._sources += 1
        spec, blocks = self._kernels[op.kernel_name], dict(self._kernels[op.kernel_name].blocks)
        for row in op.rows:
            programs, every = programs_of(op, blocks, row), _blocks_of(op, blocks, row)
            # Programs that share blocks count these in 32 bits, and go a step beyond the last.
            if every + blocks.get("PROGRAMS", 0) > MAX_PROGRAMS:
                raise InvalidProgramError(
                    f"{spec.name} takes {every} programs, and a GPU runs at most {MAX_PROGRAMS}",
                    location=location_of(op),
                    hint="split the operation with loom-shard",
                )
            if programs:
                operation = self._origins[op.kernel_name]
                launch = Launch(spec.name, programs, buffers, row, operation, source=source)
                self._steps.append(launch)

    def _call(self, op: triton.ExternalOp) -> None:
        buffers = tuple(self._at[buffer] for buffer in op.buffers)
        self._filled(buffers)
        parameters: dict[str, Plain] = {}
        if op.parameters is not None:
            parameters = {n: plain_value(value) for n, value in op.parameters.data.items()}
        inputs, source = op.inputs.value.data, self._sources
        shapes = tuple(tuple(triton.buffer_type(value).get_shape()) for value in op.buffers)
        self._sources += 1
        self._steps.append(
            Call(op.function.data, buffers, shapes, op.rows, inputs, parameters, source=source)
        )


def programs_of(op: triton.LaunchOp, blocks: Mapping[str, int], row: Sequence[int]) -> int:
    """How many programs a launch runs for a row of its shards.

    `blocks` are what the kernel takes at compile time; of a persistent one, also how many at most.
    """
    count = _blocks_of(op, blocks, row)
    return min(count, blocks.get("PROGRAMS", count))


def _blocks_of(op: triton.LaunchOp, blocks: Mapping[str, int], row: Sequence[int]) -> int:
    """How many blocks a launch is over, for a row of its shards."""
    ends = zip(op.bound_names, row[0::2], row[1::2], strict=True)
    lengths = {name: end - start for name, start, end in ends}
    count = 1
    for axis in op.grid.data:
        length = prod(lengths[one] if isinstance(one, str) else one for one in axis.extents)
        count *= length if axis.block is None else -(-length // blocks[axis.block])
    return count


def _source(value: SSAValue) -> SSAValue:
    """The buffer that a value is another shape of."""
    while isinstance(value.owner, triton.AliasOp):
        value = value.owner.source
    return value


def _cells(op: triton.ConstantOp) -> Cells:
    if op.data is not None:
        return Cells(data=bytes.fromhex(op.data.data))
    assert op.path is not None
    assert op.entry is not None
    return Cells(file=op.path.data, entry=op.entry.data)


def _operation(kernel: triton.KernelOp) -> str:
    """What a kernel computes, as its comment says first."""
    return next((origin.data for origin in kernel.origins), kernel.sym_name.data)
