"""Operations of lanes, cell by cell, whatever the warps that share them.

lanes = Lanes()
lanes.add(Cells(64 * 64), 16.0)     # of a tile, in each of 16 steps
lanes.add(Cells(64), 1.0)           # of a row: each of more threads than that does one
lanes.of(warps=4)                   # 16 * 4096 + 128
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tapestry.passes.triton.cost.work import WARP_ROWS


class Cells(NamedTuple):
    """The cells of a tile, 0 for a number, and the rows of a product that they are computed of.

    Where a product feeds another one, warps lie along its rows alone: those that there are no rows
    for do what others do.
    """

    number: int
    rows: int = 0

    def lanes(self, warps: int) -> int:
        """The lanes of so many warps that compute them: all, if there are fewer cells."""
        if not self.number:
            return 0
        return max(self.number, 32 * warps) * repeats(self.rows, warps)


@dataclass
class Lanes:
    """How often each operation is done of tiles of so many cells."""

    counts: dict[Cells, float] = field(default_factory=dict[Cells, float])

    def add(self, cells: Cells, count: float) -> None:
        """Count an operation of some cells so often."""
        self.counts[cells] = self.counts.get(cells, 0.0) + count

    def of(self, warps: int) -> float:
        """The operations of so many warps."""
        return sum(cells.lanes(warps) * count for cells, count in self.counts.items())


def repeats(rows: int, warps: int) -> int:
    """How many warps compute the same rows of a product; one where it has none, or enough."""
    return max(1, WARP_ROWS * warps // rows) if rows else 1


_SPLIT = 14
"""Operations that take a cell of float32 apart: twice its first bits, within bounds, and the rest;
most are done at half the rate of sums."""


def split_lanes(m: int, n: int, k: int, warps: int) -> float:
    """Operations of lanes that take the factors of a product apart, and sum the product up."""
    # Warps that share rows take these apart each.
    rows = max(m, WARP_ROWS * warps)
    return _SPLIT * k * (rows + n) + m * n
