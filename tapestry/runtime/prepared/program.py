"""@main as a list of functions on arrays.

call = PreparedProgram(module)
(y,) = call([x, w])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.runtime.arena import dropped_after
from tapestry.runtime.constants import constant_cells
from tapestry.runtime.executor import Array, NoWatch
from tapestry.runtime.mapfold import Tensor
from tapestry.runtime.numpy_executor import NumpyExecutor
from tapestry.runtime.prepared.alike import Alike
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.operations import Run, prepared_operation
from tapestry.runtime.prepared.parts import InParts, in_parts
from tapestry.runtime.prepared.views import reader
from tapestry.runtime.program import main_function


@dataclass(frozen=True)
class _Step:
    """A function of the arrays in some slots, whose results fill others."""

    run: Run
    ins: tuple[int, ...]
    outs: tuple[int, ...]


class PreparedProgram:
    """@main of a module in loom, on the numpy executor.

    Called with an array per argument, it returns one per result; they may share memory with the
    arguments and with each other, and may not be writable. `left` are the operations that the
    executor runs as it always does. `library` is what
    it computes by, `parts` what is large: parts of it, in cache, on all threads.
    """

    def __init__(
        self, module: ModuleOp, library: Library | None = None, parts: InParts | None = None
    ) -> None:
        """`module` must not change afterwards. InvalidProgramError for what cannot be run."""
        self.left: list[Operation] = []
        self._library = library or Library()
        self._parts = parts or partial(in_parts, products=self._library.is_numpy)
        self._known = Alike()
        self._executor = NumpyExecutor()
        self._slots: dict[SSAValue, int] = {}
        self._room: list[Array | None] = []
        self._steps: list[_Step] = []
        block = main_function(module).body.block
        for value in block.args:
            self._slot(value)
        for op in block.ops:
            self._prepare(op)
        last = block.last_op
        assert isinstance(last, func.ReturnOp)
        self._returned = [self._slots[value] for value in last.operands]
        self._free = dropped_after([(one.ins, one.outs) for one in self._steps], self._returned)
        self._room = self._room[len(block.args) :]

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs."""
        values: list[Array | None] = [*inputs, *self._room]
        with np.errstate(all="ignore"):  # what IEEE 754 defines is no news
            for step, free in zip(self._steps, self._free, strict=True):
                made = step.run(cast("list[Array]", [values[slot] for slot in step.ins]))
                for slot, array in zip(step.outs, made, strict=True):
                    values[slot] = array
                for slot in free:
                    values[slot] = None
        return [np.asarray(values[slot]) for slot in self._returned]

    def _slot(self, value: SSAValue, content: Array | None = None) -> int:
        self._slots[value] = len(self._room)
        self._room.append(content)
        return self._slots[value]

    def _prepare(self, op: Operation) -> None:
        match op:
            case func.ReturnOp():
                return
            case loom.ConstantOp():
                self._slot(op.result, constant_cells(op))
                return
            case loom.FusedOp() if (run := self._known.of(op, self._parts)) is not None:
                pass
            case loom.FusedOp() if op.partition is None:
                # Members whole, one after another, on the tensors of the group's own slots.
                for inner, operand in zip(op.body.block.args, op.operands, strict=True):
                    self._slots[inner] = self._slots[operand]
                for member in op.members:
                    self._prepare(member)
                for result, inner in zip(op.results, op.yielded, strict=True):
                    self._slots[result] = self._slots[inner]
                return
            case loom.OperationOp():
                run = self._known.of(op, self._function)
            case loom.ViewOp():
                run = _view(op)
            case loom.ReshapeOp():
                shape = tensor_type(op.result).box.shape
                run = _single(lambda array: array.reshape(shape))
            case _:
                run = None
        ins = tuple(self._slots[operand] for operand in op.operands)
        if run is None:
            self.left.append(op)
            run = self._left(op)
        self._steps.append(_Step(run, ins, tuple(map(self._slot, op.results))))

    def _function(self, op: loom.OperationOp) -> Run | None:
        """What an operation does, whole or in parts; None where it is left to the executor."""
        return self._parts(op) or prepared_operation(op, self._library)

    def _left(self, op: Operation) -> Run:
        """An operation as the executor runs it."""
        boxes = [tensor_type(operand).box for operand in op.operands]

        def run(operands: Sequence[Array]) -> list[Array]:
            tensors = [Tensor(box, data) for box, data in zip(boxes, operands, strict=True)]
            return [made.data for made in self._executor.dispatch(op, tensors, NoWatch())]

        return run


def _single(function: Callable[[Array], Array]) -> Run:
    return lambda operands: (function(operands[0]),)


def _view(op: loom.ViewOp) -> Run:
    box = tensor_type(op.result).box
    read = reader(op.projection.data, tensor_type(op.operands[0]).box, box)
    return _single(lambda array: np.broadcast_to(read(array), box.shape))
