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

_REGISTER = 32
"""Bytes of a vector that most processors have."""

_LEAST = 16
"""Bytes of the shortest vectors that processors have."""

_REGISTERS = 16 * _REGISTER
"""Bytes of all of them."""


def fitting(graph: Graph, most: int) -> int:
    """How many may be held at once, at most so many, of which each part fills a register."""
    write = Function()
    zeros = [
        how.lift(write, [write.number(0, graph.kinds[slot]) for slot in fold.slots])
        for fold, how in zip(graph.folds, accumulators(graph), strict=True)
    ]
    sizes = [BYTES[part.kind] for parts in zeros for part in parts]
    lanes = _REGISTER // min(sizes, default=_REGISTER)
    while most > 1 and most * lanes * sum(sizes) > _REGISTERS:
        most //= 2
    return most


class Held:
    """The parts of each fold of a graph, one of so many such that are held at once.

    Vectors have at least as many elements as the `shortest`, whatever registers there are, and at
    most as many as the `longest`.
    """

    def __init__(
        self,
        write: Function,
        graph: Graph,
        beside: int = 1,
        shortest: int = 1,
        longest: int = WIDTH,
    ) -> None:
        self._write = write
        self._how = accumulators(graph)
        self._places: list[list[tuple[str, str]]] = []
        zeros: list[Parts] = []
        for fold, how in zip(graph.folds, self._how, strict=True):
            pairs = zip(fold.slots, fold.zeros, strict=True)
            numbers = [write.number(zero, graph.kinds[slot]) for slot, zero in pairs]
            zeros.append(how.lift(write, numbers))
        size = beside * sum(BYTES[part.kind] for parts in zeros for part in parts)
        self._lanes = longest
        while self._lanes > shortest and self._lanes * size > _REGISTERS:
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


def columns_of(write: Function, graph: Graph, every: Sequence[Held], columns: int) -> list[Value]:
    """What each of some columns folds to: vectors of so many elements.

    What is held is of vectors one after another, whose elements are those of whole rows. Rows are
    merged with what follows them in memory, as many elements as a power of two.
    """
    found: list[Value] = []
    lanes = 1 << (columns - 1).bit_length()
    for number, how in enumerate(accumulators(graph)):
        vectors = [held.parts()[number] for held in every]
        with write.of(lanes):
            parts = [
                _rows(write, [own[part] for own in vectors], columns)
                for part in range(len(vectors[0]))
            ]
            rows: list[Parts] = [[own[row] for own in parts] for row in range(len(parts[0]))]
            while len(rows) > 1:
                pairs = zip(rows[::2], rows[1::2], strict=False)
                left = rows[-1:] if len(rows) % 2 else []
                rows = [*(how.merge(write, *pair) for pair in pairs), *left]
            merged = how.finish(write, rows[0])
        found += [write.some(value, 0, columns) for value in merged]
    return found


def _rows(write: Function, vectors: Sequence[Value], columns: int) -> list[Value]:
    """As many elements as the writer's lanes from where each row of so many begins.

    What comes after the row is of the next one, or of no row. Elements of `i1` are less than a byte
    of a vector, and have no place in memory.
    """
    kind, cells = vectors[0].kind, len(vectors) * vectors[0].lanes
    assert kind != "i1"
    memory = write.place(f"[{cells + write.lanes} x {kind}]")
    for number, vector in enumerate(vectors):
        to = write.moved(memory, str(number * vector.lanes), str(BYTES[kind]))
        write.line(f"store {vector.type} {vector.name}, ptr {to}, align 1")
    rows: list[Value] = []
    for first in range(0, cells, columns):
        at = write.moved(memory, str(first), str(BYTES[kind]))
        text = f"load <{write.lanes} x {kind}>, ptr {at}, align 1"
        rows.append(write.made(text, kind, wide=True))
    return rows


def _folded(write: Function, how: Accumulator, parts: Parts) -> Parts:
    """Reduce vectors to one element, halves with halves.

    Below 16 bytes a vector keeps its length, as LLVM would compare single numbers in other
    registers: elements after the first `lanes` are anything, and never read.
    """
    lanes = parts[0].lanes // 2
    least = min(parts[0].lanes, _LEAST // max(BYTES[part.kind] for part in parts))
    while lanes:
        wide = max(lanes, least)
        with write.of(wide):
            first, second = (
                [_rotated(write, part, start, wide) for part in parts] for start in (0, lanes)
            )
            parts = how.merge(write, first, second)
        lanes //= 2
    with write.of(1):
        return [write.some(part, 0, 1) for part in parts]


def _rotated(write: Function, part: Value, start: int, lanes: int) -> Value:
    """So many elements of a vector, from one on; after the last come the first."""
    return write.picked(part, [(start + lane) % part.lanes for lane in range(lanes)])
