"""What rows of few cells fold to, of as many rows at once as a vector has elements.

    rows = RowFolds(write, graph, columns=10)
    rows.keep(at, values)           # what is folded of cells that are so many after the first
    for value in rows.values():     # vectors of an element for each row
        ...

Values of all cells are in the function's own memory first, one row after another. From there
vectors have one row each or more, with as many elements for one as a power of two. Of two vectors,
the first halves of all rows are merged with the second halves: that makes one vector, of twice as
many rows, until there is an element for each. Of few cells that are no power of two the first ones
of all rows are picked, and so on: that is fewer instructions than to read rows one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tapestry.codegen.loops.accumulating import Accumulator, Parts, accumulators
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Graph
from tapestry.codegen.loops.vectors import BYTES, WIDTH, Value, register

_PICKED = 4
"""Elements for a row up to which cells are picked, if there are fewer of these."""


@dataclass(frozen=True)
class _Fold:
    """One fold: the slots of its values, the parts of nothing, and memory for parts of vectors."""

    slots: Sequence[int]
    how: Accumulator
    none: Parts
    vectors: Sequence[str]


class RowFolds:
    """The folds of rows that have `columns` cells each, fewer than a vector has elements."""

    def __init__(self, write: Function, graph: Graph, columns: int) -> None:
        self._write = write
        self._columns = columns
        self._each = 1 << (columns - 1).bit_length()
        """Elements of a vector for one row."""
        self._is_picked = columns < self._each <= _PICKED
        # What is read of the last row may be more than its cells.
        count = columns * WIDTH + self._each
        kinds = {slot: register(graph.kinds[slot]) for slot in graph.folded}
        self._cells = {
            slot: (write.place(f"[{count} x {kind}]"), kind) for slot, kind in kinds.items()
        }
        self._folds: list[_Fold] = []
        for fold, how in zip(graph.folds, accumulators(graph), strict=True):
            pairs = zip(fold.slots, fold.zeros, strict=True)
            none = how.lift(write, [write.number(zero, graph.kinds[slot]) for slot, zero in pairs])
            room, between = self._each // 2 * WIDTH, () if self._is_picked else none
            vectors = [write.place(f"[{room} x {part.kind}]") for part in between]
            self._folds.append(_Fold(fold.slots, how, none, vectors))

    def keep(self, at: str, values: Mapping[int, Value]) -> None:
        """Have the values of cells, by slot, that are so many cells after the first.

        These stores are volatile as LLVM calls a function that copies where values are an array's:
        that took twice as long as to fold them.
        """
        for slot, (memory, kind) in self._cells.items():
            value, to = values[slot], self._write.moved(memory, at, str(BYTES[kind]))
            self._write.line(f"store volatile {value.type} {value.name}, ptr {to}, align 1")

    def values(self) -> list[Value]:
        """What the rows fold to: vectors of an element for each."""
        found: list[Value] = []
        for fold in self._folds:
            parts = self._of_columns(fold) if self._is_picked else self._of_halves(fold)
            # A sum starts from zero, which shows where all cells are -0.
            none = [self._write.widened(part) for part in fold.none]
            found += fold.how.finish(self._write, fold.how.merge(self._write, none, parts))
        return found

    def _of_halves(self, fold: _Fold) -> Parts:
        """All rows, halves with halves."""
        write, each = self._write, self._each
        while each > 1:
            with write.loop(str(each // 2), 1) as number:
                first = write.arithmetic("mul", number, "2")
                pair = first, write.arithmetic("add", first, "1")
                read = self._rows if each == self._each else self._vectors
                self._put(fold, number, self._halved(fold.how, [read(fold, n) for n in pair], each))
            each //= 2
        return self._vectors(fold, "0")

    def _halved(self, how: Accumulator, pair: Sequence[Parts], each: int) -> Parts:
        """The first halves of rows of two vectors, with so many elements each, and the second."""
        write, half = self._write, each // 2
        both = [write.joined(*parts) for parts in zip(*pair, strict=True)]
        starts = [start for start in range(2 * WIDTH) if start % each < half]
        first, second = (
            [write.picked(part, [start + away for start in starts]) for part in both]
            for away in (0, half)
        )
        return how.merge(write, first, second)

    def _rows(self, fold: _Fold, number: str) -> Parts:
        """Some rows from memory; what has no cell is nothing."""
        write, columns, each = self._write, self._columns, self._each
        rows = WIDTH // each
        first = write.arithmetic("mul", number, str(rows * columns))
        places = [write.arithmetic("add", first, str(row * columns)) for row in range(rows)]
        values: list[Value] = []
        for slot in fold.slots:
            memory, kind = self._cells[slot]
            if each == columns:
                values.append(self._read(memory, first, kind))
                continue
            with write.of(each):
                several = [self._read(memory, place, kind) for place in places]
            while len(several) > 1:
                several = list(map(write.joined, several[::2], several[1::2]))
            values += several
        parts = fold.how.enter(write, values)
        if each == columns:
            return parts
        bits = ", ".join(f"i1 {element % each < columns:d}" for element in range(WIDTH))
        has = Value(f"<{bits}>", "i1", wide=True)
        return [write.chosen(has, *pair) for pair in zip(parts, fold.none, strict=True)]

    def _of_columns(self, fold: _Fold) -> Parts:
        """All rows, column by column."""
        write, columns = self._write, self._columns
        every: list[list[Value]] = []
        for slot in fold.slots:
            memory, kind = self._cells[slot]
            with write.of(columns * WIDTH):
                flat = self._read(memory, "0", kind)
            orders = [range(first, columns * WIDTH, columns) for first in range(columns)]
            every.append([write.picked(flat, order) for order in orders])
        parts = [fold.how.enter(write, own) for own in zip(*every, strict=True)]
        total = parts[0]
        for part in parts[1:]:
            total = fold.how.merge(write, total, part)
        return total

    def _vectors(self, fold: _Fold, number: str) -> Parts:
        place = self._write.arithmetic("mul", number, str(WIDTH))
        pairs = zip(fold.vectors, fold.none, strict=True)
        return [self._read(memory, place, part.kind) for memory, part in pairs]

    def _put(self, fold: _Fold, number: str, parts: Parts) -> None:
        place = self._write.arithmetic("mul", number, str(WIDTH))
        for memory, part in zip(fold.vectors, parts, strict=True):
            to = self._write.moved(memory, place, str(BYTES[part.kind]))
            self._write.line(f"store {part.type} {part.name}, ptr {to}, align 1")

    def _read(self, memory: str, at: str, kind: str) -> Value:
        """Neighbours from a place of the function's own memory."""
        write = self._write
        there = write.moved(memory, at, str(BYTES[kind]))
        text = f"load <{write.lanes} x {kind}>, ptr {there}, align 1"
        return write.made(text, kind, wide=True)
