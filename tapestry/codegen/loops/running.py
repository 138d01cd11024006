"""What loops fold and keep at each place along an axis: the states of a scan.

    along = Along(write, graph)             # before the last axis; nothing is folded yet
    states = along.next(parts)              # in the loop: of a vector's elements

Along the last axis, the elements of a vector are merged with those 1, 2, 4, ... before, which keeps
the order, and then with what was before the vector; or one by one, each with what is before it, as
float sums and products are: 1e30, 1e-30, 1e-30 have the product 1e-30, but not if the last two are
multiplied first. Along another axis, vectors are merged with the states at the place before, which
are where they were written.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapestry.codegen.loops.accumulating import Accumulator, Parts, accumulators
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Graph, Merged
from tapestry.codegen.loops.vectors import WIDTH, Value


class Along:
    """The state that a vector goes on from, per fold of a graph: each of its elements has it."""

    def __init__(self, write: Function, graph: Graph) -> None:
        self._write, self._graph = write, graph
        self._how = accumulators(graph)
        self._zeros = zeros(write, graph)
        self._places = [[(write.place(z.type), z.kind) for z in own] for own in self._zeros]
        for places, values in zip(self._places, self._zeros, strict=True):
            self._keep(places, values)

    def next(self, found: Sequence[Parts], left: str) -> list[Value]:
        """The states of the elements of a vector, of which so many, or more, are left."""
        write, states = self._write, list[Value]()
        folds = zip(self._graph.folds, self._how, self._zeros, self._places, found, strict=True)
        for fold, how, zero, places, parts in folds:
            own = parts[: len(zero)]
            before = [write.made(f"load <{WIDTH} x {k}>, ptr {p}", k, wide=True) for p, k in places]
            if isinstance(fold, Merged) and fold.one_by_one:
                values, last = self._one_by_one(how, before, own, left)
            else:
                values = how.merge(write, before, self._by_doubling(how, zero, own))
                last = [self._last(value) for value in values]
            self._keep(places, last)
            states += values
        return states

    def _by_doubling(
        self, how: Accumulator, zero: Sequence[Value], values: Sequence[Value]
    ) -> Sequence[Value]:
        """What the elements of a vector come to, merged with those 1, 2, 4, ... before."""
        step = 1
        while step < WIDTH:
            pairs = zip(values, zero, strict=True)
            earlier = [self._later(value, none, step) for value, none in pairs]
            values = how.merge(self._write, earlier, values)
            step *= 2
        return values

    def _one_by_one(
        self, how: Accumulator, before: Sequence[Value], values: Sequence[Value], left: str
    ) -> tuple[Sequence[Value], Sequence[Value]]:
        """What the elements of a vector come to, each merged with what is before it; and the last.

        They are floats, and in memory meanwhile: to take them out of registers and put them back
        takes longer, and of a vector of which little is left only that is gone through.
        """
        write, kinds = self._write, [value.kind for value in values]
        rooms = [write.place(value.type) for value in values]
        held = [write.place(kind) for kind in kinds]
        self._keep(list(zip(rooms, kinds, strict=True)), values)
        self._keep(list(zip(held, kinds, strict=True)), [self._first(one) for one in before])
        few = write.made(f"icmp slt i64 {left}, {WIDTH}", "i1", wide=False).name
        count = write.made(f"select i1 {few}, i64 {left}, i64 {WIDTH}", "i64", wide=False).name
        with write.loop(count, 1) as at:
            there = [
                write.made(f"getelementptr {kind}, ptr {room}, i64 {at}", "ptr", wide=False).name
                for room, kind in zip(rooms, kinds, strict=True)
            ]
            merged = how.merge(write, self._loaded(held, kinds), self._loaded(there, kinds))
            state = [self._first(one) if one.wide else one for one in merged]
            for places in (held, there):
                self._keep(list(zip(places, kinds, strict=True)), state)
        found = [
            write.made(f"load {value.type}, ptr {room}", value.kind, wide=True)
            for value, room in zip(values, rooms, strict=True)
        ]
        return found, [write.widened(value) for value in self._loaded(held, kinds)]

    def _loaded(self, places: Sequence[str], kinds: Sequence[str]) -> list[Value]:
        """A number at each place."""
        return [
            self._write.made(f"load {kind}, ptr {place}", kind, wide=False)
            for place, kind in zip(places, kinds, strict=True)
        ]

    def _first(self, value: Value) -> Value:
        text = f"extractelement {value.type} {value.name}, i64 0"
        return self._write.made(text, value.kind, wide=False)

    def _later(self, value: Value, none: Value, by: int) -> Value:
        """The elements of a vector so many places further on, after those of another."""
        order = [element - by if element >= by else WIDTH for element in range(WIDTH)]
        return self._shuffled(value, none.name, order)

    def _last(self, value: Value) -> Value:
        """The last element, everywhere."""
        return self._shuffled(value, "poison", [WIDTH - 1] * WIDTH)

    def _shuffled(self, value: Value, other: str, order: Sequence[int]) -> Value:
        text = f"shufflevector {value.type} {value.name}, {value.type} {other}"
        elements = ", ".join(f"i32 {element}" for element in order)
        return self._write.made(f"{text}, <{WIDTH} x i32> <{elements}>", value.kind, wide=True)

    def _keep(self, places: Sequence[tuple[str, str]], values: Sequence[Value]) -> None:
        for (place, _), value in zip(places, values, strict=True):
            self._write.line(f"store {value.type} {value.name}, ptr {place}")


def zeros(write: Function, graph: Graph) -> list[list[Value]]:
    """What nothing folds to, per fold, in vectors."""
    return [
        [
            write.widened(write.number(zero, graph.kinds[slot]))
            for slot, zero in zip(fold.slots, fold.zeros, strict=True)
        ]
        for fold in graph.folds
    ]
