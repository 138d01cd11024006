"""Which blocks of a grid each program computes: in order, swizzled, or several in a loop.

pid = tl.program_id(0)                                        # the last axis runs fastest
m = pid // blocks_n * BLOCK_M + tl.arange(0, BLOCK_M)
n = pid % blocks_n * BLOCK_N + tl.arange(0, BLOCK_N)

block_m, block_n = tl.swizzle2d(pid // blocks_n, pid % blocks_n, blocks_m, blocks_n, GROUP_M)

for block in tl.range(tl.program_id(0), blocks_m * blocks_n, PROGRAMS, flatten=True):

part = pid // (blocks_m * blocks_n)                           # of the fold of these blocks
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from xdsl.dialects import scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, SSAValue

from tapestry.dialects import triton
from tapestry.dialects.triton import FLATTEN, Schedule
from tapestry.passes.triton.indexing.positions import Axis, Positions
from tapestry.passes.triton.tiles.builder import TileBuilder

ROWS = "M"
"""The tile axis of rows."""


class Persistent:
    """The loop of a program over the blocks that it takes, from its own number on in steps."""

    def __init__(self, tiles: TileBuilder, first: SSAValue, total: SSAValue) -> None:
        self._tiles = tiles
        self._first, self._total = first, total
        self._step = tiles.once(triton.BlockSizeOp, "PROGRAMS", tiles.index)
        self._body = Block(arg_types=[tiles.index])
        self.number.name_hint = "block"
        self._stack = ExitStack()
        self._stack.enter_context(tiles.inside(self._body, hoist=True))

    @property
    def number(self) -> SSAValue:
        """The number of the block that is computed."""
        return self._body.args[0]

    def close(self) -> None:
        """End the loop: what all blocks have in common is in front of it."""
        self._tiles.append(scf.YieldOp())
        self._stack.close()
        loop = scf.ForOp(self._first, self._total, self._step, [], self._body)
        loop.attributes[FLATTEN] = UnitAttr()
        self._tiles.append(loop)


def place_programs(
    tiles: TileBuilder, positions: Positions, schedule: Schedule, grid: Sequence[Axis]
) -> tuple[Persistent | None, SSAValue | None]:
    """Place the axes of the grid from the program id.

    The loop to close, where there is one, and which part of a shared fold a program does.
    """
    rest = tiles.program_id()
    loop: Persistent | None = None
    if schedule.programs:
        total = _blocks_along(tiles, positions, grid[0])
        for axis in grid[1:]:
            total = tiles.times(total, _blocks_along(tiles, positions, axis))
        loop = Persistent(tiles, rest, total)
        rest = loop.number
    taken: dict[Axis, SSAValue] = {}
    for place, axis in reversed(list(enumerate(grid))):
        taken[axis] = rest
        if place > 0 or schedule.parts > 1:
            count = _blocks_along(tiles, positions, axis)
            taken[axis], rest = tiles.remainder(rest, count), tiles.quotient(rest, count)
            taken[axis].name_hint = f"pid_{axis.hint}"
            outer = "".join(other.hint for other in grid[:place])
            rest.name_hint = f"pid_{outer}" if outer else "part"
    if schedule.swizzle > 1:
        # Blocks of rows and of columns are the last axes, or heads and blocks of rows.
        rows, columns = grid[-2:]
        op = triton.SwizzleOp(
            taken[rows],
            taken[columns],
            _blocks_along(tiles, positions, rows),
            _blocks_along(tiles, positions, columns),
            "GROUP_M",
        )
        tiles.append(op)
        for axis, result in zip((rows, columns), op.results, strict=True):
            result.name_hint = f"block_{axis.hint}"
            taken[axis] = result
    if schedule.order == "descending":
        rows = next(axis for axis in grid if axis.name == ROWS)
        last = tiles.subtract(_blocks_along(tiles, positions, rows), tiles.position(1))
        taken[rows] = tiles.subtract(last, taken[rows])
    for axis, block in taken.items():
        first = block
        if axis.block is not None:
            size = tiles.once(triton.BlockSizeOp, axis.block, tiles.index)
            first = tiles.times(block, size)
            first.name_hint = f"{axis.hint}_start"
        start, _ = positions.span(axis)
        positions.place(axis, first if start == tiles.position(0) else tiles.add(start, first))
    return loop, rest if schedule.parts > 1 else None


def _blocks_along(tiles: TileBuilder, positions: Positions, axis: Axis) -> SSAValue:
    """How many blocks an axis of the grid has."""
    count = positions.length(axis)
    if axis.block is None:
        return count
    return tiles.once(triton.CdivOp, count, axis.block, hint=f"blocks_{axis.hint}")
