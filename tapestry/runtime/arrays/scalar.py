"""Bodies evaluated over whole arrays: each scalar operation is a few NumPy calls.

    wrap (%x: f32, %w: f32) { %p = arith.mulf %x, %w : f32  loom.yield %p : f32 }

evaluated on arrays of shapes (4, 1, 8) and (1, 5, 8) gives one array of shape (4, 5, 8). What each
operation means is in `tapestry.algebra.scalars`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.bodies import needed_operations
from tapestry.algebra.philox import philox_word
from tapestry.algebra.scalars import compute, has_meaning
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import loom
from tapestry.locations import location_of, nearest_location
from tapestry.runtime.arrays.arithmetic import current_arithmetic
from tapestry.runtime.arrays.blocks import BlockCells
from tapestry.runtime.executor import Array

Coordinate = Callable[[int], Array]
"""The coordinates along an index dimension, broadcastable to the index space."""


def _compute(op: Operation, operands: Sequence[Array], coordinate: Coordinate) -> Array:
    match op:
        case loom.IndexOp():
            return coordinate(op.dimension)
        case loom.RandomOp():
            return philox_word(operands[0], operands[1], op.position)
        case _ if has_meaning(op):
            arithmetic = current_arithmetic()
            return (compute if arithmetic is None else arithmetic.compute)(op, operands)
        case _:
            raise InvalidProgramError(
                f"{op.name} has no meaning on arrays", location=location_of(op)
            )


def evaluate(
    block: Block,
    arguments: Sequence[Array | BlockCells],
    coordinate: Coordinate,
    wanted: Sequence[SSAValue] | None = None,
) -> list[Array]:
    """What a body yields for arrays of cells that broadcast against each other, and blocks.

    With `wanted`, the values of the body to compute instead; only what they need is computed.
    """
    values: dict[SSAValue, Array] = {}
    blocks: dict[SSAValue, BlockCells] = {}
    for value, argument in zip(block.args, arguments, strict=True):
        if isinstance(argument, BlockCells):
            blocks[value] = argument
        else:
            values[value] = argument
    if wanted is None:
        wanted = loom.yielded(block)
    needed = needed_operations(wanted)
    for op in block.ops:
        if op not in needed:
            continue
        if isinstance(op, loom.ReadOp):
            otherwise = None if op.otherwise is None else values[op.otherwise]
            indices = [values[index] for index in op.indices]
            values[op.result] = blocks[op.block].read(indices, otherwise, nearest_location(op))
        else:
            operands = [values[operand] for operand in op.operands]
            values[op.results[0]] = _compute(op, operands, coordinate)
    return [values[value] for value in wanted]
