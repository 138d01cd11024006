"""How many points of a box a domain holds, without visiting all of them.

    >>> causal = Domain.of([[1, -1]])                         # d0 - d1 >= 0
    >>> points_inside(causal, Range.of((2**40, 2**40))) == 2**40 * (2**40 + 1) // 2
    True

Rows that share no dimension are independent: their counts multiply. Two dimensions of which one has
factors of one alone are a sum of pieces between straight lines. Digits (`8 * d0 + d1`) count as the
one dimension that they are digits of; what is left is counted for each coordinate of a dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from tapestry.zspace.domain import Domain
from tapestry.zspace.ranges import Range

_Row = tuple[tuple[int, ...], int]
"""Factors and a constant."""

_Line = tuple[int, int]
"""A slope and a constant."""


def points_inside(domain: Domain | None, box: Range) -> int:
    """How many points of `box` are inside; all without a domain."""
    rest = None if domain is None else domain.within(box)
    if rest is None:
        return box.size
    if rest.misses(box):
        return 0
    # Counted from the start of the box.
    at_start = rest.rows.apply(box.start)
    rows = list(zip(rest.rows.matrix, at_start, strict=True))
    total = 1
    for dims in _connected(rows, box.rank):
        own = [
            (tuple(factors[d] for d in dims), constant)
            for factors, constant in rows
            if any(factors[d] for d in dims)
        ]
        total *= _count(_Space(tuple(box.shape[d] for d in dims), tuple(own)))
    return total


def _connected(rows: Sequence[_Row], rank: int) -> list[list[int]]:
    """The dimensions in groups that no row mixes with others."""
    group = list(range(rank))
    for factors, _ in rows:
        dims = [d for d in range(rank) if factors[d]]
        joined = {group[d] for d in dims}
        group = [min(joined) if g in joined else g for g in group]
    return [[d for d in range(rank) if group[d] == first] for first in sorted(set(group))]


@dataclass(frozen=True)
class _Space:
    """A box from the origin on, and the rows that hold in it."""

    shape: tuple[int, ...]
    rows: tuple[_Row, ...]

    def factors(self, dim: int) -> tuple[int, ...]:
        """What a dimension is multiplied by, row by row."""
        return tuple(factors[dim] for factors, _ in self.rows)

    def joined(self, outer: int, inner: int) -> _Space:
        """The space with two digits as one dimension, where the inner one is."""
        shape = list(self.shape)
        shape[inner] *= shape[outer]
        rows = tuple((f[:outer] + f[outer + 1 :], constant) for f, constant in self.rows)
        return _Space(tuple(shape[:outer] + shape[outer + 1 :]), rows)

    def at(self, dim: int, coordinate: int) -> _Space:
        """The space at one coordinate of a dimension."""
        rows = tuple(
            (f[:dim] + f[dim + 1 :], constant + f[dim] * coordinate) for f, constant in self.rows
        )
        return _Space(self.shape[:dim] + self.shape[dim + 1 :], rows)


def _count(space: _Space) -> int:
    """How many points of a space all of its rows hold at."""
    digits = _digits(space)
    if digits is not None:
        return _count(space.joined(*digits))
    rank = len(space.shape)
    if rank == 0:
        return int(all(constant >= 0 for _, constant in space.rows))
    if rank == 1:
        return _length(space.rows, space.shape[0])
    if rank == 2:
        for dim in (0, 1):
            if all(abs(factor) <= 1 for factor in space.factors(dim)):
                return _between(space, dim)
    dim = min(range(rank), key=lambda d: space.shape[d])
    return sum(_count(space.at(dim, coordinate)) for coordinate in range(space.shape[dim]))


def _digits(space: _Space) -> tuple[int, int] | None:
    """Two dimensions of which one steps over all of the other, in every row."""
    dims = range(len(space.shape))
    for outer in dims:
        for inner in dims:
            step = tuple(factor * space.shape[inner] for factor in space.factors(inner))
            if outer != inner and step == space.factors(outer):
                return outer, inner
    return None


def _length(rows: Iterable[_Row], size: int) -> int:
    """How many numbers below `size` rows of one dimension hold at."""
    low, high = 0, size - 1
    for (factor,), constant in rows:
        if factor > 0:
            low = max(low, -(constant // factor))
        elif factor < 0:
            high = min(high, constant // -factor)
        elif constant < 0:
            return 0
    return max(0, high - low + 1)


def _between(space: _Space, dim: int) -> int:
    """The points between lines: per coordinate of the other dimension, an interval along `dim`."""
    other = 1 - dim
    lows: list[_Line] = [(0, 0)]
    highs: list[_Line] = [(0, space.shape[dim] - 1)]
    first, last = 0, space.shape[other] - 1
    for factors, constant in space.rows:
        slope = factors[other]
        if factors[dim] == 1:
            lows.append((-slope, -constant))
        elif factors[dim] == -1:
            highs.append((slope, constant))
        elif slope > 0:
            first = max(first, -(constant // slope))
        elif slope < 0:
            last = min(last, constant // -slope)
    lines = [*lows, *((slope, constant + 1) for slope, constant in highs)]
    # Between crossings the interval's length is one line, or nothing.
    cuts = {first, last + 1}
    for (a, b), (c, d) in combinations(lines, 2):
        if a != c:
            crossing = (d - b) // (a - c)
            cuts |= {cut for cut in (crossing, crossing + 1) if first < cut <= last}

    def length(at: int) -> int:
        top = min(slope * at + constant for slope, constant in highs)
        bottom = max(slope * at + constant for slope, constant in lows)
        return max(0, top - bottom + 1)

    return sum(
        (length(start) + length(end - 1)) * (end - start) // 2
        for start, end in pairwise(sorted(cuts))
        if start < end
    )
