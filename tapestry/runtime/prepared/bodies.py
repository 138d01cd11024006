"""A body as a list of NumPy calls.

    wrap (%x: f32, %w: f32) { %p = arith.mulf %x, %w : f32  loom.yield %p : f32 }

is `values[2] = np.multiply(values[0], values[1])`. What does not depend on the arguments is
computed when the body is prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.bodies import needed_operations
from tapestry.algebra.functions import makes_new, takes_out
from tapestry.algebra.philox import philox_word
from tapestry.algebra.scalars import compute, function_of, has_meaning
from tapestry.dialects import loom
from tapestry.runtime.access import coordinates
from tapestry.runtime.blocks import BlockCells
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.library import Function
from tapestry.runtime.prepared.memory import empty, is_large
from tapestry.zspace import Range

Body = Callable[[Sequence[Any]], list[Array]]
"""From arrays of cells, and blocks, to what a body yields of them."""


def prepared_body(
    block: Block,
    index: Range,
    dims: Sequence[int],
    wanted: Sequence[SSAValue] | None = None,
    *,
    spare: int = 0,
    places: Mapping[int, SSAValue] | None = None,
    functions: Mapping[Function, Function] | None = None,
) -> Body | None:
    """A body over an index range; None where one of its operations has no meaning on arrays.

    `dims` are what the range's dimensions are called in the body; `wanted` as of `evaluate`. The
    first `spare` arguments are needed by nothing else, and may be written to. `places` has the
    arguments that are the coordinates along some dimensions; `functions` are as of a `Library`.
    """
    at = places or {}
    if wanted is None:
        terminator = block.last_op
        wanted = () if terminator is None else tuple(terminator.operands)
    needed = needed_operations(wanted)
    slots: dict[SSAValue, int] = {value: slot for slot, value in enumerate(block.args)}
    known: dict[SSAValue, Array] = {}
    late: list[tuple[Operation, Function]] = []
    for op in block.ops:
        if op not in needed:
            continue
        if isinstance(op, loom.IndexOp) and op.dimension in at:
            slots[op.result] = slots[at[op.dimension]]
            continue
        function = array_function(op, index, dims)
        if function is None:
            return None
        if functions:
            function = functions.get(function, function)
        operands = tuple(op.operands)
        if all(operand in known for operand in operands):
            with np.errstate(all="ignore"):  # what IEEE 754 defines is no news
                known[op.results[0]] = function(*(known[operand] for operand in operands))
        else:
            late.append((op, function))
    count = len(block.args)
    for value in known:
        slots[value] = count
        count += 1
    calls: list[_Call] = []
    for op, function in late:
        slots[op.results[0]] = count
        count += 1
        ins = tuple(slots[operand] for operand in op.operands)
        calls.append(_Call(function, ins, slots[op.results[0]]))
    constants = list(known.values())
    room: list[Any] = [None] * len(calls)
    results = [slots[value] for value in wanted]
    _find_spare(calls, set(range(spare)), results)

    def run(given: Sequence[Any]) -> list[Array]:
        values: list[Any] = [*given, *constants, *room]
        for call in calls:
            call.run(values)
        return [values[slot] for slot in results]

    return run


class _Call:
    """A function of the values in some slots, whose result fills another.

    It may write into a value that is needed no more, of those in `spare`: whether one has the
    result's shape is seen at the first call, as shapes are always the same. Else it writes into
    memory of the pool's, if it can write into any.
    """

    def __init__(self, function: Function, ins: tuple[int, ...], out: int) -> None:
        self.function = function
        self.ins = ins
        self.out = out
        self.spare: tuple[int, ...] = ()
        self._into: int | None = None
        self._make: Callable[[], Array] | None = None

    def run(self, values: list[Any]) -> None:
        """Fill the slot."""
        given = [values[slot] for slot in self.ins]
        if self._into is not None:
            values[self.out] = self.function(*given, out=values[self._into])
            return
        if self._make is not None:
            values[self.out] = self.function(*given, out=self._make())
            return
        made = values[self.out] = self.function(*given)
        if makes_new(self.function) and takes_out(self.function) and is_large(made):
            self._make = partial(empty, made.shape, made.dtype)
        for slot in self.spare:
            have = values[slot]
            if made.ndim and have.shape == made.shape and have.dtype == made.dtype:
                self._into = slot
        self.spare = ()


def _find_spare(calls: Sequence[_Call], spare: set[int], results: Sequence[int]) -> None:
    """Find what calls may write into: values of the body's own that nothing needs any more."""
    own = set(spare)
    for call in calls:
        if makes_new(call.function):
            own.add(call.out)
        else:
            own -= {*call.ins, call.out}  # what it returns may be a view of what it takes
    needed = set(results)
    for call in reversed(calls):
        if takes_out(call.function):
            call.spare = tuple(slot for slot in call.ins if slot in own and slot not in needed)
        needed.update(call.ins)


def array_function(op: Operation, index: Range, dims: Sequence[int]) -> Function | None:
    """What an operation of a body does, None where it has no meaning on arrays; `dims` as above."""
    match op:
        case loom.IndexOp():
            along = coordinates(index)(list(dims).index(op.dimension))
            return lambda: along
        case loom.RandomOp():
            return partial(philox_word, word=op.position)
        case loom.ReadOp():
            return _read(op)
        case _ if has_meaning(op):
            plain = function_of(op)
            return plain if plain is not None else lambda *operands: compute(op, operands)
        case _:
            return None


def _read(op: loom.ReadOp) -> Function:
    """A gather; the operands are the block, the indices, and what is outside if it is said."""
    places = list(op.operands)
    rank = len(op.indices)
    assert places[0] == op.block
    assert tuple(places[1 : 1 + rank]) == tuple(op.indices)
    outside = op.otherwise is not None

    def read(block: BlockCells, *operands: Array) -> Array:
        return block.read(op, operands[:rank], operands[rank] if outside else None)

    return read
