"""Points that a fold passes by, as the state that there is stays as it is with them.

    best = Best.of(write, graph)            # None where no merge says when a state stays
    with best.needed(values):               # of some vectors of the part that says it
        ...                                 # fold these points; then
        best.keep(held)

The place of the largest of many numbers changes seldom: most points are compared with the largest
so far, and that is all.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Graph, Merged, Stays
from tapestry.codegen.loops.holding import Held
from tapestry.codegen.loops.vectors import WIDTH, Value

VECTORS = 8
"""Vectors that are looked at before one of them is folded."""


class Best:
    """The part of the state that points so far, or some of them, are folded to."""

    def __init__(self, write: Function, graph: Graph, stays: Stays) -> None:
        (fold,) = graph.folds
        self.slot = fold.slots[stays.part]
        """Where a graph has that part of a point."""
        self._write, self._stays = write, stays
        self._kind = graph.kinds[self.slot]
        self._place = write.place(self._kind)
        zero = write.number(fold.zeros[stays.part], self._kind)
        write.line(f"store {zero.type} {zero.name}, ptr {self._place}")

    @staticmethod
    def of(write: Function, graph: Graph) -> Best | None:
        """That of a graph with one fold, whose merge says when a state stays."""
        fold = graph.folds[0] if len(graph.folds) == 1 else None
        stays = fold.stays if isinstance(fold, Merged) else None
        return None if stays is None else Best(write, graph, stays)

    @contextmanager
    def needed(self, values: Sequence[Value]) -> Generator[None]:
        """Instructions inside are skipped if the state surely stays, whatever else points have."""
        write = self._write
        text = f"load {self._kind}, ptr {self._place}"
        best = write.widened(write.made(text, self._kind, wide=False))
        every = [self._stays.holds(write, best, write.widened(value)) for value in values]
        while len(every) > 1:
            pairs = zip(every[::2], every[1::2], strict=True)
            every = [write.binary("and", *pair) for pair in pairs]
        (stays,) = every
        bits = write.made(f"bitcast {stays.type} {stays.name} to i{WIDTH}", "i32", wide=False)
        with write.when(f"icmp ne i{WIDTH} {bits.name}, -1"):
            yield

    def keep(self, held: Held) -> None:
        """Know of what was folded: of the states of elements, one that seems to be the best."""
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
