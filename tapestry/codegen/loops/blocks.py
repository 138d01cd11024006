"""Sums of products as nests of loops over blocks, for which both factors are copied first.

    define void @loop(ptr %arguments)       # as in `products`

The numbers of the second factor are all copied, tile by tile. Then, block by block, so is the first
factor, into a panel: what lies apart in memory is next to each other there, zeros outside are cells
like others, and what is computed of arrays is computed once. A panel stays in a cache for all tiles
of a block. So the innermost loop is loads of vectors and numbers, and products.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from tapestry.codegen.loops.graphs import Graph
from tapestry.codegen.loops.guarded import Vectors
from tapestry.codegen.loops.products import Point, Pointers, Products
from tapestry.codegen.loops.tiles import SCATTERED, At, Tiles
from tapestry.codegen.loops.vectors import BYTES, Value

_PANEL = -1
"""The number of the panel among arrays."""


def block_text(wrap: Graph, unwrap: Graph, tiles: Tiles) -> str:
    """A module with the function `loop`, as `product_text` says; tiles have a `panel`."""
    return _Blocks(wrap, unwrap, tiles).text()


class _Blocks(Products):
    def __init__(self, wrap: Graph, unwrap: Graph, tiles: Tiles) -> None:
        super().__init__(wrap, unwrap, tiles)
        assert tiles.panel is not None
        self._panel = tiles.panel
        self._packs_at = -2  # not at the level of a tile
        self._starts: dict[int, str] = {}
        """Per dimension of blocks, the first place of the one at hand."""
        self._sizes: dict[int, str] = {}
        self._numbers: dict[int, str] = {}
        """Per dimension of the second factor alone, the number of the tile at hand."""

    def _level(self, dim: int, pointers: Pointers) -> None:
        if dim == self._panel.outer and not self._starts:
            self._blocks(pointers)
            self._starts = {}
        elif dim in self._panel.dims:
            self._tiled(dim, self._sizes[dim], pointers)
        else:
            super()._level(dim, pointers)

    def _blocks(self, pointers: Pointers) -> None:
        """The loops over blocks."""
        write, panel = self._write, self._panel
        self._pack_all(0, {}, pointers)
        with ExitStack() as loops:
            starts: dict[int, str] = {}
            for dim in panel.dims:
                extent = self._extents[dim]
                size = self._least_signed(self._known["block", 0, dim], extent)
                at = loops.enter_context(write.loop(extent, size))
                starts[dim] = self._least_signed(at, write.arithmetic("sub", extent, size))
                self._sizes[dim] = size
            self._starts = starts
            self._fill(pointers)
            cells = self._cells()
            for number, terms in enumerate(panel.coordinates):
                if (least := self._least_of(terms)) is not None:
                    first = write.arithmetic("sub", "0", least)
                    cells = write.moved(cells, first, self._pace(number))
            self._level(panel.outer, {**pointers, (_PANEL, (0,) * panel.outer): cells})

    def _cells(self) -> str:
        """Where the panel is."""
        return self._write.moved(super()._room(), self._known["panel", 0, 0], "1")

    def _inside(self, dim: int, places: list[str], pointers: Pointers) -> None:
        write, panel = self._write, self._panel
        if dim in panel.dims:
            start = self._starts[dim]
            self._places[dim:] = [[write.arithmetic("add", start, one) for one in places]]
            # The panel begins where the block does.
            cells = {key: p for key, p in pointers.items() if key[0] == _PANEL}
            others = {key: p for key, p in pointers.items() if key[0] != _PANEL}
            spread = self._spread(dim, self._places[dim], others)
            self._enter(dim, spread | self._spread(dim, places, cells))
            return
        if dim >= panel.outer:
            # That of the last tile, whose places end where the dimension does, is rounded up.
            tile = self._tiles.kept[dim]
            last = write.arithmetic("add", places[0], str(tile - 1))
            self._numbers[dim] = write.arithmetic("udiv", last, str(tile))
        super()._inside(dim, places, pointers)

    def _moves(self, array: int, dim: int) -> bool:
        return (
            self._panel.factor(dim) is not None if array == _PANEL else super()._moves(array, dim)
        )

    def _stride(self, array: int, dim: int) -> str:
        if array != _PANEL:
            return super()._stride(array, dim)
        found = self._panel.factor(dim)
        assert found is not None
        number, factor = found
        pace = self._pace(number)
        return pace if factor == 1 else self._write.arithmetic("mul", pace, str(factor))

    def _pace(self, coordinate: int) -> str:
        """By how many bytes a coordinate moves in the panel."""
        if coordinate == len(self._panel.coordinates) - 1:
            return str(BYTES[self._kind])
        return self._known["pace", 0, coordinate]

    def _of(self, side: int, pointers: Pointers) -> dict[tuple[int, At], str]:
        if side:
            return super()._of(side, pointers)
        return {(array, at): p for (array, at), p in pointers.items() if array == _PANEL}

    def _vector(self, at: At, point: Point) -> Value:
        return self._write.load(point.pointers[_PANEL, at], self._kind, wide=True)

    def _room(self) -> str:
        """Where the numbers of the second factor are, of the tile at hand."""
        write, tiles = self._write, self._tiles
        number = "0"
        for dim, own in self._numbers.items():
            if self._moved_by_second(dim):
                number = write.arithmetic("mul", number, self._count(dim))
                number = write.arithmetic("add", number, own)
        size = str(len(self._seconds) * BYTES[self._kind])
        for place in range(len(tiles.folded)):
            size = write.arithmetic("mul", size, self._end(place))
        return write.moved(super()._room(), number, size)

    def _moved_by_second(self, dim: int) -> bool:
        return any(self._tiles.arrays[one].moves[dim] for one in self._sides[1])

    def _count(self, dim: int) -> str:
        """How many tiles there are along a dimension."""
        tile = self._tiles.kept[dim]
        last = self._write.arithmetic("add", self._extents[dim], str(tile - 1))
        return self._write.arithmetic("udiv", last, str(tile))

    def _pack_all(self, dim: int, numbers: dict[int, str], pointers: Pointers) -> None:
        """Copy the numbers of the second factor, from a kept dimension on."""
        tiles, panel = self._tiles, self._panel
        if dim == len(tiles.kept):
            self._numbers = numbers
            self._pack(pointers)
            self._numbers = {}
            return
        if dim < panel.outer or dim in panel.dims or not self._moved_by_second(dim):
            further = pointers
            if dim >= panel.outer:
                further = {(array, (*at, 0)): one for (array, at), one in pointers.items()}
            self._pack_all(dim + 1, numbers, further)
            return
        write, tile, extent = self._write, tiles.kept[dim], self._extents[dim]
        with write.loop(extent, tile) as at:
            places = self._numbered(at, extent, tile)
            number = write.arithmetic("udiv", at, str(tile))
            further = self._spread(dim, places, super()._of(1, pointers))
            self._pack_all(dim + 1, {**numbers, dim: number}, further)

    def _fill(self, pointers: Pointers) -> None:
        """Copy the first factor for a block."""
        write, tiles, panel = self._write, self._tiles, self._panel
        lies = {
            array: self._moved_to_block(array, pointer)
            for (array, _), pointer in super()._of(0, pointers).items()
        }
        kept = [self._place(dim) for dim in range(len(tiles.kept))]
        spans = [self._span(terms) for terms in panel.coordinates]
        *others, last = range(len(spans))
        cells = self._cells()
        places: list[str] = []
        with ExitStack() as loops:
            for number in others:
                at = loops.enter_context(write.loop(spans[number], 1))
                cells = write.moved(cells, at, self._pace(number))
                places.append(self._coordinate(number, at))
                lies = self._along_coordinate(lies, number, places[-1])
            at = loops.enter_context(write.loop(spans[last], tiles.lanes))
            places.append(self._coordinate(last, at))
            lies = self._along_coordinate(lies, last, places[-1])
            left = write.arithmetic("sub", spans[last], at)
            count = len(tiles.kept) + len(spans)
            vectors = Vectors(
                write,
                replace(
                    tiles,
                    kept=(1,) * count,
                    folded=(),
                    arrays=panel.arrays,
                    short=True,
                    summed=True,
                    panel=None,
                ),
                self._strides_of_lanes(count - 1),
            )

            where = [*kept, *places]

            def copied(*, whole: bool) -> None:
                def read(array: int) -> Value:
                    number = self._sides[0].index(array)
                    mask = None if whole else vectors.inside(number, where, left)
                    return vectors.read(number, self._kinds[array], lies[array], mask)

                there = write.moved(cells, at, str(BYTES[self._kind]))
                write.store(write.widened(self._factor(0, read)), there, self._kind)

            # Masks take longer than what they are for, and few vectors need one.
            whole = vectors.whole(range(len(panel.arrays)), where, left)
            with write.when(f"icmp ne i1 {whole}, false"):
                copied(whole=True)
            with write.when(f"icmp eq i1 {whole}, false"):
                copied(whole=False)

    def _strides_of_lanes(self, vector: int) -> dict[tuple[str, int, int], str]:
        """What the arrays of the first factor have for arguments, by their numbers in the panel."""
        found: dict[tuple[str, int, int], str] = {}
        for number, (array, access) in enumerate(
            zip(self._sides[0], self._panel.arrays, strict=True)
        ):
            for guard in range(len(access.guards)):
                found["limit", number, guard] = self._known["limit", array, guard]
            if access.step == SCATTERED:
                found["stride", number, vector] = self._stride(array, self._tiles.vector)
        return found

    def _place(self, dim: int) -> str:
        """The place of a block's first cell along a kept dimension."""
        if dim in self._starts:
            return self._starts[dim]
        return self._places[dim][0] if dim < self._panel.outer else "0"

    def _moved_to_block(self, array: int, pointer: str) -> str:
        for dim, start in self._starts.items():
            if super()._moves(array, dim):
                pointer = self._write.moved(pointer, start, self._stride(array, dim))
        return pointer

    def _along_coordinate(self, lies: dict[int, str], number: int, at: str) -> dict[int, str]:
        """Where arrays are further on along a coordinate."""
        write = self._write
        found: dict[int, str] = {}
        for array, pointer in lies.items():
            found[array] = pointer
            for dim, factor in self._panel.coordinates[number]:
                if super()._moves(array, dim):
                    stride = self._stride(array, dim)
                    if factor != 1:
                        stride = write.arithmetic("sdiv", stride, str(factor))
                    found[array] = write.moved(pointer, at, stride)
                    break
        return found

    def _coordinate(self, number: int, at: str) -> str:
        """The coordinate of a place in the panel."""
        least = self._least_of(self._panel.coordinates[number])
        return at if least is None else self._write.arithmetic("add", at, least)

    def _least_of(self, terms: Sequence[tuple[int, int]]) -> str | None:
        """The least that a coordinate is in a block, if that is less than 0."""
        found = [(dim, factor) for dim, factor in terms if factor < 0]
        if not found:
            return None
        last = self._write.arithmetic("sub", self._span(found), "1")
        return self._write.arithmetic("sub", "0", last)

    def _span(self, terms: Sequence[tuple[int, int]]) -> str:
        """How many cells a coordinate has in a block."""
        write, kept = self._write, len(self._tiles.kept)
        total = "1"
        for dim, factor in terms:
            extent = self._sizes[dim] if dim < kept else self._end(dim - kept)
            last = write.arithmetic("sub", extent, "1")
            step = write.arithmetic("mul", last, str(abs(factor)))
            total = write.arithmetic("add", total, step)
        return total
