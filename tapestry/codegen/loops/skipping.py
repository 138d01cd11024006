"""Points that a fold passes by, as the state that there is stays as it is with them.

    best = Best.of(write, graph)            # None where no merge says when a state stays
    best.fold(end, part, one, every)        # vectors, as far as needed

The place of the largest of many numbers changes seldom: most points are compared with the largest
so far, and that is all. From a vector on where one is as large, the largest of some vectors is
found, by the one part that says it; then those of them that have it are folded, and the others are
not: their points leave the state as it is that has that part, and points are folded in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Graph, Merged, Stays
from tapestry.codegen.loops.vectors import WIDTH, Value, register

VECTORS = 32
"""Vectors of a chunk: its largest point is found before any of it is folded."""

_LEAST = 4
"""Vectors: fewer are folded at once."""

_PASSED_AT_ONCE = 4
"""Vectors that are passed by at once."""

_MISSES = 4
"""Times in a row that most vectors were folded after which there is no more looking."""

_FEW = 4
"""Operations of the part that is looked at up to which they may be done twice."""

Part = Callable[[str], Value]
"""Writes what says of the points of a vector, at a place, whether the state stays."""


class Best:
    """The part of the state that points so far, or some of them, are folded to."""

    def __init__(self, write: Function, graph: Graph, stays: Stays) -> None:
        (fold,) = graph.folds
        self.slot = fold.slots[stays.part]
        """Where a graph has that part of a point."""
        self._write, self._stays = write, stays
        zero = write.number(fold.zeros[stays.part], graph.kinds[self.slot])
        self._kind, self._place = zero.kind, write.place(register(graph.kinds[self.slot]))
        self._store(zero)

    @staticmethod
    def of(write: Function, graph: Graph) -> Best | None:
        """That of a graph with one fold, whose merge says when a state stays, and nothing else.

        None where what is looked at takes long to compute.
        """
        fold = graph.folds[0] if len(graph.folds) == 1 and not graph.stores else None
        stays = fold.stays if isinstance(fold, Merged) else None
        if fold is None or stays is None or _operations(graph, fold.slots[stays.part]) > _FEW:
            return None
        return Best(write, graph, stays)

    def fold(
        self, end: str, part: Part, one: Callable[[str], None], every: Callable[[str, str], None]
    ) -> None:
        """Fold a row's vectors up to `end`: those that may change the state, by `one`.

        After some chunks in a row of which more than half had to be folded, the rest is folded by
        `every`, without looking.
        """
        write = self._write
        few = write.made(f"icmp slt i64 {end}, {_LEAST * WIDTH}", "i1", wide=False).name
        never = write.made(f"select i1 {few}, i64 {_MISSES}, i64 0", "i64", wide=False).name
        counter, misses = write.counter(), write.counter(never)
        with write.going(counter, end) as at:
            so_far = write.counted(misses)
            with write.when(f"icmp sge i64 {so_far}, {_MISSES}"):
                every(at, end)
                write.count(counter, end)
            with write.when(f"icmp slt i64 {so_far}, {_MISSES}"):
                first = self._first_needed(at, end, part)
                stop = write.least(write.arithmetic("add", first, str(VECTORS * WIDTH)), end)
                folded = write.counter()  # twice the points that are folded
                with write.when(f"icmp slt i64 {first}, {end}"):
                    self._fold_some(first, stop, part, one, folded)
                length = write.arithmetic("sub", stop, at)
                vain = f"icmp sgt i64 {write.counted(folded)}, {length}"
                vain = write.made(vain, "i1", wide=False).name
                more = write.arithmetic("add", so_far, "1")
                text = f"select i1 {vain}, i64 {more}, i64 0"
                write.count(misses, write.made(text, "i64", wide=False).name)
                write.count(counter, stop)

    def _first_needed(self, start: str, end: str, part: Part) -> str:
        """Where the first vector is with a point with which the state may change; or the end."""
        write, best = self._write, self._best()
        step = _PASSED_AT_ONCE * WIDTH
        whole = write.arithmetic("add", start, self._in_steps(start, end))
        several = write.first(
            whole,
            step,
            start,
            lambda at: self._needed(best, [part(place) for place in self._places(at)]),
        )
        return write.first(end, WIDTH, several, lambda at: self._needed(best, [part(at)]))

    def _fold_some(
        self, start: str, stop: str, part: Part, one: Callable[[str], None], folded: str
    ) -> None:
        """Fold those vectors of a chunk that have a point as large as the largest, or a NaN."""
        write, step = self._write, _PASSED_AT_ONCE * WIDTH
        whole = write.arithmetic("add", start, self._in_steps(start, stop))
        most = self._most(start, whole, stop, part)
        self._store(most)

        def fold_one(at: str) -> None:
            with write.when(f"and i1 {self._needed(most, [part(at)])}, true"):
                one(at)
                more = write.arithmetic("add", write.counted(folded), str(2 * WIDTH))
                write.count(folded, more)

        with write.loop(whole, step, start) as first:
            values = [part(place) for place in self._places(first)]
            with write.when(f"and i1 {self._needed(most, values)}, true"):
                after = write.arithmetic("add", first, str(step))
                with write.loop(after, WIDTH, first) as at:
                    fold_one(at)
        with write.loop(stop, WIDTH, whole) as at:
            fold_one(at)

    def _most(self, start: str, whole: str, stop: str, part: Part) -> Value:
        """The part of one point, or of the state so far, with which others are passed by.

        That is the most of all if there is nothing that is not to be compared.
        """
        write, lanes = self._write, WIDTH
        first = write.widened(self._best())
        place = write.place(first.type)

        def keep(value: Value) -> None:
            write.line(f"store {value.type} {value.name}, ptr {place}")

        def kept() -> Value:
            return write.made(f"load {first.type}, ptr {place}", first.kind, wide=True)

        keep(first)
        with write.loop(whole, _PASSED_AT_ONCE * WIDTH, start) as at:
            values = [write.widened(part(one)) for one in self._places(at)]
            keep(reduce(self._more, values, kept()))
        with write.loop(stop, WIDTH, whole) as at:
            keep(self._more(kept(), write.widened(part(at))))
        most = kept()
        while lanes > 1:
            lanes //= 2
            with write.of(lanes):
                most = self._more(write.some(most, 0, lanes), write.some(most, lanes, lanes))
        text = f"extractelement {most.type} {most.name}, i64 0"
        return write.made(text, most.kind, wide=False)

    def _more(self, one: Value, other: Value) -> Value:
        """The one value where a state that has it stays, else the other."""
        return self._write.chosen(self._stay(one, other), one, other)

    def _stay(self, one: Value, other: Value) -> Value:
        """Whether states that have the one value stay with those that have the other."""
        return self._write.compared(self._stays.more, one, other)

    def _needed(self, most: Value, values: Sequence[Value]) -> str:
        """Whether a state that has the most may change with some point of the vectors."""
        write, most = self._write, self._write.widened(most)
        stays = [self._stay(most, write.widened(value)) for value in values]
        while len(stays) > 1:
            pairs = zip(stays[::2], stays[1::2], strict=True)
            stays = [write.binary("and", *pair) for pair in pairs]
        (passed,) = stays
        text = f"bitcast {passed.type} {passed.name} to i{WIDTH}"
        bits = write.made(text, f"i{WIDTH}", wide=False).name
        return write.made(f"icmp ne i{WIDTH} {bits}, -1", "i1", wide=False).name

    def _places(self, first: str) -> list[str]:
        """Where the vectors are that are passed by at once."""
        steps = range(0, _PASSED_AT_ONCE * WIDTH, WIDTH)
        return [self._write.arithmetic("add", first, str(step)) for step in steps]

    def _in_steps(self, start: str, end: str) -> str:
        """How many points there are in vectors that are passed by at once."""
        length = self._write.arithmetic("sub", end, start)
        return self._write.arithmetic("and", length, str(-_PASSED_AT_ONCE * WIDTH))

    def _best(self) -> Value:
        text = f"load {self._kind}, ptr {self._place}"
        return self._write.made(text, self._kind, wide=False)

    def _store(self, value: Value) -> None:
        self._write.line(f"store {value.type} {value.name}, ptr {self._place}")


def _operations(graph: Graph, slot: int) -> int:
    """How many cells a slot takes."""
    first, needed, left = len(graph.inputs) + len(graph.numbers), set[int](), [slot]
    while left:
        one = left.pop()
        if one >= first and one not in needed:
            needed.add(one)
            left += graph.cells[one - first].ins
    return len(needed)
