"""Blocks on arrays: `loom.read` as a gather with a range check.

    wrap (%id: i64, %rows: !loom.block<[50, 1], f32>) { %v = loom.read %rows[%id, %zero] : f32 ... }

Each point of an index range selects a box; the indices, arrays over the range, count from the first
cell of each point's own box.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tapestry.diagnostics import Location, TapestryError
from tapestry.runtime.arrays.access import cells
from tapestry.runtime.arrays.gathering import gather, positions
from tapestry.runtime.arrays.taking import taken
from tapestry.runtime.executor import Array
from tapestry.zspace import Projection, Range

ELSE_HINT = (
    "places count from 0; in a program's text, `else` says what is read outside: "
    "loom.read %block[...] else %value"
)


class BlockIndexError(TapestryError):
    """A `loom.read` without `else` asked for a cell outside its block."""

    kind = "block_index"


@dataclass(frozen=True, eq=False)
class BlockCells:
    """The box of `data` (which stores `box`) that each point of `index` selects.

    `fill` is the cell outside the tensor, None where the boxes lie inside; `needed` says which
    points count, None when all do: only their indices must be inside.
    """

    data: Array
    box: Range
    projection: Projection
    index: Range
    fill: Array | None
    needed: Array | None = None

    @cached_property
    def first(self) -> list[Array]:
        """Where each point's box starts, per dimension."""
        return positions(self.projection.map, self.index)

    @property
    def is_inside(self) -> bool:
        """Whether every point's box is inside the tensor, and has cells."""
        empty = self.box.is_empty or self.index.is_empty or 0 in self.projection.shape
        return self.fill is None and not empty

    @cached_property
    def corners(self) -> Array:
        """A view of the first cell of each point's box; they are inside."""
        return cells(self.data, self.box, Projection.cells(self.projection.map), self.index)

    def read(
        self, indices: Sequence[Array], otherwise: Array | None, place: Location | None
    ) -> Array:
        """The cells at some indices; one outside is `otherwise`, or else a BlockIndexError.

        `place` is where that is asked for.
        """
        if otherwise is None and self.fill is None:
            found = self._within(indices)
            if found is not None:
                return found
        inside: Array = np.asarray(True)
        at: list[Array] = []
        rows = zip(indices, self.first, self.projection.shape, strict=True)
        for index, first, extent in rows:
            fits = (index >= 0) & (index < extent)
            wrong = ~fits if self.needed is None else ~fits & self.needed
            if otherwise is None and wrong.any():
                at_first = int(np.broadcast_to(index, wrong.shape)[wrong][0])
                raise _outside(place, extent, at_first)
            inside = inside & fits
            at.append(first + np.clip(index, 0, max(extent - 1, 0)))
        fill = np.zeros((), self.data.dtype) if self.fill is None else self.fill
        found = gather(self.data, self.box, at, fill)
        return found if otherwise is None else np.where(inside, found, otherwise)

    def _within(self, indices: Sequence[Array]) -> Array | None:
        """The cells at some indices, None unless all are inside."""
        at: list[Array] = []
        rows = zip(indices, self.first, self.projection.shape, self.box.start, strict=True)
        for index, first, extent, low in rows:
            # What is negative is a large number without a sign.
            if index.size and int(index.view(np.uint64).max()) >= extent:
                return None
            shift = first - low
            is_none = shift.size == 1 and shift.ndim <= index.ndim and not shift.any()
            at.append(index if is_none else index + shift)
        return taken(self.data, at)


def boxes_of(boxes: BlockCells, data: Array) -> BlockCells:
    """The same boxes of another array."""
    other = copy(boxes)
    other.__dict__["data"] = data
    return other


def gathered(rank: int, place: Location | None, block: BlockCells, *operands: Array) -> Array:
    """A read at so many indices; after these comes what is outside, if it is said."""
    otherwise = operands[rank] if len(operands) > rank else None
    return block.read(operands[:rank], otherwise, place)


def counted(rank: int, place: Location | None, block: BlockCells, *operands: Array) -> Array:
    """A read at so many indices; after these comes which points count: others may be outside."""
    return replace(block, needed=operands[rank]).read(operands[:rank], None, place)


def _outside(place: Location | None, extent: int, index: int) -> BlockIndexError:
    there = f"from 0 to {extent - 1}" if extent else "none"
    # Who counted from the end gave another one, to which the extent was added.
    given = f"; counted from the end, it is {index - extent}" if index < 0 else ""
    return BlockIndexError(
        f"index {index} is out of range: those that are there are {there}{given}",
        location=place,
        hint=ELSE_HINT,
    )
