"""What loops fold along the last axis: vectors in a function's own memory, until the end.

    held = Held(write, graph)       # nothing is folded yet
    held.merge(found)               # in the loop: parts of a vector, per fold
    for value in held.values():     # the elements of each, halves with halves
        ...

LLVM makes registers of the memory, so vectors are as long as most processors have registers for
what is held at once. What a vector's parts are is said in `accumulating`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapestry.codegen.loops.accumulating import Accumulator, Parts, accumulators
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Graph
from tapestry.codegen.loops.vectors import BYTES, WIDTH, Value

_REGISTERS = 16 * 32
"""Bytes of the vectors that processors have, most of them."""


class Held:
    """The parts of each fold of a graph, one of so many such that are held at once."""

    def __init__(self, write: Function, graph: Graph, beside: int = 1) -> None:
        self._write = write
        self._how = accumulators(graph)
        self._places: list[list[tuple[str, str]]] = []
        zeros: list[Parts] = []
        for fold, how in zip(graph.folds, self._how, strict=True):
            pairs = zip(fold.slots, fold.zeros, strict=True)
            numbers = [write.number(zero, graph.kinds[slot]) for slot, zero in pairs]
            zeros.append(how.lift(write, numbers))
        size = beside * sum(BYTES[part.kind] for parts in zeros for part in parts)
        self._lanes = WIDTH
        while self._lanes > 1 and self._lanes * size > _REGISTERS:
            self._lanes //= 2
        with write.of(self._lanes):
            for parts in zeros:
                wide = [write.widened(part) for part in parts]
                self._places.append([(write.place(part.type), part.kind) for part in wide])
                self._keep(self._places[-1], wide)

    def parts(self) -> list[Parts]:
        """What there is of each fold."""
        write, vector = self._write, f"load <{self._lanes} x"
        found: list[Parts] = []
        with write.of(self._lanes):
            for places in self._places:
                pairs = [(f"{vector} {kind}>, ptr {place}", kind) for place, kind in places]
                found.append([write.made(text, kind, wide=True) for text, kind in pairs])
        return found

    def merge(self, found: Sequence[Parts]) -> None:
        """Fold more, of each."""
        write, lanes = self._write, self._lanes
        with write.of(lanes):
            groups = zip(self._how, self._places, self.parts(), found, strict=True)
            for how, places, parts, more in groups:
                for first in range(0, more[0].lanes, lanes):
                    own = [write.some(part, first, lanes) for part in more]
                    parts = how.merge(write, parts, own)
                self._keep(places, parts)

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
    lanes = parts[0].lanes // 2
    while lanes:
        with write.of(lanes):
            first, second = (
                [write.some(part, start, lanes) for part in parts] for start in (0, lanes)
            )
            parts = how.merge(write, first, second)
        lanes //= 2
    return parts
