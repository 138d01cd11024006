"""Rows that are shorter than a vector, one after another, gone along as one long row.

    rows = ShortRows(write, graph, layout, (pointers, values))
    rows.along(extent, point)       # point(at, {slot: vector}) writes what is computed at a place
    rows.fold(extent, point, put)   # put(row, values) what so many rows from one on fold to

Of inputs that have the same cells in each row, or one cell for each, vectors have elements again
and again. After some vectors their order begins anew, and with it the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tapestry.codegen.loops.folding import Row, vectors_of
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Fetch, Graph, Layout
from tapestry.codegen.loops.row_folds import RowFolds
from tapestry.codegen.loops.vectors import BYTES, WIDTH, Value

Arranged: TypeAlias = dict[int, Value]
"""What inputs that are repeated or spread, and cells of these alone, are in a vector, by slot."""


class ShortRows:
    """Rows of a layout's `columns`; where arrays are, and what is known outside of them."""

    def __init__(self, write: Function, graph: Graph, layout: Layout, row: Row) -> None:
        self._write = write
        self._graph = graph
        self._layout = layout
        self._pointers, self._values = row
        self._columns = layout.columns
        self._cells = self._of_columns()
        starts = range(0, vectors_of(layout.columns) * WIDTH, WIDTH)
        every = [[(start + n) % layout.columns for n in range(WIDTH)] for start in starts]
        self._patterns = [self._picked(self._cells, order) for order in every]

    def along(self, extent: str, point: Callable[[str, Arranged], object]) -> None:
        """All cells of the rows: as many rows at once as fill whole vectors, then one by one.

        What is the same in each row is read once, and computed once.
        """
        self._along("0", extent, point)

    def fold(
        self,
        extent: str,
        point: Callable[[str, Arranged], Mapping[int, Value]],
        put: Callable[[str, Sequence[Value]], None],
    ) -> None:
        """The same, where rows are folded, as many at once as a vector has elements.

        `point` gives what is folded, by slot. `put` writes what it comes to: the elements of
        vectors, as many as there are rows, from the one with a number on.
        """
        write, rows = self._write, RowFolds(self._write, self._graph, self._columns)
        with write.loop(extent, WIDTH * self._columns) as first:
            end = write.arithmetic("add", first, str(WIDTH * self._columns))
            end = write.least(end, extent)

            def keep(at: str, arranged: Arranged) -> None:
                rows.keep(write.arithmetic("sub", at, first), point(at, arranged))

            self._along(first, end, keep)
            number, after = (
                write.arithmetic("udiv", at, str(self._columns)) for at in (first, end)
            )
            values = rows.values()
            with write.rest(number, after):
                put(number, values)

    def _along(self, start: str, end: str, point: Callable[[str, Arranged], object]) -> None:
        """Cells from one place to another, where rows begin."""
        write, columns, arranged = self._write, self._columns, self._layout.arranged
        size = WIDTH * (len(self._patterns) if arranged else 1)
        length = write.arithmetic("sub", end, start)
        whole = write.arithmetic("mul", write.arithmetic("udiv", length, str(size)), str(size))
        whole = write.arithmetic("add", start, whole)
        if not arranged:
            with write.loop(whole, size, start) as at:
                point(at, {})
            with write.rest(whole, end):
                point(whole, {})
            return
        with write.loop(whole, size, start) as at:
            spread = self._of_rows(at, size // columns)
            for number, pattern in enumerate(self._patterns):
                order = [(number * WIDTH + lane) // columns for lane in range(WIDTH)]
                place = write.arithmetic("add", at, str(number * WIDTH))
                point(place, pattern | self._picked(spread, order))
        with write.loop(end, columns, whole) as at, write.of(columns):
            point(at, self._cells | self._picked(self._of_rows(at, 1), [0] * columns))

    def _picked(self, vectors: Arranged, order: list[int]) -> Arranged:
        return {slot: self._write.picked(value, order) for slot, value in vectors.items()}

    def _of_columns(self) -> Arranged:
        """What is repeated: vectors of an element for each column."""
        write, kinds, repeated = self._write, self._graph.inputs, self._layout.repeated
        with write.of(self._columns):
            read = {a: write.load(self._pointers[a], kinds[a], wide=True) for a in repeated}
            return self._computed(read)

    def _of_rows(self, at: str, rows: int) -> Arranged:
        """What is spread over so many rows from a place on: vectors of an element for each."""
        write, read = self._write, Arranged()
        first = write.arithmetic("udiv", at, str(self._columns))
        with write.of(rows):
            for array in self._layout.spread:
                kind = self._graph.inputs[array]
                pointer = write.moved(self._pointers[array], first, str(BYTES[kind]))
                read[array] = write.load(pointer, kind, wide=True)
            return self._computed(read)

    def _computed(self, read: Arranged) -> Arranged:
        """What is read, and the cells that are computed of it and of what is known outside."""
        found, first = dict(read), len(self._graph.inputs) + len(self._graph.numbers)
        for slot, cell in enumerate(self._graph.cells, first):
            of_these = any(one in found for one in cell.ins)
            if of_these and all(one in found or one in self._values for one in cell.ins):
                assert not isinstance(cell, Fetch)  # rows are of no loop that has boxes
                known = [found.get(one) or self._values[one] for one in cell.ins]
                found[slot] = cell.emit(self._write, known)
        return found
