"""Nests of loops around what a graph computes, as a function in LLVM IR.

    define void @loop(ptr %arguments)       # extents; then addresses and strides of the arrays

The last axis runs in vectors; of the last one, only what is left is touched. What does not move
along inner axes is computed outside of their loops. Arrays whose neighbours lie along the axis
before are read in tiles of some rows, which are turned. What is folded along the last axis is in a
vector until the end: partial results, each of them folded in order (`folding`). Up to four rows are
folded at once, or shares of an only axis. What is folded along other axes is in memory. Rows of few
cells may be one row, of which columns are folded, or rows, or none (`short_rows`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tapestry.codegen.loops.accumulating import Parts, accumulators
from tapestry.codegen.loops.arrays import Arrays
from tapestry.codegen.loops.fetching import Fetching, Lanes
from tapestry.codegen.loops.folding import BESIDE, FEW, Folding, Row, vectors_of
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Fetch, Graph, Layout
from tapestry.codegen.loops.holding import Held, columns_of, fitting
from tapestry.codegen.loops.running import Along, zeros
from tapestry.codegen.loops.short_rows import Arranged, ShortRows
from tapestry.codegen.loops.skipping import Best
from tapestry.codegen.loops.transposing import ROWS, TransposedTiles
from tapestry.codegen.loops.vectors import BYTES, WIDTH, Value, whole_lines


def loop_text(graph: Graph, layout: Layout) -> str:
    """A module with the function `loop`."""
    return _Nest(graph, layout).text()


class _Nest:
    def __init__(self, graph: Graph, layout: Layout) -> None:
        self._graph = graph
        self._layout = layout
        self._write = Function()
        count = len(graph.inputs)
        stores = count + len(graph.stores)
        self._stored = list(zip(range(count, stores), graph.stores, strict=True))
        self._folded = list(enumerate(graph.folded, stores))
        self._arrays = Arrays(self._write, graph, layout)
        self._accumulators = accumulators(graph)
        levels = [layout.rank if n in layout.arranged else layout.level(n) for n in range(count)]
        levels += [0] * len(graph.numbers)
        for cell in graph.cells:
            levels.append(max((levels[slot] for slot in cell.ins), default=0))
        self._levels = levels
        self._extents: list[str] = []
        self._boxes = graph.boxes
        near = {(a, dim) for a, rank in self._boxes.items() for dim in range(rank)}
        self._boxed = {pair: str(BYTES[graph.inputs[pair[0]]]) for pair in near}
        """The strides of boxes, by the array and the dimension."""
        self._fetching = Fetching(self._write, self._boxed)
        self._states: Along | None = None
        self._best: Best | None = None
        self._beside = fitting(graph, BESIDE) if self._in_shares() else 1
        """In how many places of memory the last axis is gone along at once."""
        units = vectors_of(layout.columns)
        self._folding = Folding(
            self._write,
            graph,
            self._beside if units == 1 else units,
            lambda at, row: self._point(at, [row]),
            units * WIDTH,
            layout.columns if units == 1 else WIDTH,
        )
        self._place = ""
        """Where the loop is along the folded axis, of a running graph."""

    def text(self) -> str:
        layout, write = self._layout, self._write
        for axis in range(layout.rank):
            self._extents.append(write.argument(axis))
        pointers, end = self._arrays.found(layout.rank)
        for pair in layout.boxed:
            self._boxed[pair] = write.argument(end)
            end += 1
        if self._graph.may_fail:
            self._fetching.prepare()
        values: dict[int, Value] = {}
        for slot, number in enumerate(self._graph.numbers, len(self._graph.inputs)):
            values[slot] = write.number(number.value, number.kind)
        self._within(0, pointers, values)
        if layout.passing is not None:
            write.ordered()
        if self._graph.may_fail:
            self._fetching.end(write.argument_at(end))
        return write.text()

    def _within(self, level: int, pointers: dict[int, str], values: dict[int, Value]) -> None:
        """The loops inside of `level` axes; arrays are where these axes are."""
        layout, values = self._layout, dict(values)
        inner = level == layout.rank - 1
        self._compute(level, pointers, values)
        if self._graph.running:
            if level == layout.outer and inner:
                self._states = Along(self._write, self._graph)
            self._loops(level, pointers, values, [], inner=inner)
            return
        if level == layout.outer and layout.by_rows:
            self._by_rows((pointers, values))
            return
        if level == layout.outer and layout.columns > 1:
            self._in_columns(pointers, values, vectors_of(layout.columns))
            return
        if level == layout.outer and layout.folded[-1]:
            self._best = Best.of(self._write, self._graph)
            few = self._best is not None
            held = self._folding.held_of_few() if few else self._folding.held(1)[0]
            self._loops(level, pointers, values, [held], inner=inner)
            self._finish(held, pointers)
            return
        if level == layout.outer:
            self._cleared(pointers)
        self._loops(level, pointers, values, [], inner=inner)

    def _in_columns(self, pointers: dict[int, str], values: dict[int, Value], units: int) -> None:
        """Fold rows of few cells, that begin again where so many vectors end."""
        write, folding, extent = self._write, self._folding, self._extents[-1]
        size = units * WIDTH
        whole = write.arithmetic("mul", write.arithmetic("udiv", extent, str(size)), str(size))
        parts = [self._further(pointers, values, str(n * WIDTH)) for n in range(units)]
        held, start = folding.held(units), "0"
        if units == 1 and self._beside > 1:
            start = self._apart(whole, parts[0], held[0])
        folding.fold(start, whole, parts, held)
        for part, own in zip(range(units), held, strict=True):
            first = write.arithmetic("add", whole, str(part * WIDTH))
            with write.rest(first, extent):
                folding.each(first, [(pointers, values)], [own])
        found = columns_of(write, self._graph, held, self._layout.columns)
        with write.of(self._layout.columns):
            for (array, _), value in zip(self._folded, found, strict=True):
                write.store(value, pointers[array], self._arrays.kinds[array])

    def _further(self, pointers: dict[int, str], values: dict[int, Value], at: str) -> Row:
        """Where arrays are some places further along the last axis."""
        return self._arrays.at(pointers, self._layout.rank - 1, at), values

    def _finish(self, held: Held, pointers: dict[int, str]) -> None:
        """Write what was folded along the last axis."""
        for (array, _), value in zip(self._folded, held.values(), strict=True):
            self._write.store(value, pointers[array], self._arrays.kinds[array])

    def _loops(
        self,
        level: int,
        pointers: dict[int, str],
        values: dict[int, Value],
        held: Sequence[Held],
        *,
        inner: bool,
    ) -> None:
        if inner:
            self._inner([(pointers, values)], held)
            return
        if self._arrays.tiles is not None and level == self._layout.rank - 2:
            self._turned(level, self._arrays.tiles, (pointers, values))
            return
        start = "0"
        if self._rows_at_once(level):
            start = self._write.arithmetic("and", self._extents[level], str(-BESIDE))
            with self._write.loop(start, BESIDE) as at:
                rows = range(BESIDE)
                self._inner([self._row(level, pointers, values, at, str(n)) for n in rows], [])
        elif level == self._layout.outer - 1 and self._beside > 1 and self._layout.columns == 1:
            share = self._write.arithmetic("udiv", self._extents[level], str(self._beside))
            *shares, start = self._shares(share)
            with self._write.loop(share, 1) as at:
                rows = [self._row(level, pointers, values, at, first) for first in shares]
                several = self._folding.held(len(rows))
                self._inner(rows, several)
                for own, (to, _) in zip(several, rows, strict=True):
                    self._finish(own, to)
        with self._write.loop(self._extents[level], 1, start) as at:
            if self._layout.folded[level]:
                self._place = at
            moved = self._arrays.at(pointers, level, at)
            if not held:
                self._within(level + 1, moved, values)
            else:
                values = dict(values)
                self._compute(level + 1, moved, values)
                last = level + 1 == self._layout.rank - 1
                self._loops(level + 1, moved, values, held, inner=last)

    def _compute(self, level: int, pointers: dict[int, str], values: dict[int, Value]) -> None:
        """What is the same inside of so many axes, and not outside; vectors at the last."""
        graph, wide = self._graph, level == self._layout.rank
        for slot, kind in enumerate(graph.inputs):
            if self._levels[slot] == level and slot not in values and slot not in self._boxes:
                values[slot] = (
                    self._arrays.vector(slot, pointers[slot])
                    if wide
                    else self._write.load(pointers[slot], kind, wide=False)
                )
        first = len(graph.inputs) + len(graph.numbers)
        for slot, cell in enumerate(graph.cells, first):
            if self._levels[slot] != level or slot in values:
                continue
            if isinstance(cell, Fetch):
                values[slot] = self._fetched(cell, pointers[cell.array], values, wide=wide)
            else:
                values[slot] = cell.emit(self._write, [values[one] for one in cell.ins])

    def _fetched(self, cell: Fetch, pointer: str, values: dict[int, Value], *, wide: bool) -> Value:
        """A cell of a box that is at a pointer, or for each element of a vector further on."""
        array, last, step = cell.array, self._layout.rank - 1, None
        if wide and self._layout.moves[array][last]:
            step = self._arrays.stride(array, last)
        at = Lanes(pointer, step, self._layout.dense[array])
        others = [None if slot is None else values[slot] for slot in (cell.otherwise, cell.counted)]
        return self._fetching.cell(cell, at, [values[slot] for slot in cell.at], others)

    def _in_shares(self) -> bool:
        """Whether shares of the rows that are folded, or of the only axis, are gone along at once.

        Memory gives a third more to who reads at several places of it than in order; and what is
        folded of one share does not wait for that of another.
        """
        layout, graph = self._layout, self._graph
        if graph.running or layout.crossed or len(graph.cells) > FEW:
            return False
        own = layout.folded[-1] and layout.outer == layout.rank - 1
        return own and Best.of(Function(), graph) is None

    def _shares(self, share: str) -> list[str]:
        """Where shares of an axis start, and where the last one ends."""
        return [self._write.arithmetic("mul", share, str(n)) for n in range(self._beside + 1)]

    def _rows_at_once(self, level: int) -> bool:
        """Whether the last axis is run along for several places of the axis before it at once.

        That is for what is folded in memory: it is read and written once for all of them.
        """
        layout = self._layout
        last = level == layout.rank - 2 and layout.folded[level] and not layout.folded[-1]
        if self._graph.running:
            return False
        return last and not self._stored and len(self._graph.cells) <= FEW

    def _turned(self, level: int, tiles: TransposedTiles, outside: Row) -> None:
        """The last two axes, in tiles of some arrays."""
        write, (rows, columns) = self._write, self._extents[level:]
        whole = write.arithmetic("and", columns, str(-WIDTH))
        with write.loop(rows, ROWS) as first:
            left = write.arithmetic("sub", rows, first)
            count = write.least(left, str(ROWS))

            def tile(at: str, width: str) -> None:
                for array in self._layout.crossed:
                    pointer = self._arrays.moved(array, level, outside[0][array], first)
                    pointer = self._arrays.moved(array, level + 1, pointer, at)
                    tiles.fill(array, pointer, count, width)
                with write.loop(count, 1) as more:
                    row = self._row(level, *outside, first, more)
                    with tiles.at(more):
                        self._point(at, [row])

            with write.loop(whole, WIDTH) as at:
                tile(at, str(WIDTH))
            with write.rest(whole, columns) as rest:
                tile(whole, rest)

    def _row(
        self, level: int, pointers: dict[int, str], values: dict[int, Value], at: str, after: str
    ) -> Row:
        """Where arrays are some places after one of an axis, and what is the same there."""
        place = self._write.arithmetic("add", at, after)
        moved = self._arrays.at(pointers, level, place)
        values = dict(values)
        self._compute(level + 1, moved, values)
        return moved, values

    def _inner(self, rows: Sequence[Row], held: Sequence[Held]) -> None:
        """The last axis, in vectors; what is folded along it is held, by row."""
        extent = self._extents[-1]
        if self._layout.passing is not None:
            self._past_caches(self._layout.passing, rows)
            return
        if self._layout.columns > 1:
            self._in_rows(rows[0])
            return
        whole = self._write.arithmetic("and", extent, str(-WIDTH))
        if not held:
            with self._write.loop(whole, WIDTH) as at:
                self._point(at, rows)
        elif self._best is not None:
            self._folding.skip(whole, rows[0], held[0], self._best, self._looked_at)
        else:
            start = "0"
            if self._layout.rank == 1 and self._beside > 1:
                start = self._apart(whole, rows[0], held[0])
            self._folding.fold(start, whole, rows, held)
        with self._write.rest(whole, extent):
            if held:
                self._folding.each(whole, rows, held)
            else:
                self._point(whole, rows)

    def _looked_at(self, at: str, row: Row) -> Value:
        """What says of the points of a vector whether they are passed by."""
        assert self._best is not None
        return self._values(at, row)[1][self._best.slot]

    def _in_rows(self, row: Row) -> None:
        """The last axis, of rows of few cells."""
        rows = ShortRows(self._write, self._graph, self._layout, row)
        rows.along(self._extents[-1], lambda at, arranged: self._point(at, [row], arranged))

    def _by_rows(self, row: Row) -> None:
        """Fold rows of few cells, each of them."""
        write, slots = self._write, self._graph.folded

        def point(at: str, arranged: Arranged) -> dict[int, Value]:
            values = self._done(at, row, arranged)
            return {slot: write.widened(values[slot]) for slot in slots}

        def put(number: str, values: Sequence[Value]) -> None:
            for (array, _), value in zip(self._folded, values, strict=True):
                kind = self._arrays.kinds[array]
                to = write.moved(row[0][array], number, str(BYTES[kind]))
                write.store(value, to, kind)

        rows = ShortRows(write, self._graph, self._layout, row)
        rows.fold(self._extents[-1], point, put)

    def _past_caches(self, passing: int, rows: Sequence[Row]) -> None:
        """The last axis where lines of a store are written whole, from the first that begins.

        What is before that is less than a vector.
        """
        write, extent, size = self._write, self._extents[-1], BYTES[self._arrays.kinds[passing]]
        address = f"ptrtoint ptr {rows[0][0][passing]} to i64"
        back = write.arithmetic("sub", "0", write.made(address, "i64", wide=False).name)
        left = write.arithmetic("and", back, str(whole_lines(size) - 1))
        left = write.arithmetic("udiv", left, str(size))
        first = self._write.least(left, extent)
        with write.rest("0", first):
            self._point("0", rows)
        length = write.arithmetic("sub", extent, first)
        end = write.arithmetic("add", first, write.arithmetic("and", length, str(-WIDTH)))
        with write.loop(end, WIDTH, first) as at:
            self._point(at, rows)
        with write.rest(end, extent):
            self._point(end, rows)

    def _apart(self, end: str, row: Row, held: Held) -> str:
        """Fold shares of the only axis at once; gives where the last one ends."""
        pointers, values = row
        share = self._write.arithmetic("udiv", end, str(self._beside))
        share = self._write.arithmetic("and", share, str(-WIDTH))
        *shares, stop = self._shares(share)
        rows = [self._further(pointers, values, at) for at in shares]
        several = self._folding.held(len(rows))
        self._folding.fold("0", share, rows, several)
        for own in several:
            held.merge(own.parts())
        return stop

    def _done(self, at: str, row: Row, arranged: Arranged | None) -> dict[int, Value]:
        """What is computed at the points of a vector, which is written where it is stored.

        What inputs that are repeated or spread, and cells of these alone, are there is `arranged`.
        """
        moved, values = self._values(at, row, arranged)
        for array, slot in self._stored:
            self._arrays.put(array, moved[array], self._write.widened(values[slot]))
        return values

    def _point(self, at: str, rows: Sequence[Row], arranged: Arranged | None = None) -> list[Parts]:
        """All that is done at the points of a vector, of one row or of several that are folded.

        Gives what is folded along the last axis.
        """
        last = self._layout.rank - 1
        found = [self._lifted(self._done(at, row, arranged)) for row in rows]
        if self._graph.running:
            self._running(at, rows[0][0], found[0])
            return []
        parts = self._folding.together(found)
        if self._layout.folded[last]:
            return parts
        pointers, _ = rows[0]
        arrays = iter(self._folded)
        for fold, how, own in zip(self._graph.folds, self._accumulators, parts, strict=True):
            places = [next(arrays)[0] for _ in fold.slots]
            to = [self._arrays.moved(array, last, pointers[array], at) for array in places]
            if any(self._layout.folded):
                pairs = zip(places, to, strict=True)
                before = [self._arrays.vector(array, one) for array, one in pairs]
                # As parts, for what is folded is finished once then, and not for either.
                own = how.merge(self._write, how.lift(self._write, before), own)
            values = how.finish(self._write, own)
            for array, one, value in zip(places, to, values, strict=True):
                self._arrays.put(array, one, value)
        return []

    def _values(self, at: str, row: Row, arranged: Arranged | None = None) -> Row:
        """Where arrays are at a place of the last axis, and what is computed for a vector there."""
        pointers, outer = row
        last, values = self._layout.rank - 1, outer | (arranged or {})
        moved = self._arrays.at(pointers, last, at)
        self._compute(self._layout.rank, moved, values)
        return moved, values

    def _running(self, at: str, pointers: dict[int, str], found: Sequence[Parts]) -> None:
        """Write the states at the points of a vector."""
        last = self._layout.rank - 1
        if self._states is not None:
            left = self._write.arithmetic("sub", self._extents[last], at)
            states = self._states.next(found, left)
        else:
            none = [value for own in zeros(self._write, self._graph) for value in own]
            arrays = [array for array, _ in self._folded]
            to = [self._arrays.moved(array, last, pointers[array], at) for array in arrays]
            before = iter(map(self._before, arrays, to, none))
            states = list[Value]()
            folds = zip(self._graph.folds, self._accumulators, found, strict=True)
            for fold, how, parts in folds:
                own = [next(before) for _ in fold.slots]
                states += how.merge(self._write, own, parts[: len(own)])
        for (array, _), state in zip(self._folded, states, strict=True):
            self._arrays.put(array, self._arrays.moved(array, last, pointers[array], at), state)

    def _before(self, array: int, pointer: str, zero: Value) -> Value:
        """What was written at the place before along the folded axis; at the first one, a zero."""
        write, axis = self._write, self._layout.rank - 2
        if not self._layout.moves[array][axis]:
            return zero
        back = write.arithmetic("sub", "0", self._arrays.stride(array, axis))
        text = f"getelementptr i8, ptr {pointer}, i64 {back}"
        earlier = write.made(text, "ptr", wide=False).name
        first = write.made(f"icmp eq i64 {self._place}, 0", "i1", wide=False)
        text = f"select i1 {first.name}, ptr {pointer}, ptr {earlier}"  # there is memory at both
        there = write.made(text, "ptr", wide=False).name
        return write.chosen(first, zero, self._arrays.vector(array, there))

    def _lifted(self, values: dict[int, Value]) -> list[Parts]:
        """What is folded, of the elements that count."""
        write, found = self._write, list[Parts]()
        for fold, how in zip(self._graph.folds, self._accumulators, strict=True):
            own = [write.widened(values[slot]) for slot in fold.slots]
            parts = how.enter(write, own)
            if write.mask is not None and self._layout.folded[-1]:
                pairs = zip(own, fold.zeros, strict=True)
                none = how.lift(write, [write.number(zero, value.kind) for value, zero in pairs])
                both = zip(parts, none, strict=True)
                parts = [write.chosen(write.mask, part, zero) for part, zero in both]
            found.append(parts)
        return found

    def _cleared(self, pointers: dict[int, str]) -> None:
        """What is folded in memory starts from nothing, all along the last axis."""
        if not self._folded:
            return
        last = self._layout.rank - 1
        zeros = [zero for fold in self._graph.folds for zero in fold.zeros]
        with self._write.loop(self._extents[-1], 1) as at:
            for (array, _), zero in zip(self._folded, zeros, strict=True):
                to = self._arrays.moved(array, last, pointers[array], at)
                kind = self._arrays.kinds[array]
                self._write.store(self._write.number(zero, kind), to, kind)
