"""A body as loops: one for all that it yields of one shape.

    if is_for_loops(operations, wanted):
        body = LoopedBody(plain, operations, arguments, wanted)
    (y,) = body([state, bias])          # instead of a NumPy call per scalar operation

The first call shows the shapes of the arguments, which stay the same. `plain` runs where they are
of different ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.scalars import compute
from tapestry.codegen.loops import Cell, Graph, Number, is_known, kind_of
from tapestry.codegen.loops.cells import written
from tapestry.codegen.loops.graphs import Emit
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops import Loop
from tapestry.runtime.prepared.memory import empty
from tapestry.runtime.prepared.script import Run


def is_for_loops(operations: Iterable[Operation], wanted: Sequence[SSAValue]) -> bool:
    """Whether all of a body's operations are those of loops, and all that it yields is computed."""
    made = {op.results[0] for op in operations if not isinstance(op, arith.ConstantOp)}
    known = all(isinstance(op, arith.ConstantOp) or is_known(op) for op in operations)
    return known and made.issuperset(wanted)


class LoopedBody:
    """What a body yields of arrays."""

    def __init__(
        self,
        plain: Run,
        operations: Sequence[Operation],
        arguments: Sequence[SSAValue],
        wanted: Sequence[SSAValue],
    ) -> None:
        """`operations` are those that are needed, in order."""
        constants = [op for op in operations if isinstance(op, arith.ConstantOp)]
        self._plain = plain
        self._operations = [op for op in operations if op not in constants]
        self._arguments = arguments
        self._known = {op.results[0]: np.asarray(compute(op, ())) for op in constants}
        self._wanted = wanted
        self._run: Run | None = None

    def __call__(self, given: Sequence[Any]) -> Sequence[Array]:
        if self._run is None:
            self._run = self._found(given) or self._plain
        return self._run(given)

    def _found(self, given: Sequence[Any]) -> Run | None:
        """The body by loops; None where arguments are no arrays of one rank."""
        if not all(isinstance(one, np.ndarray) for one in given):
            return None
        arrays = cast("Sequence[Array]", given)
        ranks = {array.ndim for array in arrays} - {0}
        if len(ranks) != 1:
            return None
        if any(kind_of(array.dtype) is None for array in arrays):
            return None
        shapes: dict[SSAValue, tuple[int, ...]] = dict.fromkeys(self._known, ())
        shapes |= {v: np.shape(a) for v, a in zip(self._arguments, given, strict=True)}
        for op in self._operations:
            have = [shapes[operand] for operand in op.operands]
            shapes[op.results[0]] = np.broadcast_shapes(*have)
        by_shape: dict[tuple[int, ...], list[SSAValue]] = {}
        for value in dict.fromkeys(self._wanted):
            by_shape.setdefault(shapes[value], []).append(value)
        if () in by_shape:
            return None
        steps = [self._step(shape, values) for shape, values in by_shape.items()]

        def run(given: Sequence[Any]) -> list[Array]:
            found: dict[SSAValue, Array] = {}
            for loop, ins, values, kinds in steps:
                outs = [empty(*kind) for kind in kinds]
                loop([given[place] for place in ins], outs)
                found |= zip(values, outs, strict=True)
            return [found[value] for value in self._wanted]

        return run

    def _step(
        self, shape: tuple[int, ...], values: Sequence[SSAValue]
    ) -> tuple[Loop, list[int], Sequence[SSAValue], list[tuple[tuple[int, ...], np.dtype[Any]]]]:
        """The loop for values of a shape, the arguments that it takes, and what it makes."""
        needed: set[SSAValue] = set(values)
        operations: list[Operation] = []
        for op in reversed(self._operations):
            if op.results[0] in needed:
                operations.insert(0, op)
                needed.update(op.operands)
        ins = [n for n, value in enumerate(self._arguments) if value in needed]
        numbers = [value for value in self._known if value in needed]
        place = {self._arguments[n]: slot for slot, n in enumerate(ins)}
        place |= {value: slot for slot, value in enumerate(numbers, len(ins))}
        cells: list[Cell] = []
        for op in operations:
            slots = tuple(place[operand] for operand in op.operands)
            place[op.results[0]] = len(ins) + len(numbers) + len(cells)
            cells.append(Cell(_emit(op), slots, _kind(op.results[0])))
        graph = Graph(
            tuple(_kind(self._arguments[n]) for n in ins),
            tuple(Number(self._known[value].item(), _kind(value)) for value in numbers),
            tuple(cells),
            tuple(place[value] for value in values),
        )
        about = f"of {len(cells)} operations over {'x'.join(map(str, shape))}"
        kinds = [(shape, numpy_dtype(value.type)) for value in values]
        return Loop(graph, shape, (), about), ins, values, kinds


def _emit(op: Operation) -> Emit:
    return lambda write, operands: written(op, write, operands)


def _kind(value: SSAValue) -> str:
    kind = kind_of(numpy_dtype(value.type))
    assert kind is not None
    return kind
