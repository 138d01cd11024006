"""A body as a list of NumPy calls.

    wrap (%x: f32, %w: f32) { %p = arith.mulf %x, %w : f32  loom.yield %p : f32 }

is `values[2] = np.multiply(values[0], values[1])`. What does not depend on the arguments is
computed when the body is prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.bodies import needed_operations
from tapestry.algebra.computing import computed
from tapestry.algebra.named import Scalar
from tapestry.algebra.philox import philox_word
from tapestry.algebra.scalars import compute, function_of, has_meaning, scalar_of
from tapestry.codegen.loops import is_known
from tapestry.dialects import loom
from tapestry.locations import nearest_location
from tapestry.runtime.arrays.access import coordinates
from tapestry.runtime.arrays.blocks import gathered
from tapestry.runtime.cpu.threads import Team
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.library import Function
from tapestry.runtime.prepared.loops.looped_bodies import LoopedBody
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.script import Finished, Script
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
) -> Finished | None:
    """A body over an index range; None where one of its operations has no meaning on arrays.

    `dims` are what the range's dimensions are called in the body; `wanted` as of `evaluate`. The
    first `spare` arguments are needed by nothing else, and may be written to. `places` has the
    values that are the coordinates along some dimensions, which these values do not depend on;
    `functions` are as of a `Library`.
    """
    script = Script()
    given = [script.argument() for _ in block.args]
    if wanted is None:
        wanted = loom.yielded(block)
    made = record_body(script, block, index, dims, given, wanted, places, functions)
    return None if made is None else script.finish(made, given[:spare])


def record_body(
    script: Script,
    block: Block,
    index: Range,
    dims: Sequence[int],
    given: Sequence[int],
    wanted: Sequence[SSAValue],
    places: Mapping[int, SSAValue] | None = None,
    functions: Mapping[Function, Function] | None = None,
    loops: Loops | None = None,
    cells: int | None = None,
) -> list[int] | None:
    """The slots of values of a body, whose arguments are in the slots `given`; as above.

    With `loops`, what a body computes by many scalar operations is done by those: each is done for
    all points of the index range, or for so many `cells`.
    """
    at, known = places or {}, functions or {}
    slots: dict[SSAValue, int] = dict(zip(block.args, given, strict=True))
    made = [value for value in dict.fromkeys(wanted) if value not in slots]
    if loops is not None and not at and made:
        count = index.size if cells is None else cells
        body = looped_body(block, index, dims, made, loops, functions, cells=count)
        if body is not None:
            slots |= zip(made, script.calls(body, given, len(made)), strict=True)
            return [slots[value] for value in wanted]
    for op in _in_order(block, needed_operations(wanted), at):
        result = op.results[0]
        if isinstance(op, loom.IndexOp) and op.dimension in at:
            slots[result] = slots[at[op.dimension]]
            continue
        function = array_function(op, index, dims)
        if function is None:
            return None
        ins = [slots[operand] for operand in op.operands]
        slots[result] = script.call(known.get(function, function), ins)
    return [slots[value] for value in wanted]


def _in_order(
    block: Block, needed: Container[Operation], places: Mapping[int, SSAValue]
) -> list[Operation]:
    """Operations of a body, what computes the values that are coordinates before all others."""
    first = needed_operations(list(places.values())) if places else ()
    early = [op for op in block.ops if op in first]
    return [*early, *(op for op in block.ops if op in needed and op not in first)]


def looped_body(
    block: Block,
    index: Range,
    dims: Sequence[int],
    wanted: Sequence[SSAValue],
    loops: Loops,
    functions: Mapping[Function, Function] | None = None,
    *,
    cells: int,
) -> LoopedBody | None:
    """Values of a body by loops; None where it is not for them, or too little to compute.

    Each of its operations is done for so many `cells`.
    """
    needed = needed_operations(wanted)
    count = len(needed) * cells
    if not _is_for_loops(needed, wanted) or not loops.pay(count):
        return None
    plain = prepared_body(block, index, dims, wanted, functions=functions)
    if plain is None:
        return None
    ordered = [op for op in block.ops if op in needed]
    along, places = coordinates(index), dict[SSAValue, Array]()
    for op in ordered:
        if isinstance(op, loom.IndexOp):
            places[op.result] = along(list(dims).index(op.dimension))
    return _looped_body(plain, ordered, block.args, places, wanted, loops.team)


def _is_for_loops(operations: Iterable[Operation], wanted: Sequence[SSAValue]) -> bool:
    """Whether all of a body's operations are those of loops, and all that it yields is computed."""
    given = (arith.ConstantOp, loom.IndexOp)
    computed = [op for op in operations if not isinstance(op, given)]
    scalars = [scalar_of(op) for op in computed]
    known = all(scalar is not None and is_known(scalar) for scalar in scalars)
    return known and {op.results[0] for op in computed}.issuperset(wanted)


def _looped_body(
    plain: Body,
    operations: Sequence[Operation],
    arguments: Sequence[SSAValue],
    places: Mapping[SSAValue, Array],
    wanted: Sequence[SSAValue],
    team: Team | None,
) -> LoopedBody:
    """A body by loops; `operations` are those that are needed, in order.

    `places` has the values that are coordinates.
    """
    constants = [op for op in operations if isinstance(op, arith.ConstantOp)]
    values = [*arguments, *places, *(op.result for op in constants)]
    slots = {value: slot for slot, value in enumerate(values)}
    cells: list[tuple[Scalar, tuple[int, ...]]] = []
    for op in operations:
        scalar = scalar_of(op)
        if scalar is not None:
            cells.append((scalar, tuple(slots[operand] for operand in op.operands)))
            slots[op.results[0]] = len(slots)
    numbers = tuple(compute(op, ()) for op in constants)
    ends = tuple(slots[value] for value in wanted)
    given = tuple(places.values())
    return LoopedBody(plain, len(arguments), given, numbers, tuple(cells), ends, team)


def array_function(op: Operation, index: Range, dims: Sequence[int]) -> Function | None:
    """What an operation of a body does, None where it has no meaning on arrays; `dims` as above."""
    match op:
        case loom.IndexOp():
            return partial(coordinates(index), list(dims).index(op.dimension))
        case loom.RandomOp():
            return partial(philox_word, word=op.position)
        case loom.ReadOp():
            assert tuple(op.operands)[: 1 + len(op.indices)] == (op.block, *op.indices)
            return partial(gathered, len(op.indices), nearest_location(op))
        case _ if has_meaning(op):
            plain = function_of(op)
            scalar = scalar_of(op)
            if plain is not None:
                return plain
            return partial(compute, op, ()) if scalar is None else partial(computed, scalar)
        case _:
            return None
