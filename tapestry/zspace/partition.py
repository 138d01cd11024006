"""Partitions: how a range is cut into parts that tile it.

A grid cuts every dimension on its own; an explicit partition lists its ranges.

    >>> halves = Partition.grid([(0, 5, 10), (0, 12)])
    >>> print(halves, halves.count, halves.ranges()[1])
    grid [[0, 5, 10], [0, 12]] 2 [5, 0] : [10, 12]
    >>> halves.check(Range.of((10, 12)))
    >>> print(Partition.balanced(Range.of((10, 12)), (3, 1)))
    grid [[0, 4, 7, 10], [0, 12]]

Whether an explicit partition tiles is checked, not assumed (see `tiling`):

    >>> Partition.explicit([Range.of((5, 12)), Range((4, 0), (10, 12))]).check(Range.of((10, 12)))
    Traceback (most recent call last):
        ...
    tapestry.zspace.errors.InvalidArgumentError: ranges 0 and 1 overlap: [0, 0] : [5, 12] and \
[4, 0] : [10, 12] both hold [4, 0]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from itertools import product as cartesian
from math import prod
from typing import TypeAlias

from tapestry.zspace.errors import (
    DimMismatchError,
    IndexOutOfRangeError,
    InvalidArgumentError,
)
from tapestry.zspace.points import (
    Point,
    as_point,
    format_point,
    require_rank,
    resolve_dims,
    resolve_permutation,
)
from tapestry.zspace.ranges import Range, unchecked
from tapestry.zspace.tiling import check_tiling

Cuts: TypeAlias = tuple[Point, ...]


@dataclass(frozen=True)
class Partition:
    """Either `cuts`, a grid's cut points per dimension, or `boxes`, a list of ranges.

    Cut points include both ends and increase strictly; only a dimension without cells repeats its
    end. Make one by `grid`, `explicit` or `balanced`.
    """

    cuts: Cuts | None
    boxes: tuple[Range, ...] | None

    def __post_init__(self) -> None:
        if (self.cuts is None) == (self.boxes is None):
            raise InvalidArgumentError("a partition has either cuts or ranges")
        if self.cuts is not None:
            for dim, cuts in enumerate(self.cuts):
                _require_cuts(dim, cuts)
        elif self.boxes is not None:
            _require_ranges(self.boxes)

    @staticmethod
    def grid(cuts: Iterable[Iterable[int]]) -> Partition:
        """The grid with the given cut points, ends included, per dimension."""
        return Partition(tuple(as_point(points) for points in cuts), None)

    @staticmethod
    def explicit(ranges: Iterable[Range]) -> Partition:
        """The partition into `ranges`, at least one, in that order."""
        return Partition(None, tuple(ranges))

    @staticmethod
    def balanced(of: Range, counts: Sequence[int]) -> Partition:
        """The grid that cuts dimension i of `of` into `counts[i]` parts, larger ones first.

        Sizes along a dimension differ by at most one cell. No part is empty, unless `of` is:
        InvalidArgumentError for more parts than cells.
        """
        require_rank(counts, of.rank, "counts")
        return Partition.grid(
            _balanced_cuts(dim, start, end, count)
            for dim, (start, end, count) in enumerate(zip(of.start, of.end, counts, strict=True))
        )

    @property
    def is_grid(self) -> bool:
        return self.cuts is not None

    @property
    def rank(self) -> int:
        return self.boxes[0].rank if self.boxes else len(self.cuts or ())

    @property
    def count(self) -> int:
        """How many parts."""
        if self.boxes is not None:
            return len(self.boxes)
        return prod(self.counts)

    @property
    def counts(self) -> Point:
        """How many parts a grid has along each dimension."""
        return tuple(len(points) - 1 for points in self._grid_cuts())

    def ranges(self) -> tuple[Range, ...]:
        """Every part; a grid's in row-major order."""
        return self.boxes if self.boxes is not None else tuple(self)

    def __iter__(self) -> Iterator[Range]:
        if self.boxes is not None:
            yield from self.boxes
            return
        for sides in cartesian(*(tuple(pairwise(points)) for points in self._grid_cuts())):
            start, end = zip(*sides, strict=True) if sides else ((), ())
            yield unchecked(start, end)

    def part(self, number: int) -> Range:
        """Part `number` of `ranges()`, without making the others."""
        if not 0 <= number < self.count:
            raise IndexOutOfRangeError(f"part {number} does not exist: there are {self.count}")
        if self.boxes is not None:
            return self.boxes[number]
        start: list[int] = []
        end: list[int] = []
        for points in reversed(self._grid_cuts()):
            number, place = divmod(number, len(points) - 1)
            start.append(points[place])
            end.append(points[place + 1])
        return unchecked(tuple(reversed(start)), tuple(reversed(end)))

    def check(self, of: Range) -> None:
        """Raise a ZSpaceError that says what is wrong unless the parts tile `of` exactly.

        Every part lies inside `of`, and every cell of `of` is in exactly one. A grid is decided by
        its ends, n ranges of rank r in O(n 2^r log n).
        """
        if self.rank != of.rank:
            raise DimMismatchError(
                f"partition {self} has {self.rank} dimensions where range {of} has {of.rank}"
            )
        if self.boxes is not None:
            check_tiling(self.boxes, of)
            return
        for dim, points in enumerate(self._grid_cuts()):
            _require_ends(dim, points, of)

    def select(self, dims: Sequence[int]) -> Partition:
        """The grid along the given dimensions only, in that order."""
        cuts = self._grid_cuts()
        return Partition(tuple(cuts[dim] for dim in resolve_dims(dims, len(cuts))), None)

    def permute(self, permutation: Sequence[int]) -> Partition:
        """The same partition with dimensions reordered: i is `permutation[i]` of this one."""
        order = resolve_permutation(permutation, self.rank)
        if self.boxes is not None:
            return Partition(None, tuple(box.permute(order) for box in self.boxes))
        return self.select(order)

    def restrict(self, to: Range) -> Partition:
        """The parts cut down to `to`, those without a cell in it left out.

        A grid stays a grid. `to` must hold a cell of some part.
        """
        require_rank(to.start, self.rank, "range start")
        if self.boxes is not None:
            common = (box.intersection(to) for box in self.boxes)
            return Partition.explicit(r for r in common if r is not None and not r.is_empty)
        return Partition.grid(
            _restricted(points, low, high)
            for points, low, high in zip(self._grid_cuts(), to.start, to.end, strict=True)
        )

    def __str__(self) -> str:
        if self.boxes is not None:
            return f"ranges [{', '.join(map(str, self.boxes))}]"
        return f"grid [{', '.join(map(format_point, self._grid_cuts()))}]"

    def _grid_cuts(self) -> Cuts:
        if self.cuts is None:
            raise InvalidArgumentError(
                "this partition is a list of ranges; only a grid has cuts per dimension"
            )
        return self.cuts


