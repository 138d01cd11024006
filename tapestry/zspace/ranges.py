"""Ranges: half-open boxes `[start : end)` of the integer lattice, of any rank, anywhere.

    >>> box = Range((0, -1), (2, 3))
    >>> print(box, box.shape, box.size)
    [0, -1] : [2, 3] (2, 4) 8
    >>> [str(part) for part in box.split(1, 3)]
    ['[0, -1] : [2, 2]', '[0, 2] : [2, 3]']

An empty range keeps its position, and rank 0 has one point. Arithmetic is on Python integers, so a
dimension of 2**40 cells is as cheap as one of 2; only `coords` visits cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from operator import add, le, lt, sub
from typing import TypeAlias

from tapestry.zspace.errors import (
    DimMismatchError,
    EmptyRangeError,
    IndexOutOfRangeError,
    InvalidArgumentError,
    InvalidRangeError,
)
from tapestry.zspace.points import (
    Point,
    as_point,
    format_point,
    require_rank,
    resolve_dim,
    resolve_dims,
    resolve_permutation,
)

Interval: TypeAlias = tuple[int, int]
"""Where a range starts and ends along one dimension: a side of it."""

_INT_ONLY = frozenset((int,))


@dataclass(frozen=True, slots=True)
class Range:
    """The points `p` with `start <= p < end` in every coordinate; `start <= end` is required."""

    start: Point
    end: Point

    def __post_init__(self) -> None:
        start, end = self.start, self.end
        if type(start) is not tuple or type(end) is not tuple or not _exact(start, end):
            object.__setattr__(self, "start", as_point(start))
            object.__setattr__(self, "end", as_point(end))
            start, end = self.start, self.end
        if len(start) != len(end):
            raise DimMismatchError(
                f"a range starts and ends with the same rank: start {format_point(start)} has "
                f"{len(start)} dimensions, end {format_point(end)} has {len(end)}"
            )
        if not all(map(le, start, end)):
            raise InvalidRangeError(
                f"range {self} ends before it starts: start <= end must hold in every dimension"
            )

    @staticmethod
    def of(shape: Sequence[int]) -> Range:
        """The range of an array with this shape: from the origin to `shape`."""
        return Range((0,) * len(shape), as_point(shape))

    @staticmethod
    def of_sides(sides: Iterable[Interval]) -> Range:
        """The range with these sides, one for each dimension."""
        given = tuple(sides)
        return Range(tuple(low for low, _ in given), tuple(high for _, high in given))

    def __str__(self) -> str:
        return f"{format_point(self.start)} : {format_point(self.end)}"

    @property
    def rank(self) -> int:
        return len(self.start)

    @property
    def shape(self) -> Point:
        return tuple(map(sub, self.end, self.start))

    @property
    def sides(self) -> tuple[Interval, ...]:
        """Where the range starts and ends along each dimension."""
        return tuple(zip(self.start, self.end, strict=True))

    @property
    def size(self) -> int:
        """How many points; 1 at rank 0."""
        return prod(map(sub, self.end, self.start))

    @property
    def is_empty(self) -> bool:
        return not all(map(lt, self.start, self.end))

    @property
    def inclusive_end(self) -> Point:
        """The last point; an empty range has none (EmptyRangeError)."""
        if self.is_empty:
            raise EmptyRangeError(f"range {self} is empty: it has no last point")
        return tuple(coordinate - 1 for coordinate in self.end)

    def contains(self, point: Sequence[int]) -> bool:
        """Whether `point` is one of the range's points."""
        require_rank(point, len(self.start), "point")
        return all(map(le, self.start, point)) and all(map(lt, point, self.end))

    def contains_range(self, other: Range) -> bool:
        """Whether `other` lies inside; an empty one does if its corners are in the closed box."""
        if len(other.start) != len(self.start):
            raise self._mismatch(other)
        return all(map(le, self.start, other.start)) and all(map(le, other.end, self.end))

    def intersection(self, other: Range) -> Range | None:
        """The common range; None when disjoint, an empty positioned range when only touching."""
        if len(other.start) != len(self.start):
            raise self._mismatch(other)
        start = tuple(map(max, self.start, other.start))
        end = tuple(map(min, self.end, other.end))
        return unchecked(start, end) if all(map(le, start, end)) else None

    def clip(self, within: Range) -> Range:
        """The part of this range inside `within`; an empty range on its border when none is."""
        if len(within.start) != len(self.start):
            raise self._mismatch(within)
        low, high = within.start, within.end
        start = tuple(min(max(a, b), c) for a, b, c in zip(self.start, low, high, strict=True))
        end = tuple(min(max(a, b), c) for a, b, c in zip(self.end, low, high, strict=True))
        return unchecked(start, end)

    def overlaps(self, other: Range) -> bool:
        """Whether the two ranges share a point."""
        common = self.intersection(other)
        return common is not None and not common.is_empty

    def translate(self, offset: Sequence[int]) -> Range:
        """The range moved by `offset`."""
        require_rank(offset, len(self.start), "offset")
        by = as_point(offset)
        return unchecked(tuple(map(add, self.start, by)), tuple(map(add, self.end, by)))

    def product(self, other: Range) -> Range:
        """The range whose points are a point of this one followed by a point of `other`."""
        return unchecked(self.start + other.start, self.end + other.end)

    def permute(self, permutation: Sequence[int]) -> Range:
        """The range with its dimensions reordered: dimension i is `permutation[i]` of this one."""
        return self._pick(resolve_permutation(permutation, self.rank))

    def select(self, dims: Sequence[int]) -> Range:
        """The range over the given distinct dimensions only, in the given order."""
        return self._pick(resolve_dims(dims, self.rank))

    def with_sides(self, sides: Mapping[int, Interval]) -> Range:
        """The range with other sides along some dimensions."""
        start, end = list(self.start), list(self.end)
        for dim, (low, high) in sides.items():
            start[dim], end[dim] = low, high
        return Range(tuple(start), tuple(end))

    def at_start(self, dims: Iterable[int]) -> Range:
        """The range with one point along some dimensions, the one where it starts."""
        return self.with_sides({dim: (self.start[dim], self.start[dim] + 1) for dim in dims})

    def split(self, dim: int, chunk: int) -> tuple[Range, ...]:
        """The ceil(extent / chunk) ranges of `chunk` along `dim`; the last takes what is left."""
        if chunk <= 0:
            raise InvalidArgumentError(f"a chunk must have at least one cell, not {chunk}")
        dim = resolve_dim(dim, self.rank)
        start, end = self.start[dim], self.end[dim]
        return tuple(
            self._with_dim(dim, low, min(low + chunk, end)) for low in range(start, end, chunk)
        )

    def split_sizes(self, dim: int, sizes: Sequence[int]) -> tuple[Range, ...]:
        """Consecutive ranges of the given sizes along `dim`, which must add up to its extent."""
        dim = resolve_dim(dim, self.rank)
        sizes = as_point(sizes)
        extent = self.end[dim] - self.start[dim]
        if any(size < 0 for size in sizes) or sum(sizes) != extent:
            raise InvalidArgumentError(
                f"sizes {format_point(sizes)} must be at least 0 and add up to {extent}, "
                f"the extent of dimension {dim} of {self}"
            )
        cuts = accumulate(sizes, initial=self.start[dim])
        return tuple(self._with_dim(dim, low, high) for low, high in pairwise(cuts))

    def coords(self) -> Iterator[Point]:
        """Every point in row-major order: the last dimension changes fastest."""
        return _coords(self.start, self.end)

    def slices(self, within: Range) -> tuple[slice, ...]:
        """Where this range is stored in an array that holds `within`, as NumPy slices."""
        if not within.contains_range(self):
            raise IndexOutOfRangeError(f"range {self} is not inside {within}")
        return tuple(
            slice(low - base, high - base)
            for low, high, base in zip(self.start, self.end, within.start, strict=True)
        )

    def _pick(self, dims: Point) -> Range:
        start, end = self.start, self.end
        return unchecked(tuple([start[dim] for dim in dims]), tuple([end[dim] for dim in dims]))

    def _with_dim(self, dim: int, low: int, high: int) -> Range:
        start, end = self.start, self.end
        return unchecked(
            (*start[:dim], low, *start[dim + 1 :]), (*end[:dim], high, *end[dim + 1 :])
        )

    def _mismatch(self, other: Range) -> DimMismatchError:
        return DimMismatchError(
            f"range {self} has {self.rank} dimensions and range {other} has {other.rank}"
        )


