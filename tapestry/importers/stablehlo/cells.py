"""Functions that compute cell by cell: one operation, however much they compute.

    func.func private @threefry2x32(%k0: tensor<ui32>, %k1: tensor<ui32>, %x: tensor<3x4xui32>, ...)

JAX calls functions like this one, some hundred operations on each cell. It is translated once for a
single cell, and its body is that of one operation over all of them, so nothing in between is stored
or computed twice. A function with an operation that is not cell by cell is inlined as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Region

from tapestry.dialects import loom
from tapestry.importers.operations import maps
from tapestry.importers.stablehlo.attributes import text
from tapestry.importers.stablehlo.bindings import MlirOperation, StableHloError, blocks_of
from tapestry.importers.stablehlo.elementwise import POINTWISE
from tapestry.importers.stablehlo.program import Op, Program
from tapestry.importers.stablehlo.scalars import (
    HasDimensionsError,
    finished_body,
    scalar_arguments,
)
from tapestry.importers.stablehlo.specs import spec_of
from tapestry.importers.stablehlo.values import Spec, Value
from tapestry.zspace import Projection, Range

LEAST = 32
"""How many operations a function must have: fewer are as well fused later."""

MAX_KNOWN = 64
"""How many cells a known operand may have."""

_CONTROL = ("func.call", "stablehlo.while", "stablehlo.constant", "func.return", "stablehlo.return")


class _NotPointwiseError(Exception):
    """A function that is not cell by cell."""


def as_one_operation(program: Program, op: Op, callee: str) -> list[Value] | None:
    """The results of a call of a function that computes cell by cell, or None for another."""
    shapes = {spec.shape for spec in op.results}
    if program.is_narrowed or len(shapes) != 1 or _size(program, callee, LEAST) < LEAST:
        return None
    (shape,) = shapes
    if not _fit(op.operands, shape):
        return None
    key = (callee, shape, *(_key(value) for value in op.operands))
    if key not in program.bodies:
        program.bodies[key] = _body(program, op, callee, shape)
    body = program.bodies[key]
    if body is None:
        return None
    rank = len(shape)
    each, one = Projection.identity(rank), Projection.of([], inputs=rank)
    taken = [value for value in op.operands if value.known is None]
    return program.insert(
        loom.OperationOp(
            "".join(letter if letter.isalnum() else "_" for letter in callee),
            Range.of(shape),
            maps(rank),
            None,
            [(program.tensor(value), each if value.spec.rank else one) for value in taken],
            [(each, program.kind(spec)) for spec in op.results],
            body.clone(),
        )
    )


def _key(value: Value) -> object:
    if value.known is None:
        return value.spec
    cells = value.known if value.splat is None else value.splat
    return value.spec, cells.tobytes()


def _body(program: Program, op: Op, callee: str, shape: tuple[int, ...]) -> Region | None:
    """What the function computes for one cell, or None where it is not cell by cell."""
    specs = [value.spec.of(shape=()) for value in op.operands if value.known is None]

    def narrow(operation: MlirOperation, results: tuple[Spec, ...]) -> tuple[Spec, ...]:
        return _narrowed(operation, results, shape)

    nested = program.nested(narrow)
    scalars = iter(scalar_arguments(nested, specs))
    arguments = [
        next(scalars) if value.known is None else _cell(nested, value, shape)
        for value in op.operands
    ]
    try:
        return finished_body(nested, specs, nested.run_function(callee, arguments))
    except (_NotPointwiseError, HasDimensionsError, StableHloError, ValueError):
        return None


def _fit(operands: Sequence[Value], shape: tuple[int, ...]) -> bool:
    """Whether operands have the shape, or no dimensions, or are known and alike in all cells."""
    for value in operands:
        if value.known is None:
            if value.spec.shape not in ((), shape):
                return False
        elif value.splat is None and (value.spec.size > MAX_KNOWN or value.spec.shape == shape):
            return False
    return True


def _cell(nested: Program, value: Value, shape: tuple[int, ...]) -> Value:
    """A known operand as a cell's function takes it."""
    if value.spec.shape != shape:
        return value
    return nested.known(value.splat, value.spec.of(shape=()))


def _narrowed(
    operation: MlirOperation, results: tuple[Spec, ...], shape: tuple[int, ...]
) -> tuple[Spec, ...]:
    """What an operation makes for one cell; _NotPointwiseError where it makes more of it."""
    taken = [spec_of(value.type).shape for value in operation.operands]
    shapes = {*taken, *(spec.shape for spec in results)}
    if not shape or shape not in shapes:
        return results
    name = operation.name
    spreads = name == "stablehlo.broadcast_in_dim" and taken == [()]
    # The parts of a number, as bits, are more cells than the number.
    cell_by_cell = name in POINTWISE and shapes <= {shape, ()}
    if not cell_by_cell and name not in _CONTROL and not spreads:
        raise _NotPointwiseError
    return tuple(spec.of(shape=()) if spec.shape == shape else spec for spec in results)


def _size(program: Program, callee: str, enough: int) -> int:
    """How many operations a function has, those that it calls included; `enough` are enough."""
    count, waiting, seen = 0, [callee], {callee}
    while waiting and count < enough:
        function = program.function(waiting.pop())
        blocks = [] if function is None else blocks_of(function)
        while blocks and count < enough:
            for operation in blocks.pop().operations:
                source = operation.operation
                count += 1
                for region in source.regions:
                    blocks += list(region)
                name = text(source.attributes["callee"]) if source.name == "func.call" else None
                if name is not None and name not in seen:
                    seen.add(name)
                    waiting.append(name)
    return count
