"""Points that a fold passes by, as the state that there is stays as it is with them.

    best = Best.of(write, graph)            # None where no merge says when a state stays
    best.look(lambda: values)               # some vectors of the part that says it
    with best.folding(held):
        ...                                 # fold these points, unless the state stays

The place of the largest of many numbers changes seldom: most points are compared with the largest
so far, and that is all. Where they are not, as many are the largest, there is no more looking.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Graph, Merged, Stays
from tapestry.codegen.loops.holding import Held
from tapestry.codegen.loops.vectors import WIDTH, Value, register

VECTORS = 8
"""Vectors that are looked at before one of them is folded."""

_MISSES = 4
"""Times in a row that looking was in vain after which there is no more of it."""

_FEW = 4
"""Operations of the part that is looked at up to which they may be done twice."""


class Best:
    """The part of the state that points so far, or some of them, are folded to."""

    def __init__(self, write: Function, graph: Graph, stays: Stays) -> None:
        (fold,) = graph.folds
        self.slot = fold.slots[stays.part]
        """Where a graph has that part of a point."""
        self._write, self._stays = write, stays
        self._kind = register(graph.kinds[self.slot])
        self._place, self._misses = write.place(self._kind), write.place("i64")
        self._needed = write.place("i1")
        zero = write.number(fold.zeros[stays.part], graph.kinds[self.slot])
        write.line(f"store {zero.type} {zero.name}, ptr {self._place}")
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

    def look(self, values: Callable[[], Sequence[Value]]) -> None:
        """See whether the state surely stays with vectors of the part that says it."""
        write = self._write
        misses = write.made(f"load i64, ptr {self._misses}", "i64", wide=False).name
        write.line(f"store i1 true, ptr {self._needed}")
        with write.when(f"icmp slt i64 {misses}, {_MISSES}"):
            text = f"load {self._kind}, ptr {self._place}"
            best = write.widened(write.made(text, self._kind, wide=False))
            every = [self._stays.holds(write, best, write.widened(value)) for value in values()]
            while len(every) > 1:
                pairs = zip(every[::2], every[1::2], strict=True)
                every = [write.binary("and", *pair) for pair in pairs]
            (stays,) = every
            bits = write.made(f"bitcast {stays.type} {stays.name} to i{WIDTH}", "i32", wide=False)
            some = write.made(f"icmp ne i{WIDTH} {bits.name}, -1", "i1", wide=False).name
            write.line(f"store i1 {some}, ptr {self._needed}")
            more = write.arithmetic("add", misses, "1")
            text = f"select i1 {some}, i64 {more}, i64 0"
            write.line(f"store i64 {write.made(text, 'i64', wide=False).name}, ptr {self._misses}")

    @contextmanager
    def folding(self, held: Held) -> Generator[None]:
        """Instructions inside fold what was looked at; they are skipped if the state stays.

        Of what was folded, it is known then which element seems to be the best.
        """
        write = self._write
        needed = write.made(f"load i1, ptr {self._needed}", "i1", wide=False).name
        with write.when(f"icmp eq i1 {needed}, true"):
            yield
            misses = write.made(f"load i64, ptr {self._misses}", "i64", wide=False).name
            with write.when(f"icmp slt i64 {misses}, {_MISSES}"):
                self._keep(held)

    def _keep(self, held: Held) -> None:
        write = self._write
        (states,) = held.wide()
        value, half = states[self._stays.part], WIDTH // 2
        while half:
            other = write.turned(value, half)
            value = write.chosen(self._stays.holds(write, value, other), value, other)
            half //= 2
        text = f"extractelement {value.type} {value.name}, i64 0"
        first = write.made(text, value.kind, wide=False)
        write.line(f"store {first.type} {first.name}, ptr {self._place}")


def _operations(graph: Graph, slot: int) -> int:
    """How many cells a slot takes."""
    first, needed, left = len(graph.inputs) + len(graph.numbers), set[int](), [slot]
    while left:
        one = left.pop()
        if one >= first and one not in needed:
            needed.add(one)
            left += graph.cells[one - first].ins
    return len(needed)