def bounding(ranges: Iterable[Range]) -> Range:
    """The smallest range that contains all of `ranges`, empty ones included."""
    given = tuple(ranges)
    if not given:
        raise InvalidArgumentError("nothing has no bounding range: give at least one range")
    first = given[0]
    for other in given:
        if other.rank != first.rank:
            raise DimMismatchError(
                f"ranges {first} and {other} have different ranks: they have no common bound"
            )
    return unchecked(
        tuple(map(min, *(r.start for r in given), first.start)),
        tuple(map(max, *(r.end for r in given), first.end)),
    )


def cut_dims(whole: Range, parts: Iterable[Range]) -> frozenset[int]:
    """The dimensions along which some of `parts` is not as `whole` is."""
    sides = whole.sides
    return frozenset(d for part in parts for d, side in enumerate(part.sides) if side != sides[d])


_new = object.__new__
_set = object.__setattr__


def unchecked(start: Point, end: Point) -> Range:
    """`Range(start, end)` for callers that know both are exact points with `start <= end`.

    Planning makes ranges by the hundred thousand, most of them from ranges that were checked.
    """
    made = _new(Range)
    _set(made, "start", start)
    _set(made, "end", end)
    return made


def _coords(start: Point, end: Point) -> Iterator[Point]:
    # Not itertools.product: it would first store every coordinate of every dimension.
    if not start:
        yield ()
        return
    for head in _coords(start[:-1], end[:-1]):
        for last in range(start[-1], end[-1]):
            yield (*head, last)


def _exact(start: Point, end: Point) -> bool:
    return _INT_ONLY.issuperset(map(type, start)) and _INT_ONLY.issuperset(map(type, end))
