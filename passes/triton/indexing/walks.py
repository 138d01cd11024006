"""How a program walks its points: loops along axes, and code for full blocks beside masked ones.

    for k_start in range(0, k_full, BLOCK_K):           segments = 2: full blocks, without masks,
        acc += tl.load(x_ptr + k)                       and what is left in a step of its own
    acc += tl.load(x_ptr + k, mask=k < 50257, other=0.0)

    if p_start + BLOCK_P <= 1000003:                    masks = boundary: programs likewise
        tl.store(y_ptr + p, tl.load(x_ptr + p))
    else:
        tl.store(y_ptr + p, tl.load(x_ptr + p, mask=p_mask, other=0.0), mask=p_mask)

What is done at a block is written by whoever asks for the walk, once for each piece of code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
from xdsl.ir import Block, Region, SSAValue

from tapestry.dialects import triton
from tapestry.dialects.triton import MASKS, PIPELINED, PIPELINES, UNROLL, WRITTEN_OUT, Schedule
from tapestry.passes.triton.indexing.positions import Axis, Positions
from tapestry.passes.triton.indexing.spaces import FOLD_AXIS, Access, Space
from tapestry.passes.triton.indexing.spans import chosen, run_inside, segments, span_inside
from tapestry.passes.triton.tiles.builder import TileBuilder

Step = Callable[[Sequence[SSAValue] | None], Sequence[SSAValue]]
"""What makes carried values of the former ones, or the first ones of None."""


class Walks:
    """The walks of one kernel along its axes; `grid` are those that programs are spread over."""

    def __init__(
        self,
        tiles: TileBuilder,
        positions: Positions,
        space: Space,
        axes: Mapping[str, Axis],
        grid: Sequence[Axis],
        schedule: Schedule,
    ) -> None:
        self.tiles, self.positions, self.space = tiles, positions, space
        self.axes, self.schedule = axes, schedule
        self._grid = grid
        self._covered: set[str] = set()
        self.part: SSAValue | None = None
        """Which part of a fold a program does, where several share it."""

    def cover(self, axis: Axis) -> None:
        """Place an axis that one block holds whole."""
        assert axis.block is not None
        if axis.length is not None and axis.block not in self._covered:
            self._covered.add(axis.block)
            self.tiles.append(triton.CoverOp(axis.block, axis.length))
        start, _ = self.positions.span(axis)
        self.positions.place(axis, start)

    def walk(
        self,
        axis: Axis,
        init: Callable[[], Sequence[SSAValue]],
        step: Step,
        *,
        everywhere: bool = True,
        within: Sequence[Access] | None = None,
        hoist: bool = False,
    ) -> tuple[SSAValue, ...]:
        """Walk an axis block by block, carrying values that `step` makes from the former ones.

        Without a block it is walked point by point. When one block covers the axis there is no
        loop: `step` is asked for its first values. Unless `everywhere`, blocks that lie outside the
        domain, or the rows `within` of it, may be left out. With `hoist`, what does not vary from
        block to block moves in front of the loop.
        """
        tiles = self.tiles
        if axis.block is None:
            return self._loop(axis, None, self.positions.span(axis), init(), step, hoist=hoist)
        if tiles.holds(axis.is_one_block):
            self.cover(axis)
            return tuple(step(None))
        span = self.positions.span(axis)
        if self._is_written_out(axis):
            return self._loop(axis, axis.block, span, init(), step, hoist=hoist)
        rows: Sequence[Access] = ()
        if not everywhere:
            rows = self.space.domain if within is None else within
            run = run_inside(self.positions, self.axes, axis, rows)
            if run is not None and self.part is None:
                return self._runs(axis, run, init(), step, hoist=hoist)
            span = span_inside(self.positions, self.axes, axis, span, rows)
        if self.part is not None and axis.name == FOLD_AXIS:
            span = self._own_part(span, axis.block, self.part)
        if self.schedule.segments > 1 and axis.name == FOLD_AXIS:
            return self._segments(axis, span, rows, init(), step, hoist=hoist)
        return self._loop(axis, axis.block, span, init(), step, hoist=hoist)

    def _is_written_out(self, axis: Axis) -> bool:
        """Whether a loop along an axis goes point by point, and Triton writes all its steps out.

        Where they are is known then, and with it which cells each reads: leaving some out would
        cost more.
        """
        if axis.block is None or axis.length is None or self.part is not None:
            return False
        if self.schedule.pipeline != PIPELINES[0]:
            return False
        name = axis.block
        single = self.tiles.holds(lambda sizes: sizes[name] == 1)
        return single and axis.length <= self.schedule.unroll

    def _own_part(
        self, span: tuple[SSAValue, SSAValue], block: str, part: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        """The blocks of a span that one of the programs walks that share it."""
        tiles, (start, end) = self.tiles, span
        length = end if start == tiles.position(0) else tiles.subtract(end, start)
        blocks = tiles.once(triton.CdivOp, length, block)
        each = tiles.once(triton.CdivOp, blocks, "PARTS")
        each = tiles.times(each, tiles.once(triton.BlockSizeOp, block, tiles.index))
        first = tiles.times(part, each)
        if start != tiles.position(0):
            first = tiles.add(start, first)
        first.name_hint = f"{FOLD_AXIS.lower()}_first"
        return first, tiles.value(arith.MinSIOp(end, tiles.add(first, each)))

    def _runs(
        self,
        axis: Axis,
        run: tuple[SSAValue, SSAValue],
        init: Sequence[SSAValue],
        step: Step,
        *,
        hoist: bool,
    ) -> tuple[SSAValue, ...]:
        """A walk of a run (from, how many) of the last dimension at each point of the others."""
        tiles, (start, length) = self.tiles, run
        points = tiles.times(length, prod(dim.extent for dim in axis.dims[:-1]))

        def place(position: SSAValue) -> None:
            first = tiles.remainder(position, length)
            if start != tiles.position(0):
                first = tiles.add(start, first)
            self.positions.place_in_run(axis, tiles.quotient(position, length), first)

        span = tiles.position(0), points
        return self._loop(axis, axis.block, span, init, step, hoist=hoist, place=place)

    def _segments(
        self,
        axis: Axis,
        span: tuple[SSAValue, SSAValue],
        rows: Sequence[Access],
        state: Sequence[SSAValue],
        step: Step,
        *,
        hoist: bool,
    ) -> tuple[SSAValue, ...]:
        """A walk whose full blocks are a loop of their own, without the masks that hold there.

        What is left is one block where nothing but the length ends the walk.
        """
        parts, held = segments(self.positions, self.axes, axis, span, rows)
        if not held and not self.positions.is_masked(axis):
            parts = [(span, False)]
        single = not held and axis.length is not None
        for part, full in parts:
            with self.positions.full(axis, held if full else None):
                if single and len(parts) > 1 and not full:
                    self.positions.place(axis, part[0])
                    state = step(state)
                else:
                    state = self._loop(axis, axis.block, part, state, step, hoist=hoist)
        return tuple(state)

    def versions(self, write: Callable[[], None]) -> None:
        """Write what a program does; by the schedule twice, where blocks are full and where not."""
        masked = [axis for axis in self._grid if self.positions.is_masked(axis)]
        if self.schedule.masks == MASKS[0] or not masked:
            write()
            return
        tiles, full = self.tiles, None
        for axis in masked:
            assert axis.block is not None
            size = tiles.once(triton.BlockSizeOp, axis.block, tiles.index)
            end = tiles.add(self.positions.first(axis), size)
            full = tiles.both(full, tiles.compare("<=", end, self.positions.span(axis)[1]))
        assert full is not None
        inside, boundary = Block(), Block()
        for block, axes in ((inside, masked), (boundary, ())):
            with tiles.inside(block), self.positions.unmasked(axes):
                write()
                tiles.append(scf.YieldOp())
        tiles.append(scf.IfOp(full, [], Region(inside), Region(boundary)))

    def _loop(
        self,
        axis: Axis,
        block: str | None,
        span: tuple[SSAValue, SSAValue],
        init: Sequence[SSAValue],
        step: Step,
        *,
        hoist: bool,
        place: Callable[[SSAValue], None] | None = None,
    ) -> tuple[SSAValue, ...]:
        tiles = self.tiles
        start, end = span
        size = tiles.position(1)
        if block is not None:
            size = tiles.once(triton.BlockSizeOp, block, tiles.index)
        body = Block(arg_types=[tiles.index, *(value.type for value in init)])
        first, *carried = body.args
        first.name_hint = axis.hint if block is None else f"{axis.hint}_start"
        for argument, value in zip(carried, init, strict=True):
            argument.name_hint = value.name_hint
        with tiles.inside(body, hoist=hoist):
            if place is None:
                self.positions.place(axis, first, walked=True)
            else:
                place(first)
            tiles.append(scf.YieldOp(*step(carried)))
        loads_alone = not any(isinstance(op, triton.DotOp | scf.ForOp) for op in body.walk())
        unrolled = loads_alone and self.schedule.unroll > 1
        written_out = unrolled and place is None and self._is_written_out(axis)
        if unrolled and not written_out:
            # Triton counts the steps of a loop that it unrolls without a sign: where the end is in
            # front of the start, what is left after the unrolled steps would be taken from zero on.
            end = chosen(tiles, arith.MaxSIOp, max, start, end)
            end.name_hint = f"{axis.hint}_end"
        loop = scf.ForOp(start, end, size, init, body)
        if loads_alone and self.schedule.pipeline != PIPELINES[0]:
            loop.attributes[PIPELINED] = UnitAttr()
        if unrolled:
            loop.attributes[UNROLL] = IntegerAttr(self.schedule.unroll, i64)
        if written_out:
            loop.attributes[WRITTEN_OUT] = UnitAttr()
        tiles.append(loop)
        for result, argument in zip(loop.res, carried, strict=True):
            result.name_hint = argument.name_hint
        return tuple(loop.res)
