"""What the loads and stores of a kernel touch, access by access.

    x = load x_ptr[m * 512 + k] mask k < 500        128 x 64 cells of 2 bytes, 64 side by side
    b = load_block %described[m, k]                 the same cells, moved by hardware

An access is counted once, with how often it happens in a program on average.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.ir import Operation, SSAValue

from tapestry.algebra.dtypes import byte_size
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of, shape_of
from tapestry.passes.triton.cost.footprints import (
    Footprint,
    Lanes,
    footprint,
    overlaps,
    written_out,
)
from tapestry.passes.triton.cost.neighbours import VECTOR, Neighbours
from tapestry.passes.triton.cost.programs import Columns, Indices, Known
from tapestry.passes.triton.cost.surroundings import is_backward
from tapestry.passes.triton.cost.work import SECTOR, Stream


@dataclass(frozen=True)
class Accesses:
    """The streams of one kernel: where its pointers lead, and its indices as far as they are known.

    `places` has the buffer of each pointer, `sizes` the cells of each block by its name.
    """

    places: Mapping[SSAValue, int]
    sizes: Mapping[str, int]
    columns: Columns
    indices: Indices
    neighbours: Neighbours
    arguments: Mapping[SSAValue, int]
    """The numbers that a kernel is given."""
    multiplies: bool = False
    """Whether it multiplies tiles: what it takes to load these has been measured lane by lane."""

    def of_block(self, op: triton.LoadBlockOp | triton.StoreBlockOp, times: float) -> Stream:
        """The stream of blocks that hardware moves, row by row, so many `times`."""
        made = op.descriptor.owner
        assert isinstance(made, triton.DescribeOp)
        tile = op.result if isinstance(op, triton.LoadBlockOp) else op.value
        rows, columns = shape_of(tile)
        cell = byte_size(element_of(tile))
        at = self.indices.of(op.row).numbers * made.stride.value.data
        at = at + self.indices.of(op.column).numbers + self.indices.of(made.base).numbers
        return Stream(
            buffer=self.places[made.pointer],
            writes=isinstance(op, triton.StoreBlockOp),
            cells=rows * columns,
            cell=cell,
            accesses=times,
            kept=1.0,
            run=columns * cell,
            vector=VECTOR,
            starts=at[self.columns.side_by_side],
            scattered=False,
        )

    def of_cells(
        self, op: triton.LoadOp | triton.StoreOp, times: float, kept: Mapping[str, float]
    ) -> Stream:
        """The stream of cells that lanes move; `kept` says which part of a block a mask keeps."""
        known = self.indices.of(op.offsets)
        pointer = op.pointer.type
        assert isinstance(pointer, triton.PointerType)
        along, run, vector = self.neighbours.of(op, known)
        # Lanes that read one cell read it once.
        same = [b for b in known.blocks if not self.columns.stride(known, b)]
        cells = prod(shape_of(op.offsets)) // prod(self.sizes[b] for b in same)
        share = 1.0 if op.mask is None else prod(kept.get(b, 1.0) for b in known.blocks)
        cell = byte_size(pointer.element_type)
        steps = self._steps(op)
        apart = along is None
        seen = self._seen(op, known, steps, apart) if isinstance(op, triton.LoadOp) else None
        if seen is not None:
            # All steps together, which is once for each of the loop's.
            cells, times, share = seen.cells, times / steps, 1.0
            run = max(cell, SECTOR * seen.cells * cell // seen.bytes)
        return Stream(
            buffer=self.places[op.pointer],
            writes=isinstance(op, triton.StoreOp),
            cells=max(1, cells),
            cell=cell,
            accesses=times,
            kept=share,
            run=run,
            vector=vector,
            starts=known.numbers[self.columns.side_by_side],
            scattered=known.loaded,
            along=along,
            leaves="" if op.evict is None else op.evict.data,
            backward=is_backward(op),
        )

    def _steps(self, op: Operation) -> int:
        """Of how many steps of a loop an operation is in the code; 1 outside of one."""
        loop = written_out(op)
        if loop is None:
            return 1
        start, end, size = (self.indices.of(v).numbers[0] for v in (loop.lb, loop.ub, loop.step))
        return max(1, int(-(-(end - start) // size)))

    def _seen(self, op: triton.LoadOp, known: Known, steps: int, apart: bool) -> Footprint | None:
        """What a load touches in a program, where lanes or steps may read the same.

        So they may where those that lie side by side are `apart`: lanes beyond them may lie between
        (`p % 4 * 1000 + p // 4`).
        """
        if known.loaded or self.multiplies:
            return None
        own = {block: self.sizes[block] for block in sorted(known.blocks)}
        strides = ((abs(self.columns.stride(known, b)), size) for b, size in own.items())
        assert isinstance(op.pointer.type, triton.PointerType)
        cell = byte_size(op.pointer.type.element_type)
        if not (steps > 1 or apart or overlaps(strides, cell)) or not Lanes.are_few(own, steps):
            return None
        middle = int(self.columns.pids[self.columns.spread][-1]) // 2
        return footprint(op, Lanes(middle, own, steps), self.arguments, self.sizes)
