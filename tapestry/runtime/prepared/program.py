"""@main as a list of functions on arrays.

call = PreparedProgram(module)
(y,) = call([x, w])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.runtime.arrays.mapfold import Tensor
from tapestry.runtime.constants import constant_cells
from tapestry.runtime.cpu.threads import Team
from tapestry.runtime.executor import Array, NoWatch
from tapestry.runtime.fitting import own_outputs
from tapestry.runtime.numpy_executor import NumpyExecutor
from tapestry.runtime.prepared.alike import Alike
from tapestry.runtime.prepared.assembling import Assembled, Filled, Filler
from tapestry.runtime.prepared.cells import all_over
from tapestry.runtime.prepared.leading import first_places
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.copying import reshaped
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.operations import prepared_operation, windowed_operation
from tapestry.runtime.prepared.parts.preparing import InParts, in_parts, operations_of_numpy
from tapestry.runtime.prepared.products.sliding import slid
from tapestry.runtime.prepared.script import Run, Script, Whole
from tapestry.runtime.prepared.views import View, reader
from tapestry.runtime.program import main_function
from tapestry.zspace import Projection

_FEW = 64
"""Steps of a program up to which it is found for each by itself what it does with memory."""


class PreparedProgram:
    """@main of a module in loom, on the numpy executor.

    Called with an array per argument, it returns one per result; they may share memory with the
    arguments and with each other, and may not be writable. `left` are the operations that the
    executor runs as it always does. `library` is what it computes by, `parts` what is large: parts
    of it, in cache, on all threads. `run` is what is called, which `stored` can write down.
    """

    def __init__(
        self, module: ModuleOp, library: Library | None = None, parts: InParts | None = None
    ) -> None:
        """`module` must not change afterwards. InvalidProgramError for what cannot be run."""
        self.left: list[Operation] = []
        block = main_function(module).body.block
        library = library or Library(slide=slid)
        operations = [op for op in block.walk() if isinstance(op, loom.OperationOp)]
        self._few = len(operations) <= _FEW
        loops = _loops(library.loops, operations)
        self._library = replace(library, loops=loops)
        self._parts = parts or partial(in_parts, products=self._library.is_numpy, loops=loops)
        self._known = Alike()
        self._executor = NumpyExecutor()
        self._slots: dict[SSAValue, int] = {}
        self._script = Script()
        for value in block.args:
            self._slots[value] = self._script.argument()
        for op in block.ops:
            self._prepare(op)
        last = block.last_op
        assert isinstance(last, func.ReturnOp)
        self.run = Whole(self._script.finish([self._slots[value] for value in last.operands]))

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs."""
        return self.run(inputs)

    def own(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The same as arrays that are the caller's alone, row by row."""
        made = self.run.at_once(inputs)
        return own_outputs(self.run.in_turn(inputs), inputs) if made is None else tuple(made)

    def _prepare(self, op: Operation) -> None:
        match op:
            case func.ReturnOp():
                return
            case loom.ConstantOp():
                self._slots[op.result] = self._script.constant(constant_cells(op))
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
                self._view(op, _read(op))
                return
            case loom.ReshapeOp():
                self._view(op, partial(reshaped, tensor_type(op.result).box.shape))
                return
            case loom.AssembleOp():
                self._assemble(op)
                return
            case _:
                run = first_places(op)
        ins = [self._slots[operand] for operand in op.operands]
        if run is None:
            self.left.append(op)
            run = self._left(op)
        add = self._script.include if self._few else self._script.calls
        self._slots |= zip(op.results, add(run, ins, len(op.results)), strict=True)

    def _assemble(self, op: loom.AssembleOp) -> None:
        """Copy parts to their places, or make them there where nothing else reads them."""
        assembled = _assembled(op, self._library.team)
        slots = [self._slots[part] for part in op.parts]
        makers: list[tuple[Filler | None, int]] = []
        ins: list[int] = []
        for slot in slots:
            line = self._script.line_of(slot) if self._is_read_by(op, slot) else None
            function = None if line is None else line.function
            if line is not None and isinstance(function, Filler):
                self._script.drop(line)
                makers.append((function, len(line.ins)))
                ins += line.ins
            else:
                makers.append((None, 1))
                ins.append(slot)
        if all(maker is None for maker, _ in makers):
            self._slots[op.result] = self._script.call(assembled, slots, new=True)
        else:
            filled = Filled(assembled, tuple(makers))
            (self._slots[op.result],) = self._script.calls(filled, ins, 1, new=True)

    def _is_read_by(self, op: Operation, slot: int) -> bool:
        """Whether an operation alone reads a slot, and once.

        What a group yields is its result, which has the same slot; in a group nothing is assembled.
        """
        values = [value for value, own in self._slots.items() if own == slot]
        uses = [use for value in values for use in value.uses]
        others = [use.operation for use in uses if not isinstance(use.operation, loom.YieldOp)]
        return others == [op]

    def _view(self, op: loom.ViewOp | loom.ReshapeOp, view: View) -> None:
        self._slots[op.result] = self._script.view(view, self._slots[op.operands[0]])

    def _function(self, op: loom.OperationOp) -> Run | None:
        """What an operation does, whole or in parts; None where it is left to the executor."""
        windowed = windowed_operation(op, self._library)
        return windowed or self._parts(op) or prepared_operation(op, self._library, self._left(op))

    def _left(self, op: Operation) -> Run:
        """An operation as the executor runs it."""
        boxes = [tensor_type(operand).box for operand in op.operands]

        def run(operands: Sequence[Array]) -> list[Array]:
            tensors = [Tensor(box, data) for box, data in zip(boxes, operands, strict=True)]
            return [made.data for made in self._executor.dispatch(op, tensors, NoWatch())]

        return run


def _loops(loops: Loops | None, operations: Sequence[loom.OperationOp]) -> Loops | None:
    """The loops of a program: all that there are, if it is worth any, so that it is one call."""
    if loops is None:
        return None
    counts = accumulate(map(operations_of_numpy, operations))
    return replace(loops, least=1) if any(count >= loops.least for count in counts) else loops


def _assembled(op: loom.AssembleOp, team: Team | None) -> Assembled:
    kind = tensor_type(op.result)
    boxes = [tensor_type(part).box for part in op.parts]
    places = (
        None if box.is_empty else reader(at, kind.box, box)
        for at, box in zip(map(Projection.cells, op.placed), boxes, strict=True)
    )
    return Assembled(kind.box.shape, numpy_dtype(kind.element_type), tuple(places), team)


def _read(op: loom.ViewOp) -> View:
    """A view; one that has a cell more than once cannot be written to.

    One without cells has none twice, and may lack dimensions all the same.
    """
    box, projection = tensor_type(op.result).box, op.projection.data
    read = reader(projection, tensor_type(op.operands[0]).box, box)
    is_plain = projection.is_injective_on(box) and not box.is_empty
    return read if is_plain else partial(all_over, box, read)
