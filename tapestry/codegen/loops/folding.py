"""What loops fold along the last axis: vectors of a row, or of several that are folded at once.

    folding = Folding(write, graph, 4, point)           # `point` writes what a vector is made of
    held = folding.held(len(rows))
    folding.fold("0", end, rows, held)                  # to a vector for each row
    folding.each(end, rows, held)                       # and one more, of what is left

Where the order matters, as for sums of floats, vectors are folded block by block, and blocks into
larger ones, so that errors grow slowly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import TypeAlias

from tapestry.codegen.loops.accumulating import Parts, accumulators
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import ROUNDED, Graph, Merged
from tapestry.codegen.loops.holding import Held
from tapestry.codegen.loops.skipping import Best
from tapestry.codegen.loops.vectors import WIDTH, Value

BESIDE = 4
"""Rows that are folded at once, or vectors of one."""

FEW = 4
"""Operations for a point up to which that is worth the instructions."""

_FEW_ELEMENTS = 8
"""Of a vector that is folded seldom."""

_BLOCK = 32
"""Vectors that are folded one after another before they meet the rest, and blocks, and so on."""

_DEPTH = 3
"""How many kinds of blocks there are: the largest are of a million numbers."""

Row: TypeAlias = tuple[dict[int, str], dict[int, Value]]
"""Where arrays are, and what is the same along the last axis."""

Point: TypeAlias = Callable[[str, Row], Sequence[Parts]]
"""Writes what is computed for a vector at a place of a row, and gives what of it is folded."""


def vectors_of(columns: int) -> int:
    """After how many vectors one begins where a row does, of rows of so many cells in a row."""
    return columns // gcd(columns, WIDTH)


class Folding:
    """The folds of a graph along the last axis, of so many rows `beside` each other."""

    def __init__(
        self,
        write: Function,
        graph: Graph,
        beside: int,
        point: Point,
        step: int = WIDTH,
        shortest: int = 1,
    ) -> None:
        """A row is gone along in steps of so many elements, of which each row beside has a vector.

        What is held of one has at least as many elements as the `shortest`.
        """
        self._write = write
        self._step = step
        self._shortest = shortest
        self._graph = graph
        self._beside = beside
        self._point = point
        self._accumulators = accumulators(graph)
        rounded = (isinstance(one, Merged) or one.primitive in ROUNDED for one in graph.folds)
        self._depth = _DEPTH if any(rounded) else 0

    def held(self, rows: int) -> list[Held]:
        """What so many rows fold to, of which there is nothing yet."""
        return [Held(self._write, self._graph, self._beside, self._shortest) for _ in range(rows)]

    def held_of_few(self) -> Held:
        """What a row folds to of which few vectors are folded: that is finished sooner."""
        return Held(self._write, self._graph, longest=_FEW_ELEMENTS)

    def each(self, at: str, rows: Sequence[Row], held: Sequence[Held]) -> None:
        """Fold a vector of each row."""
        for row, own in zip(rows, held, strict=True):
            own.merge(self._point(at, row))

    def fold(self, start: str, end: str, rows: Sequence[Row], held: Sequence[Held]) -> None:
        """Fold whole vectors of each row from one place to another."""
        self._blocks(self._depth, start, end, rows, held)

    def skip(
        self, end: str, row: Row, held: Held, best: Best, part: Callable[[str, Row], Value]
    ) -> None:
        """Fold whole vectors of which some point may change what there is.

        `part` writes what says that, for the vector at a place.
        """

        def every(start: str, end: str) -> None:
            (own,) = self.held(1)
            self._along(start, end, [row], [own])
            held.merge(own.parts())

        best.fold(
            end,
            part=lambda place: part(place, row),
            one=lambda place: held.merge(self._point(place, row)),
            every=every,
        )

    def together(self, found: Sequence[Sequence[Parts]]) -> list[Parts]:
        """What several vectors fold to, neighbours first."""
        while len(found) > 1:
            pairs = zip(found[::2], found[1::2], strict=True)
            found = [self._merged(*pair) for pair in pairs]
        return list(found[0])

    def _merged(self, left: Sequence[Parts], right: Sequence[Parts]) -> list[Parts]:
        triples = zip(self._accumulators, left, right, strict=True)
        return [how.merge(self._write, a, b) for how, a, b in triples]

    def _blocks(
        self, depth: int, start: str, end: str, rows: Sequence[Row], held: Sequence[Held]
    ) -> None:
        """Fold vectors, block by block, blocks into larger ones."""
        if not depth:
            self._along(start, end, rows, held)
            return
        write, size = self._write, str(self._step * _BLOCK**depth)
        with write.loop(end, int(size), start) as at:
            own = self.held(len(held))
            stop = write.least(write.arithmetic("add", at, size), end)
            self._blocks(depth - 1, at, stop, rows, own)
            for one, more in zip(held, own, strict=True):
                one.merge(more.parts())

    def _along(self, start: str, end: str, rows: Sequence[Row], held: Sequence[Held]) -> None:
        """Fold vectors: several of one row at once, as each result takes a while to be there."""
        write, few = self._write, len(self._graph.cells) <= FEW and self._beside == 1
        if few and all(how.waits for how in self._accumulators):
            length = write.arithmetic("sub", end, start)
            whole = write.arithmetic("and", length, str(-WIDTH * BESIDE))
            several = write.arithmetic("add", start, whole)
            (row,), (own,) = rows, held
            with write.loop(several, WIDTH * BESIDE, start) as at:
                places = [write.arithmetic("add", at, str(n * WIDTH)) for n in range(BESIDE)]
                own.merge(self.together([self._point(place, row) for place in places]))
            start = several
        with write.loop(end, self._step, start) as at:
            self.each(at, rows, held)
