"""How big a kernel's tiles are, chosen from extents: the schedule of a kernel that nobody tuned.

`Tiling(cells=2048)` bounds the cells of a tile; small problems get tiles that hold all of them, so
that they take few programs. On a GPU the default fits registers; Triton's interpreter, which pays
per operation and not per cell, is faster with large ones.

    >>> str(Tiling().fold(points=64, depth=10))
    'P = 64, K = 16, warps = 4, stages = 2'
    >>> str(Tiling().contraction(64, 32, 784, cell=2))
    'M = 64, N = 32, K = 64, warps = 4, stages = 3'
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import isqrt

from tapestry.dialects.triton import MAX_CELLS, Schedule

MIN_DOT = 16
"""The least side of a tile that `tl.dot` takes; smaller matrices are padded by masks."""

MIN_DEPTH = 32
"""The least depth of tiles of 8 bits a cell that it takes."""

HALF = 2
"""Bytes of a 16-bit float."""

MAX_THREADED = 64
"""The longest block of an inner fold of longer floats: threads hold what they multiply of it."""

MAX_RESIDENT = 256
"""The longest block of an axis that a program of a group holds whole."""

MAX_SHARED_BYTES = 227 * 1024
"""The shared memory that a program may use on Hopper."""

MAX_SIDE = 256
"""The most rows or columns of a block that hardware moves at once by a descriptor."""

RESIDENT_TILES = 8
"""How many times the cells of a tile a row may have that a program holds in registers."""

CELLS_PER_WARP = 512
"""Cells of a row per warp: 16 for each thread, of at most 16 warps."""

ALONE = 2
"""The warps of a program at one row of scores: on an H100 decoding took 706 us with these and loads
ahead of their step, 814 with 4 warps and loads in it (`results/schedules_h100.json`)."""

SIDE_BY_SIDE = 64
"""How many neighbouring cells a program reads at least, where it folds across memory."""

BESIDE = 4
"""How many times the cells of a tile those of K and another axis may be."""


def power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()


@dataclass(frozen=True)
class Tiling:
    """`cells` is the most that a tile of an elementwise kernel or a fold may have."""

    cells: int = 2048

    def points(self, points: int) -> Schedule:
        """That of an elementwise kernel over `points` cells."""
        return Schedule({"P": min(power_of_two(points), self.cells)}, stages=1)

    def sides(self, rows: int, columns: int) -> Schedule:
        """That of an elementwise kernel whose tensors have neighbours along rows or columns."""
        side = power_of_two(isqrt(self.cells))
        block_n = min(power_of_two(columns), side)
        block_m = min(power_of_two(rows), side * side // block_n)
        block_n = min(power_of_two(columns), side * side // block_m)
        return Schedule({"M": block_m, "N": block_n}, stages=1)

    def fold(self, points: int, depth: int, *, across: bool = False) -> Schedule:
        """That of a fold of `depth` values at each of `points` cells.

        A fold `across` memory, as of columns, has points that lie side by side: some in each
        program.
        """
        block_p = min(power_of_two(points), SIDE_BY_SIDE, self.cells) if across else 1
        block_k = min(power_of_two(depth), max(1, self.cells // block_p))
        block_p = min(power_of_two(points), max(block_p, self.cells // block_k))
        return Schedule({"P": block_p, "K": block_k})

    def rows(self, rows: int, cells: int, *, walks: int, across: bool) -> Schedule:
        """That of a kernel that walks rows of `cells` cells, `walks` times.

        A row that is walked more than once is *resident* if it fits the registers of a program:
        one block, read once, of which all walks are made, and several rows where they are short.
        Longer rows are read again by each walk. `across` is as in `fold`.
        """
        tile = self.fold(rows, cells, across=across).tile
        block_m, block_k = tile["P"], tile["K"]
        whole = power_of_two(cells)
        least = min(power_of_two(rows), SIDE_BY_SIDE, self.cells) if across else 1
        if walks > 1 and least * whole <= min(self.cells * RESIDENT_TILES, MAX_CELLS):
            block_m, block_k = max(least, min(power_of_two(rows), self.cells // whole)), whole
        warps = max(4, min(16, block_m * block_k // CELLS_PER_WARP))
        return Schedule({"M": block_m, "K": block_k}, warps=warps)

    def contraction(self, m: int, n: int, k: int, *, cell: int, split: bool = False) -> Schedule:
        """That of an m x n matrix product of depth k, of factors of so many bytes a `cell`.

        Matrix units take 16-bit factors: their tiles are larger, and two warpgroups share one. A
        warpgroup has registers for longer tiles of factors that it has to `split`.
        """
        side, depth = (128, 64) if cell <= HALF else (64, 32)
        if self.cells > side * side:
            side = depth = isqrt(self.cells)
        rows = max(side, 128) if split else side
        block_m, block_n, block_k = (
            max(min(power_of_two(extent), power_of_two(limit)), least_side(axis, cell))
            for axis, extent, limit in (("M", m, rows), ("N", n, side), ("K", k, depth))
        )
        return Schedule(
            {"M": block_m, "N": block_n, "K": block_k},
            warps=8 if block_m * block_n >= 128 * 128 else 4,
            stages=3,
        )

    def group(
        self,
        lengths: Mapping[str, int],
        *,
        cell: int,
        dots: bool,
        walks: int = 1,
        across: bool = False,
        spread: Collection[str] = (),
        split: bool = False,
    ) -> Schedule:
        """That of a group with axes of given lengths: rows M, the walked K, resident others.

        Without dots it is a fold's: as much of K as fits, and see `rows`. With dots, sides are what
        matrix units take, and resident axes (columns N, inner folds C) are held whole up to
        `MAX_RESIDENT`, of more than 16 bits a cell up to `MAX_THREADED`. A longer inner fold is
        walked for every block of K, as the depth of a matrix product is. Columns that programs are
        `spread` over are no longer than rows, as those of a matrix product. `cell` and `split` are
        as in `contraction`.
        """
        if not dots:
            # Where K is walked point by point, columns are the other side of a tile.
            depth = lengths.get("K", min(lengths.get("N", 1), MAX_RESIDENT))
            found = self.rows(lengths.get("M", 1), depth, walks=walks, across=across)
            held = {
                axis: min(power_of_two(length), MAX_RESIDENT)
                for axis, length in lengths.items()
                if axis not in ("M", "K")
            }
            tile = {axis: n for axis, n in found.tile.items() if axis in lengths}
            if held and "K" in tile:
                # Tiles are of blocks of K and of one of the others.
                most = max(MIN_DOT, self.cells * BESIDE // max(held.values()))
                tile["K"] = min(tile["K"], most)
            one_row = "M" not in lengths and any(axis.startswith("C") for axis in held)
            if one_row and lengths.get("K", 1) > tile.get("K", 1):
                # Of one row, what is summed within a step is soon done, and is waited for.
                found = replace(found, warps=ALONE, stages=2, pipeline="loads")
            return replace(found, tile=tile | held)
        half = cell <= HALF
        limits = {"M": 128, "K": 64} if half else {"M": 64, "K": 32}
        limits |= dict.fromkeys(spread, limits["M"])
        inner = [axis for axis in lengths if axis.startswith("C")]
        if not half:
            limits |= dict.fromkeys(inner, MAX_THREADED)
        deep = [axis for axis in inner if lengths[axis] > MAX_RESIDENT]
        if deep:
            limits |= dict.fromkeys(deep, limits["K"]) | {"K": 2 * limits["K"]}
        tile = {
            axis: max(MIN_DOT, min(power_of_two(length), limits.get(axis, MAX_RESIDENT)))
            for axis, length in lengths.items()
        }
        # Float32 is multiplied by threads, which hold what they multiply; or taken apart, by each
        # warpgroup for its own rows.
        warps = 8 if tile["M"] >= 128 or not (half or split) else 4
        stages = 3 if half else 2
        deep = [axis for axis in inner if tile[axis] < lengths[axis]]
        while stages > 1 and group_bytes(tile, deep, stages, cell=cell) > MAX_SHARED_BYTES:
            stages -= 1
        return Schedule(tile, warps=warps, stages=stages)


def least_side(axis: str, cell: int) -> int:
    """The least side of a tile of factors that `tl.dot` takes along an axis."""
    return MIN_DEPTH if axis == "K" and cell == 1 else MIN_DOT


def group_bytes(tile: Mapping[str, int], deep: Collection[str], stages: int, *, cell: int) -> int:
    """The shared memory of a group's dots: rows once, what is walked once per stage.

    `deep` are the inner folds that are walked.
    """
    other = sum(size for axis, size in tile.items() if axis not in ("M", "K"))
    inner = sum(size for axis, size in tile.items() if axis.startswith("C"))
    rows = tile["M"] * inner * (stages if deep else 1)
    return cell * (rows + stages * tile.get("K", 1) * other)
