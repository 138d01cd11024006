"""How the arrays of a loop lie along its axes: in which order these are gone along, and what of it
shows how arrays are read.

    axes = Axes(graph, (100, 8), folded=(0,), widths=[4, 4])
    extents, steps, are_folded = axes.of([x, y])        # outermost first; the last one in vectors
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tapestry.codegen.loops import WIDTH, Graph
from tapestry.codegen.loops.folding import vectors_of
from tapestry.codegen.loops.vectors import LONG
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array

_PAGE = 4096
"""Bytes within which processors fetch ahead by themselves."""

_ROWS = 4
"""Rows that a loop may be at work on at once."""

_FETCHED = 16 * _PAGE
"""Bytes of an array, or of a row, from which it is fetched ahead: less comes to little."""

_HELD = 3
"""Vectors that are held at most for columns that are folded."""

_IN_ROWS = 1 << 10
"""Numbers in rows of few cells from which these are gone along as one row."""

_MUCH = 64
"""Operations of all vectors of rows of few cells up to which these are gone along as one row."""


@dataclass(frozen=True)
class InRows:
    """Rows of so many `columns` as one row: which arrays have cells of their `own` for all of it,
    which inputs have them for each column, or for each row; whether columns are folded, or rows.
    """

    columns: int
    own: frozenset[int]
    repeated: tuple[int, ...]
    spread: tuple[int, ...]
    folded: bool
    by_rows: bool


class Axes:
    """The axes of a graph over an index space of some shape; arrays have cells of some widths."""

    def __init__(
        self,
        graph: Graph,
        shape: tuple[int, ...],
        folded: tuple[int, ...],
        widths: Sequence[int],
    ) -> None:
        self._graph = graph
        self._shape = shape
        self._folded = folded
        self._widths = widths
        self._boxes = graph.boxes

    def of(self, arrays: Sequence[Array]) -> tuple[list[int], list[list[int]], list[bool]]:
        """The axes of the loops, outermost first: extents, strides per array, which are folded."""
        moving = [
            [0 if n == 1 else step for n, step in zip(array.shape, array.strides, strict=True)]
            for array in (self._of_rank(array) for array in arrays)
        ]
        axes: list[tuple[int, list[int], bool]] = []
        for axis, extent in enumerate(self._shape):
            own, folded = [steps[axis] for steps in moving], axis in self._folded
            if extent == 1 and not (folded and self._graph.running):
                continue
            if axes:
                before, steps, kind = axes[-1]
                if kind == folded and all(
                    far == near * extent for far, near in zip(steps, own, strict=True)
                ):
                    axes[-1] = (before * extent, own, kind)
                    continue
            axes.append((extent, own, folded))
        if not axes:
            axes.append((1, [0] * len(arrays), False))
        last = max(range(len(axes)), key=lambda n: (*self._density(axes[n]), n))
        inner = axes.pop(last)
        # Folded axes are inside of the others, but for the last. That along which the neighbours of
        # some arrays lie is before it, if of its kind.
        axes.sort(key=lambda axis: (axis[2], self._crossing(axis, inner)))
        order = [*axes, inner]
        steps = [[own[array] for _, own, _ in order] for array in range(len(arrays))]
        return [extent for extent, _, _ in order], steps, [folded for _, _, folded in order]

    def ahead(self, extents: Sequence[int], steps: Sequence[Sequence[int]]) -> dict[int, int]:
        """The inputs that are fetched ahead of where they are read, and by how many bytes.

        Processors do that by themselves, most up to the end of a page: so it is the next page, or
        some rows further where rows are not one after another.
        """
        found: dict[int, int] = {}
        for array in range(len(self._graph.inputs)):
            own, width = steps[array], self._widths[array]
            row = extents[-1] * width
            if array in self._boxes:
                continue
            cells = prod(n for n, step in zip(extents, own, strict=True) if step)
            if own[-1] != width or cells * width < _FETCHED:
                continue
            before = own[-2] if len(own) > 1 else row
            if before == row or row >= _FETCHED:
                if not native.fetches_pages():
                    found[array] = _PAGE
            elif before:
                found[array] = before * max(_ROWS, -(-_PAGE // row))
        return found

    def in_rows(
        self, extents: Sequence[int], steps: Sequence[Sequence[int]], folded: Sequence[bool]
    ) -> InRows | None:
        """The rows of few cells, one after another, that are gone along as one row; None without.

        Columns of them are folded, or rows are, or nothing is, and something is read that not all
        cells have of their own.
        """
        if self._graph.running or self._boxes or len(extents) < 2 or any(folded[:-2]):
            return None
        # Rows may be along the last axis, as short axes are not gone along in vectors.
        pairs = (-2, -1), (-1, -2)
        return next(
            filter(None, (self._rows(extents, steps, folded, *pair) for pair in pairs)), None
        )

    def _rows(
        self,
        extents: Sequence[int],
        steps: Sequence[Sequence[int]],
        folded: Sequence[bool],
        row: int,
        cell: int,
    ) -> InRows | None:
        """Those of cells along one axis, which follow one another along another."""
        graph, columns = self._graph, extents[cell]
        folds, units = folded[row] or folded[cell], vectors_of(columns)
        if not 1 < columns < WIDTH or extents[row] * columns < _IN_ROWS:
            return None
        if folded[row] and (folded[cell] or graph.stores or units > _HELD):
            return None
        # Truth values are bits of a vector, of which none begins in memory.
        if folds and any(graph.kinds[slot] == "i1" for slot in graph.folded):
            return None
        inputs, made = len(graph.inputs), len(graph.inputs) + len(graph.stores)
        of_folds = "repeated" if folded[row] else "spread"
        found: dict[str, list[int]] = {"own": [], "repeated": [], "spread": []}
        for array, (strides, width) in enumerate(zip(steps, self._widths, strict=True)):
            ways = {(width * columns, width): "own", (0, width): "repeated", (width, 0): "spread"}
            way = ways.get((strides[row], strides[cell]))
            written = of_folds if folds and array >= made else "own"
            if array >= inputs and way != written:
                return None
            if way is not None:
                found[way].append(array)
            elif strides[row] or strides[cell]:
                return None  # no single number either
        repeated, spread = (
            tuple(array for array in found[way] if array < inputs) for way in ("repeated", "spread")
        )
        arranged = len(repeated) + len(spread)
        if arranged and (folded[row] or units * (len(graph.cells) + arranged) > _MUCH):
            return None
        if not (folds or arranged):
            return None
        return InRows(columns, frozenset(found["own"]), repeated, spread, folds, folded[cell])

    def _density(self, axis: tuple[int, list[int], bool]) -> tuple[bool, float]:
        """Whether vectors are of use, and how many arrays are neighbours, less those that are not.

        Neighbours are worth as much as they fill vectors.
        """
        extent, steps, _ = axis
        pairs = zip(steps, self._widths, strict=True)
        near = sum(1 if step == width else -1 for step, width in pairs if step)
        filled = extent / max(-(-extent // WIDTH) * WIDTH, 1)
        return extent >= LONG, near * filled if near > 0 else near

    def _crossing(
        self, axis: tuple[int, list[int], bool], last: tuple[int, list[int], bool]
    ) -> int:
        """How many bytes of inputs have their neighbours along an axis, and not along the last."""
        inputs = range(len(self._graph.inputs))
        return sum(self._widths[n] for n in inputs if self._crosses(n, axis[1][n], last[1][n]))

    def _crosses(self, array: int, step: int, last: int) -> bool:
        width = self._widths[array]
        return array not in self._boxes and step == width and last not in (0, width)

    def crossed(
        self, extents: Sequence[int], steps: Sequence[Sequence[int]], folded: Sequence[bool]
    ) -> tuple[int, ...]:
        """The inputs that are read in tiles of the last two axes, where these are long enough."""
        if len(extents) < 2 or self._graph.running or folded[-1] or min(extents[-2:]) < LONG:
            return ()
        inputs = range(len(self._graph.inputs))
        return tuple(n for n in inputs if self._crosses(n, *steps[n][-2:]))

    def _of_rank(self, array: Array) -> Array:
        """A single number as an array of the rank of the others."""
        return array if array.ndim else array.reshape((1,) * len(self._shape))
