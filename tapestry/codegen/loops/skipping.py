"""Points that a fold passes by, as the state that there is stays as it is with them.

    best = Best.of(write, graph)            # None where no merge says when a state stays
    best.fold(start, end, part, one, every)     # vectors, as far as needed

The place of the largest of many numbers changes seldom: most points are compared with the largest
so far, and that is all. Where one of many vectors is as large, the largest of these is found, by
the one part that says it; then the vectors that have it are folded, and the others are not: their
points leave the state as it is that has that part, and points are folded in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tapestry.codegen.loops.accumulating import accumulators
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Folded, Graph, Merged, Stays
from tapestry.codegen.loops.holding import Held
from tapestry.codegen.loops.vectors import WIDTH, Value, register

VECTORS = 32
"""Vectors that are looked at before some of them are folded."""

_LEAST = 4
"""Vectors: fewer are folded at once."""

_PASSED_AT_ONCE = 4
"""Vectors that are passed by at once."""

_MISSES = 4
"""Times in a row that most vectors were folded after which there is no more looking."""

_FEW = 4
"""Operations of the part that is looked at up to which they may be done twice."""


class Best:
    """The part of the state that points so far, or some of them, are folded to."""

    def __init__(self, write: Function, graph: Graph, stays: Stays) -> None:
        (fold,) = graph.folds
        self.slot = fold.slots[stays.part]
        """Where a graph has that part of a point."""
        self._write, self._stays = write, stays
        first = fold.zeros[stays.part]
        zero = write.number(first, graph.kinds[self.slot])
        self._parts = replace(graph, folds=(Folded(self.slot, stays.extreme, first),))
        self._place = write.place(register(graph.kinds[self.slot]))
        self._store(zero, self._place)
        self._kind, self._misses = zero.kind, write.place("i64")
        write.line(f"store i64 0, ptr {self._misses}")

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
        self,
        start: str,
        end: str,
        part: Callable[[str], Value],
        one: Callable[[str], None],
        every: Callable[[str, str], None],
    ) -> None:
        """Fold the vectors from one place to another: all by `every`, or what is needed by `one`.

        `part` gives what says of a vector's points whether the state stays.
        """
        write = self._write
        misses, length = self._count(self._misses), write.arithmetic("sub", end, start)
        enough = self._is(f"icmp sge i64 {length}, {_LEAST * WIDTH}")
        looking = self._is(f"and i1 {enough}, {self._is(f'icmp slt i64 {misses}, {_MISSES}')}")
        with write.when(f"xor i1 {looking}, true"):
            every(start, end)
        with write.when(f"and i1 {looking}, true"):
            changed, most = self._look(start, end, part)
            with write.when(f"and i1 {changed}, true"):
                self._store(most, self._place)
                folded = write.place("i64")  # twice as many points as are folded
                write.line(f"store i64 0, ptr {folded}")

                def fold_some(at: str) -> None:
                    with self._unless_passed(most, [part(at)]):
                        one(at)
                        more = write.arithmetic("add", self._count(folded), str(2 * WIDTH))
                        write.line(f"store i64 {more}, ptr {folded}")

                step = _PASSED_AT_ONCE * WIDTH
                several = write.arithmetic("and", length, str(-step))
                whole = write.arithmetic("add", start, several)
                with write.loop(whole, step, start) as first:
                    steps = range(0, step, WIDTH)
                    places = [write.arithmetic("add", first, str(n)) for n in steps]
                    with self._unless_passed(most, [part(place) for place in places]):
                        stop = write.arithmetic("add", first, str(step))
                        with write.loop(stop, WIDTH, first) as at:
                            fold_some(at)
                with write.loop(end, WIDTH, whole) as at:
                    fold_some(at)
                # Most were folded.
                vain = self._is(f"icmp sgt i64 {self._count(folded)}, {length}")
                more = write.arithmetic("add", misses, "1")
                text = f"select i1 {vain}, i64 {more}, i64 0"
                made = write.made(text, "i64", wide=False).name
                write.line(f"store i64 {made}, ptr {self._misses}")
            with write.when(f"xor i1 {changed}, true"):
                write.line(f"store i64 0, ptr {self._misses}")

    def _look(self, start: str, end: str, part: Callable[[str], Value]) -> tuple[str, Value]:
        """Whether some point may change the state, and the most that one has."""
        write = self._write
        best = write.made(f"load {self._kind}, ptr {self._place}", self._kind, wide=False)
        held, (how,) = Held(write, self._parts), accumulators(self._parts)
        with write.loop(end, WIDTH, start) as at:
            held.merge([how.enter(write, [write.widened(part(at))])])
        (most,) = held.values()
        stays = self._stays.holds(write, best, most)
        return self._is(f"xor i1 {stays.name}, true"), most

    @contextmanager
    def _unless_passed(self, most: Value, values: Sequence[Value]) -> Generator[None]:
        """Instructions inside are skipped if a state that has the most stays with all points of
        some vectors.
        """
        write, holds = self._write, self._stays.holds
        every = [holds(write, write.widened(most), write.widened(value)) for value in values]
        while len(every) > 1:
            pairs = zip(every[::2], every[1::2], strict=True)
            every = [write.binary("and", *pair) for pair in pairs]
        (passed,) = every
        text = f"bitcast {passed.type} {passed.name} to i{WIDTH}"
        bits = write.made(text, f"i{WIDTH}", wide=False).name
        with write.when(f"icmp ne i{WIDTH} {bits}, -1"):
            yield

    def _count(self, place: str) -> str:
        return self._write.made(f"load i64, ptr {place}", "i64", wide=False).name

    def _is(self, condition: str) -> str:
        return self._write.made(condition, "i1", wide=False).name

    def _store(self, value: Value, place: str) -> None:
        self._write.line(f"store {value.type} {value.name}, ptr {place}")


def _operations(graph: Graph, slot: int) -> int:
    """How many cells a slot takes."""
    first, needed, left = len(graph.inputs) + len(graph.numbers), set[int](), [slot]
    while left:
        one = left.pop()
        if one >= first and one not in needed:
            needed.add(one)
            left += graph.cells[one - first].ins
    return len(needed)