def _require_cuts(dim: int, cuts: Point) -> None:
    if len(cuts) == 2 and cuts[0] == cuts[1]:
        return
    if len(cuts) < 2 or any(a >= b for a, b in pairwise(cuts)):
        raise InvalidArgumentError(
            f"cuts {format_point(cuts)} of dimension {dim} must be at least two, "
            "increasing from the start to the end"
        )


def _require_ranges(ranges: tuple[Range, ...]) -> None:
    if not ranges:
        raise InvalidArgumentError("a partition has at least one range")
    for number, candidate in enumerate(ranges):
        if candidate.rank != ranges[0].rank:
            raise DimMismatchError(
                f"ranges 0 and {number} of a partition have different ranks: {ranges[0]} and "
                f"{candidate}"
            )


def _require_ends(dim: int, points: Point, of: Range) -> None:
    start, end = of.start[dim], of.end[dim]
    text = f"cuts {format_point(points)} of dimension {dim}"
    if points[0] < start or points[-1] > end:
        raise IndexOutOfRangeError(f"{text} reach outside [{start}, {end}), the extent of {of}")
    if points[0] > start or points[-1] < end:
        raise InvalidArgumentError(
            f"{text} cover {points[-1] - points[0]} of {end - start} cells of {of}: "
            f"they must go from {start} to {end}"
        )


def _balanced_cuts(dim: int, start: int, end: int, count: int) -> Point:
    extent = end - start
    if count < 1 or count > max(extent, 1):
        raise InvalidArgumentError(
            f"dimension {dim} with {extent} cells cannot be cut into {count} parts: "
            f"use 1 to {max(extent, 1)}"
        )
    size, larger = divmod(extent, count)
    return tuple(start + part * size + min(part, larger) for part in range(count + 1))


def _restricted(points: Point, low: int, high: int) -> Point:
    low, high = max(low, points[0]), min(high, points[-1])
    if low > high or (low == high and points[0] != points[-1]):
        raise InvalidArgumentError(f"cuts {format_point(points)} have no cell in [{low}, {high})")
    return (low, *(point for point in points if low < point < high), high)
