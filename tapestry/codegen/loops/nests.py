"""Nests of loops around what a graph computes, as a function in LLVM IR.

    define void @loop(ptr %arguments)       # extents; then addresses and strides of the arrays

The last axis runs in vectors, its rest under a mask. What does not move along inner axes is
computed outside of their loops. What is folded along the last axis is in a vector until the end:
partial results, each of them folded in order; where the order matters, as for sums of floats, that
is done block by block, so that errors grow slowly. What is folded along other axes is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapestry.codegen.loops.cells import combined
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import ROUNDED, Folded, Graph, Layout
from tapestry.codegen.loops.vectors import BYTES, WIDTH, Value

_BLOCK = 64
"""Vectors that are folded one after another before they meet the rest."""

_TOGETHER = 4
"""Vectors, or rows, that are folded at once."""

_FEW = 4
"""Operations for a point up to which that is worth the instructions."""

_Row = tuple[dict[int, str], dict[int, Value]]
"""Where arrays are, and what is the same along the last axis."""


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
        self._folded = list(enumerate(graph.folds, stores))
        levels = [layout.level(array) for array in range(count)] + [0] * len(graph.numbers)
        for cell in graph.cells:
            levels.append(max((levels[slot] for slot in cell.ins), default=0))
        self._levels = levels
        self._extents: list[str] = []
        self._strides: dict[tuple[int, int | None], str] = {}

    def text(self) -> str:
        layout, write = self._layout, self._write
        for axis in range(layout.rank):
            self._extents.append(self._argument(axis))
        pointers: dict[int, str] = {}
        for number, (array, axis) in enumerate(layout.arguments(), layout.rank):
            value = self._argument(number)
            if axis is not None:
                self._strides[array, axis] = value
                continue
            pointers[array] = write.made(f"inttoptr i64 {value} to ptr", "ptr", wide=False).name
        values: dict[int, Value] = {}
        for slot, number in enumerate(self._graph.numbers, len(self._graph.inputs)):
            values[slot] = write.number(number.value, number.kind)
        self._within(0, pointers, values)
        return write.text()

    def _argument(self, number: int) -> str:
        place = f"getelementptr i64, ptr %arguments, i64 {number}"
        pointer = self._write.made(place, "ptr", wide=False).name
        return self._write.made(f"load i64, ptr {pointer}", "i64", wide=False).name

    def _within(self, level: int, pointers: dict[int, str], values: dict[int, Value]) -> None:
        """The loops inside of `level` axes; arrays are where these axes are."""
        layout, values = self._layout, dict(values)
        inner = level == layout.rank - 1
        self._compute(level, pointers, values)
        if level == layout.outer and layout.folded[-1]:
            states = self._states()
            self._loops(level, pointers, values, states, inner=inner)
            self._finish(states, pointers)
            return
        if level == layout.outer:
            self._cleared(pointers)
        self._loops(level, pointers, values, [], inner=inner)

    def _loops(
        self,
        level: int,
        pointers: dict[int, str],
        values: dict[int, Value],
        states: list[str],
        *,
        inner: bool,
    ) -> None:
        if inner:
            self._inner([(pointers, values)], states)
            return
        start = "0"
        if self._rows_at_once(level):
            start = self._write.arithmetic("and", self._extents[level], str(-_TOGETHER))
            with self._write.loop(start, _TOGETHER) as at:
                rows = range(_TOGETHER)
                self._inner([self._row(level, pointers, values, at, n) for n in rows], [])
        with self._write.loop(self._extents[level], 1, start) as at:
            moved = {a: self._moved(a, level, p, at) for a, p in pointers.items()}
            if not states:
                self._within(level + 1, moved, values)
            else:
                values = dict(values)
                self._compute(level + 1, moved, values)
                last = level + 1 == self._layout.rank - 1
                self._loops(level + 1, moved, values, states, inner=last)

    def _compute(self, level: int, pointers: dict[int, str], values: dict[int, Value]) -> None:
        """What is the same inside of so many axes, and not outside; vectors at the last."""
        graph, wide = self._graph, level == self._layout.rank
        for slot, kind in enumerate(graph.inputs):
            if self._levels[slot] == level and slot not in values:
                values[slot] = (
                    self._vector(slot, pointers[slot], kind)
                    if wide
                    else self._write.load(pointers[slot], kind, wide=False)
                )
        first = len(graph.inputs) + len(graph.numbers)
        for slot, cell in enumerate(graph.cells, first):
            if self._levels[slot] == level and slot not in values:
                values[slot] = cell.emit(self._write, [values[one] for one in cell.ins])

    def _rows_at_once(self, level: int) -> bool:
        """Whether the last axis is run along for several places of the axis before it at once.

        That is for what is folded in memory: it is read and written once for all of them.
        """
        layout = self._layout
        last = level == layout.rank - 2 and layout.folded[level] and not layout.folded[-1]
        return last and not self._stored and len(self._graph.cells) <= _FEW

    def _row(
        self, level: int, pointers: dict[int, str], values: dict[int, Value], at: str, after: int
    ) -> _Row:
        """Where arrays are some places after one of an axis, and what is the same there."""
        place = self._write.arithmetic("add", at, str(after))
        moved = {a: self._moved(a, level, p, place) for a, p in pointers.items()}
        values = dict(values)
        self._compute(level + 1, moved, values)
        return moved, values

    def _inner(self, rows: Sequence[_Row], states: list[str]) -> None:
        """The last axis, in vectors."""
        extent = self._extents[-1]
        blocks = bool(states) and any(one.primitive in ROUNDED for one in self._graph.folds)
        whole = self._write.made(f"and i64 {extent}, -{WIDTH}", "i64", wide=False).name

        def step(at: str, into: list[str]) -> None:
            self._point(at, rows, into)

        if blocks:
            with self._write.loop(whole, WIDTH * _BLOCK) as start:
                parts = self._states()
                end = self._write.arithmetic("add", start, str(WIDTH * _BLOCK))
                low = self._write.made(f"icmp ult i64 {end}, {whole}", "i1", wide=False).name
                end = self._write.made(
                    f"select i1 {low}, i64 {end}, i64 {whole}", "i64", wide=False
                ).name
                with self._write.loop(end, WIDTH, start) as at:
                    step(at, parts)
                for fold, total, part in zip(self._graph.folds, states, parts, strict=True):
                    self._merge(fold, total, self._read(part, fold))
        else:
            start = self._several(whole, states, step)
            with self._write.loop(whole, WIDTH, start) as at:
                step(at, states)
        with self._write.when(f"icmp ult i64 {whole}, {extent}"):
            rest = self._write.arithmetic("sub", extent, whole)
            count = Value(
                self._write.made(f"trunc i64 {rest} to i32", "i32", wide=False).name, "i32"
            )
            elements = ", ".join(f"i32 {element}" for element in range(WIDTH))
            mask = self._write.compared("ult", Value(f"<{elements}>", "i32", wide=True), count)
            self._write.mask = mask
            step(whole, states)
            self._write.mask = None

    def _several(
        self, whole: str, states: list[str], step: Callable[[str, list[str]], None]
    ) -> str:
        """Vectors that are folded apart, as a result is not there at once; up to where that is."""
        if not states or len(self._graph.cells) > _FEW:
            return "0"
        end = self._write.arithmetic("and", whole, str(-WIDTH * _TOGETHER))
        others = [self._states() for _ in range(_TOGETHER - 1)]
        with self._write.loop(end, WIDTH * _TOGETHER) as at:
            for number, own in enumerate([states, *others]):
                step(self._write.arithmetic("add", at, str(number * WIDTH)), own)
        for own in others:
            for fold, total, part in zip(self._graph.folds, states, own, strict=True):
                self._merge(fold, total, self._read(part, fold))
        return end

    def _point(self, at: str, rows: Sequence[_Row], states: list[str]) -> None:
        """All that is done at the points of a vector, of one row or of several that are folded."""
        last = self._layout.rank - 1
        held: dict[int, Value] = {}
        for pointers, outer in rows:
            moved = {a: self._moved(a, last, p, at) for a, p in pointers.items()}
            values = dict(outer)
            self._compute(self._layout.rank, moved, values)
            self._fold_or_store(moved, values, held, states)
        pointers, _ = rows[0]
        for array, value in held.items():
            self._put(array, self._moved(array, last, pointers[array], at), value)

    def _fold_or_store(
        self,
        moved: dict[int, str],
        values: dict[int, Value],
        held: dict[int, Value],
        states: list[str],
    ) -> None:
        """What a row writes, and folds into states or what is `held` of memory."""
        write = self._write
        for array, slot in self._stored:
            self._put(array, moved[array], write.widened(values[slot]))
        for number, (array, fold) in enumerate(self._folded):
            value = write.widened(values[fold.slot])
            if not any(self._layout.folded):  # there is one value to fold
                self._put(array, moved[array], value)
                continue
            if not states:
                before = held.get(array) or self._vector(array, moved[array], value.kind)
                held[array] = combined(fold.primitive, write, before, value)
                continue
            if write.mask is not None:
                value = write.chosen(write.mask, value, write.number(fold.zero, value.kind))
            self._merge(fold, states[number], value)

    def _vector(self, array: int, pointer: str, kind: str) -> Value:
        if self._layout.dense[array]:
            return self._write.load(pointer, kind, wide=True)
        return self._write.gathered(self._pointers(array, pointer), kind)

    def _put(self, array: int, pointer: str, value: Value) -> None:
        if self._layout.dense[array]:
            self._write.store(value, pointer)
        else:
            self._write.scattered(value, self._pointers(array, pointer))

    def _pointers(self, array: int, pointer: str) -> str:
        """Where the elements of a vector are."""
        write, stride = self._write, self._strides[array, self._layout.rank - 1]
        elements = ", ".join(f"i64 {element}" for element in range(WIDTH))
        steps = write.binary("mul", Value(f"<{elements}>", "i64", wide=True), Value(stride, "i64"))
        text = f"getelementptr i8, ptr {pointer}, <{WIDTH} x i64> {steps.name}"
        return write.made(text, "ptr", wide=True).name

    def _moved(self, array: int, axis: int, pointer: str, at: str) -> str:
        """Where an array is at a place along an axis."""
        if not self._layout.moves[array][axis]:
            return pointer
        stride = self._strides.get((array, axis)) or str(self._width(array))
        offset = self._write.arithmetic("mul", at, stride)
        return self._write.made(
            f"getelementptr i8, ptr {pointer}, i64 {offset}", "ptr", wide=False
        ).name

    def _width(self, array: int) -> int:
        slots = [*range(len(self._graph.inputs)), *self._graph.stores]
        slots += [fold.slot for fold in self._graph.folds]
        return BYTES[self._graph.kinds[slots[array]]]

    def _states(self) -> list[str]:
        """Vectors that hold what is folded, with nothing folded yet."""
        found: list[str] = []
        for fold in self._graph.folds:
            kind = self._graph.kinds[fold.slot]
            place = self._write.place(f"<{WIDTH} x {kind}>")
            zero = self._write.widened(self._write.number(fold.zero, kind))
            self._write.line(f"store {zero.type} {zero.name}, ptr {place}")
            found.append(place)
        return found

    def _read(self, place: str, fold: Folded) -> Value:
        kind = self._graph.kinds[fold.slot]
        return self._write.made(f"load <{WIDTH} x {kind}>, ptr {place}", kind, wide=True)

    def _merge(self, fold: Folded, place: str, value: Value) -> None:
        made = combined(fold.primitive, self._write, self._read(place, fold), value)
        self._write.line(f"store {made.type} {made.name}, ptr {place}")

    def _finish(self, states: list[str], pointers: dict[int, str]) -> None:
        """The elements of what was folded, halves with halves."""
        write = self._write
        for (array, fold), place in zip(self._folded, states, strict=True):
            value = self._read(place, fold)
            half = WIDTH // 2
            while half:
                order = ", ".join(f"i32 {(element + half) % WIDTH}" for element in range(WIDTH))
                text = f"shufflevector {value.type} {value.name}, {value.type} poison"
                other = write.made(f"{text}, <{WIDTH} x i32> <{order}>", value.kind, wide=True)
                value = combined(fold.primitive, write, value, other)
                half //= 2
            text = f"extractelement {value.type} {value.name}, i64 0"
            write.store(write.made(text, value.kind, wide=False), pointers[array])

    def _cleared(self, pointers: dict[int, str]) -> None:
        """What is folded in memory starts from nothing, all along the last axis."""
        if not self._folded:
            return
        last = self._layout.rank - 1
        with self._write.loop(self._extents[-1], 1) as at:
            for array, fold in self._folded:
                kind = self._graph.kinds[fold.slot]
                to = self._moved(array, last, pointers[array], at)
                self._write.store(self._write.number(fold.zero, kind), to)
