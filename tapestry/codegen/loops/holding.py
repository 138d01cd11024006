"""What loops fold along the last axis: vectors in a function's own memory, until the end.

    held = Held(write, graph)       # nothing is folded yet
    held.merge(found)               # in the loop: parts of a vector, per fold
    for value in held.values():     # the elements of each, halves with halves
        ...

LLVM makes registers of the memory. What a vector's parts are is said in `accumulating`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapestry.codegen.loops.accumulating import Accumulator, Parts, accumulators
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Graph
from tapestry.codegen.loops.vectors import WIDTH, Value


class Held:
    """The parts of each fold of a graph."""

    def __init__(self, write: Function, graph: Graph) -> None:
        self._write = write
        self._how = accumulators(graph)
        self._places: list[list[tuple[str, str]]] = []
        for fold, how in zip(graph.folds, self._how, strict=True):
            zeros = [
                write.widened(write.number(zero, graph.kinds[slot]))
                for slot, zero in zip(fold.slots, fold.zeros, strict=True)
            ]
            parts = how.lift(write, zeros)
            self._places.append([(write.place(part.type), part.kind) for part in parts])
            self._keep(self._places[-1], parts)

    def parts(self) -> list[Parts]:
        """What there is of each fold."""
        return [
            [
                self._write.made(f"load <{WIDTH} x {kind}>, ptr {place}", kind, wide=True)
                for place, kind in places
            ]
            for places in self._places
        ]

    def merge(self, found: Sequence[Parts]) -> None:
        """Fold more, of each."""
        groups = zip(self._how, self._places, self.parts(), found, strict=True)
        for how, places, before, parts in groups:
            self._keep(places, how.merge(self._write, before, parts))

    def values(self) -> list[Value]:
        """The numbers that the folds come to."""
        found: list[Value] = []
        for how, parts in zip(self._how, self.parts(), strict=True):
            one = _folded(self._write, how, parts)
            with self._write.of(1):
                values = how.finish(self._write, one)
            for value in values:
                text = f"extractelement {value.type} {value.name}, i64 0"
                found.append(self._write.made(text, value.kind, wide=False))
        return found

    def _keep(self, places: Sequence[tuple[str, str]], parts: Parts) -> None:
        for (place, _), part in zip(places, parts, strict=True):
            self._write.line(f"store {part.type} {part.name}, ptr {place}")


def _folded(write: Function, how: Accumulator, parts: Parts) -> Parts:
    """What the elements of vectors come to, halves with halves: vectors of one element."""
    lanes = WIDTH // 2
    while lanes:
        with write.of(lanes):
            first, second = (
                [write.some(part, start, lanes) for part in parts] for start in (0, lanes)
            )
            parts = how.merge(write, first, second)
        lanes //= 2
    return parts
