"""Scalar bodies as tile operations.

    %p = arith.mulf %x, %w : f32        with tiles %x: 64x1, %w: 1x128 becomes a 64x128 product

Each value keeps the smallest tile that it varies over. What each scalar operation becomes is in
`scalars.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from xdsl.ir import Block, Operation, SSAValue

from tapestry.dialects import loom
from tapestry.passes.triton.tiles.builder import TileBuilder
from tapestry.passes.triton.tiles.scalars import write_scalar

Coordinate = Callable[[int], SSAValue]
"""The coordinate of an index dimension as a tile of i64."""

Values = dict[SSAValue, SSAValue]
"""For each value of a body, its tile."""


Read = Callable[[loom.ReadOp, Values], SSAValue]
"""The cells of a block at the tiles of some indices."""


def write_body(
    tiles: TileBuilder,
    ops: Iterable[Operation],
    values: Values,
    coordinate: Coordinate,
    read: Read,
) -> None:
    """Write tile operations for `ops`, whose operands `values` holds; adds their results to it."""
    for op in ops:
        if isinstance(op, loom.YieldOp):
            continue
        result = op.results[0]
        if isinstance(op, loom.IndexOp):
            tile = coordinate(op.dimension)
        elif isinstance(op, loom.ReadOp):
            tile = read(op, values)
        else:
            tile = write_scalar(tiles, op, [values[operand] for operand in op.operands])
        if result.name_hint is not None and tile.name_hint is None:
            tile.name_hint = result.name_hint
        values[result] = tile


def no_coordinate(dim: int) -> SSAValue:
    """For bodies that have no index space, as a monoid's merge."""
    raise AssertionError(f"a merge has no coordinate along dimension {dim}")


def no_read(_op: loom.ReadOp, _values: Values) -> SSAValue:
    """For bodies that have no inputs, as a monoid's merge."""
    raise AssertionError("a merge has no blocks")


def failing_reads(block: Block) -> list[loom.ReadOp]:
    """The reads of a body that stop the run where an index is outside."""
    return [op for op in block.ops if isinstance(op, loom.ReadOp) and op.otherwise is None]


def varying(block: Block, moving: Collection[SSAValue], dims: Collection[int]) -> set[SSAValue]:
    """The values of a body that depend on some arguments or on coordinates of some dimensions."""
    found = set(moving)
    for op in block.ops:
        asks = isinstance(op, loom.IndexOp) and op.dimension in dims
        if asks or any(operand in found for operand in op.operands):
            found.update(op.results)
    return found
