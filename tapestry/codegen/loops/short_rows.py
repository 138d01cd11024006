"""Rows that are shorter than a vector, one after another, gone along as one long row.

    rows = ShortRows(write, graph, layout, (pointers, values))
    rows.along(extent, point)       # point(at, {slot: vector}) writes what is computed at a place

Of inputs that have the same cells in each row, or one cell for each, vectors have elements again
and again. After some vectors their order begins anew, and with it the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tapestry.codegen.loops.folding import Row, vectors_of
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Fetch, Graph, Layout
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

    def along(self, extent: str, point: Callable[[str, Arranged], None]) -> None:
        """All cells of the rows: as many rows at once as fill whole vectors, then one by one.

        What is the same in each row is read once, and computed once.
        """
        write, columns = self._write, self._columns
        size = vectors_of(columns) * WIDTH
        whole = write.arithmetic("mul", write.arithmetic("udiv", extent, str(size)), str(size))
        cells = self._of_columns()
        starts = range(0, size, WIDTH)
        every = [[(start + lane) % columns for lane in range(WIDTH)] for start in starts]
        patterns = [self._picked(cells, order) for order in every]
        with write.loop(whole, size) as at:
            spread = self._of_rows(at, size // columns)
            for start, pattern in zip(starts, patterns, strict=True):
                order = [(start + lane) // columns for lane in range(WIDTH)]
                place = write.arithmetic("add", at, str(start))
                point(place, pattern | self._picked(spread, order))
        with write.loop(extent, columns, whole) as at, write.of(columns):
            point(at, cells | self._picked(self._of_rows(at, 1), [0] * columns))

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
