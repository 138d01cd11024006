"""Tiles of arrays whose neighbours lie across the last axis, transposed to lie along it.

    tiles = TransposedTiles(write, {0: "float"}, strides)
    tiles.fill(0, pointer, rows, columns)       # reads lines of memory whole
    with tiles.at(row):
        tiles.pointer(0)                        # neighbours along the row: WIDTH of them

A vector of such an array would take a line of memory for each of its elements, and use one number
of each. So what a loop is about to read of it, some rows of a vector, is copied before: lines as
they lie, by squares that are turned in registers. It stays in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.vectors import BYTES, LINE, WIDTH, Value, held_as

ROWS = 64
"""Rows of a tile: so many neighbours are some lines, of which two at most are read in part."""

_SIDE = 16
"""The most rows of a square: as many numbers of 32 bits are a line."""


class TransposedTiles:
    """Memory of a function's own for a tile of each array, by the type of its cells.

    `strides` are the bytes from a column to the next; from a row to the next it is those of a cell.
    """

    def __init__(self, write: Function, kinds: Mapping[int, str], strides: Mapping[int, str]):
        self._write = write
        self._kinds = {array: held_as(kind) for array, kind in kinds.items()}
        self._strides = strides
        self._memory = {
            array: write.place(f"[{ROWS * WIDTH} x {kind}]") for array, kind in self._kinds.items()
        }
        self._row: dict[int, str] = {}

    def __contains__(self, array: int) -> bool:
        """Whether an array is read by tiles, and the loop is at a row of them."""
        return array in self._row

    def pointer(self, array: int) -> str:
        """The first cell of the row that the loop is at."""
        return self._row[array]

    @contextmanager
    def at(self, row: str) -> Generator[None]:
        """Instructions inside are for a row of each tile."""
        self._row = {
            array: self._write.moved(memory, row, str(WIDTH * BYTES[self._kinds[array]]))
            for array, memory in self._memory.items()
        }
        yield
        self._row = {}

    def fill(self, array: int, pointer: str, rows: str, columns: str) -> None:
        """Copy so many rows and columns, from those on that begin at a pointer."""
        write, kind = self._write, self._kinds[array]
        side = min(_SIDE, LINE // BYTES[kind])
        squares = write.arithmetic("and", rows, str(-side))
        across = write.arithmetic("and", columns, str(-side))
        with write.loop(across, side) as column:
            with write.loop(squares, side) as row:
                self._square(array, pointer, row, column, side)
            with write.loop(rows, 1, squares) as row, write.loop(str(side), 1) as more:
                self._cell(array, pointer, row, write.arithmetic("add", column, more))
        with write.loop(columns, 1, across) as column, write.loop(rows, 1) as row:
            self._cell(array, pointer, row, column)

    def _cell(self, array: int, pointer: str, row: str, column: str) -> None:
        write, kind = self._write, self._kinds[array]
        value = write.load(self._from(array, pointer, row, column), kind, wide=False)
        write.store(value, self._to(array, row, column), kind)

    def _square(self, array: int, pointer: str, row: str, column: str, side: int) -> None:
        """Read columns, each of neighbours, and write rows.

        To turn a square, the numbers of its first half of lines are put between those of the other
        half, as often as halves of it can be taken.
        """
        write, kind = self._write, self._kinds[array]
        first, lines = self._from(array, pointer, row, column), list[Value]()
        for number in range(side):
            place = self._write.moved(first, str(number), self._strides[array])
            write.prefetch(self._write.moved(place, str(WIDTH), self._strides[array]))
            text = f"load <{side} x {kind}>, ptr {place}, align 1"
            lines.append(Value(write.made(text, kind, wide=False).name, kind, True, side))
        for _ in range(side.bit_length() - 1):
            halves = zip(lines[: side // 2], lines[side // 2 :], strict=True)
            lines = [self._between(a, b, at) for a, b in halves for at in (0, side // 2)]
        for number, line in enumerate(lines):
            place = self._to(array, write.arithmetic("add", row, str(number)), column)
            write.line(f"store {line.type} {line.name}, ptr {place}, align 1")

    def _between(self, left: Value, right: Value, start: int) -> Value:
        """The numbers of one half of a line and another, in turns."""
        side = left.lanes
        order = ", ".join(f"i32 {start + n // 2 + n % 2 * side}" for n in range(side))
        said = f"{left.type} {left.name}, {right.type} {right.name}"
        text = f"shufflevector {said}, <{side} x i32> <{order}>"
        return Value(self._write.made(text, left.kind, wide=False).name, left.kind, True, side)

    def _from(self, array: int, pointer: str, row: str, column: str) -> str:
        """Where a cell is in memory."""
        pointer = self._write.moved(pointer, column, self._strides[array])
        return self._write.moved(pointer, row, str(BYTES[self._kinds[array]]))

    def _to(self, array: int, row: str, column: str) -> str:
        """Where it is in the tile."""
        size = BYTES[self._kinds[array]]
        pointer = self._write.moved(self._memory[array], row, str(WIDTH * size))
        return self._write.moved(pointer, column, str(size))
