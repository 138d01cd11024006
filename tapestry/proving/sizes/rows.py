"""Rows of projections as ties between axes, and the same rows over shorter axes.

    (d0) -> (d0 + 3)              one axis, moved                      stays as it is
    (d0, d1) -> (64 * d0 + d1)    digits, d1 in [0, 64)                6 * d0 + d1
    (d0, d1) -> (2 * d0 + d1)     a window, d1 in [0, 3): not scaled   stays as it is
    () -> (5)                     one fixed cell, which stays          2, say

A row that is none of these pins every axis it touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tapestry.proving.sizes.axes import Axes, Line, UnplacedError
from tapestry.proving.sizes.shortening import Shorter


@dataclass(frozen=True)
class Dimension:
    """One dimension of a box: the line it lies on and its cells `[start, end)`."""

    line: Line
    start: int
    end: int

    @property
    def extent(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Term:
    """`coefficient * d` in a row; a weighted coefficient is the width of digits and shrinks."""

    place: int
    coefficient: int
    dimension: Dimension
    weighted: bool = False


@dataclass(frozen=True)
class Row:
    """A row that has been tied: the cells `[v, v + size)` for `v = sum(terms) + offset`."""

    target: Line
    inputs: int
    terms: tuple[Term, ...]
    offset: int
    size: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last value that the row takes."""
        low = high = self.offset
        for term in self.terms:
            ends = (
                term.coefficient * term.dimension.start,
                term.coefficient * (term.dimension.end - 1),
            )
            low, high = low + min(ends), high + max(ends)
        return low, high

    def shortened(self, shorter: Shorter) -> tuple[tuple[int, ...], int]:
        """The coefficients and the offset over shorter axes."""
        coefficients = [0] * self.inputs
        first = last = 0
        for term in self.terms:
            c = term.coefficient
            if term.weighted:
                c = shorter.weight(self.target, c)
            coefficients[term.place] = c
            start = shorter.edge(term.dimension.line, term.dimension.start)
            end = shorter.edge(term.dimension.line, term.dimension.end) - 1
            first += min(c * start, c * end)
            last += max(c * start, c * end)
        if any(term.dimension.extent == 0 for term in self.terms):
            return tuple(coefficients), self.offset
        low, high = self.bounds
        offset = shorter.edge(self.target, low) - first
        if last + offset + self.size != shorter.edge(self.target, high + self.size):
            raise UnplacedError(self.target)
        return tuple(coefficients), offset


def tie_row(
    axes: Axes,
    target: Line,
    space: Sequence[Dimension],
    coefficients: Sequence[int],
    offset: int,
    size: int = 1,
) -> Row:
    """Tie the cells that a row selects of `target` to the dimensions that select them."""
    terms = tuple(
        Term(place, c, dimension)
        for place, (c, dimension) in enumerate(zip(coefficients, space, strict=True))
        if c
    )
    row = Row(target, len(coefficients), terms, offset, size)
    if any(dimension.extent == 0 for dimension in space):
        _pin(axes, row)
        return row
    low, high = row.bounds
    axes.extent(target, low, high + size)
    moving = tuple(term for term in terms if term.dimension.extent > 1)
    # A dimension of one cell moves nothing: its coefficient only takes part in the offset.
    fixed = offset + sum(t.coefficient * t.dimension.start for t in terms if t not in moving)
    if not moving:
        axes.rigid(target, low, high + size)
        return row
    if size == 1:
        weighted = _tie_digits(axes, target, moving, fixed)
        if weighted is not None:
            kept = {term.place: term for term in weighted}
            return Row(target, row.inputs, tuple(kept.get(t.place, t) for t in terms), offset, size)
    if not _tie_window(axes, target, moving, fixed, size):
        _pin(axes, row)
    return row


def _pin(axes: Axes, row: Row) -> None:
    axes.pin(row.target)
    for term in row.terms:
        axes.pin(term.dimension.line)


def _tie_digits(
    axes: Axes, target: Line, terms: Sequence[Term], offset: int
) -> tuple[Term, ...] | None:
    """Tie a row whose terms are digits, none reaching into the next; None when they are not.

    A single term with coefficient 1 or -1 is the simplest such row.
    """
    ordered = sorted(terms, key=lambda term: -abs(term.coefficient))
    if len(ordered) == 1 and abs(ordered[0].coefficient) == 1:
        (term,) = ordered
        d = term.dimension
        axes.tie(target, d.line, d.start, d.end, sign=term.coefficient, shift=offset)
        return (term,)
    reach = 0
    for term in reversed(ordered):
        if term.coefficient <= reach:
            return None
        reach += term.coefficient * (term.dimension.extent - 1)
    current, anchor = target, offset + sum(t.coefficient * t.dimension.start for t in ordered)
    weighted: list[Term] = []
    for term in ordered:
        c, d = term.coefficient, term.dimension
        if c == 1:
            axes.tie(current, d.line, d.start, d.end, shift=anchor - d.start)
            weighted.append(term)
            break
        digits = axes.split(current, c, anchor)
        if digits is None:
            for pinned in (target, *(other.dimension.line for other in ordered)):
                axes.pin(pinned)
            return tuple(ordered)
        axes.tie(digits[0], d.line, d.start, d.end, shift=-d.start)
        weighted.append(Term(term.place, c, d, weighted=True))
        current, anchor = digits[1], 0
    else:
        # A stride: the cells between are not read, and a stride is not scaled.
        axes.pin(current)
    return tuple(weighted)


def _tie_window(axes: Axes, target: Line, terms: Sequence[Term], offset: int, size: int) -> bool:
    """Tie a row that slides a window: one long dimension, and short ones that are not scaled."""
    main = max(terms, key=lambda term: (term.dimension.extent, abs(term.coefficient)))
    c, d = main.coefficient, main.dimension
    if c < 1:
        return False
    low = high = offset
    for term in terms:
        if term is not main:
            ends = (
                term.coefficient * term.dimension.start,
                term.coefficient * (term.dimension.end - 1),
            )
            low, high = low + min(ends), high + max(ends)
            axes.pin(term.dimension.line)
    high += size - 1
    if c == 1:
        axes.tie(target, d.line, d.start, d.end, shift=low)
    else:
        digits = axes.split(target, c, low)
        if digits is None:
            return False
        axes.tie(digits[0], d.line, d.start, d.end)
        axes.pin(digits[1])
    # Where the main dimension ends, the window reaches further by what it covers.
    end = c * d.end + low
    reach = c * (d.end - 1) + high + 1
    axes.rigid(target, min(end, reach), max(end, reach))
    return True
