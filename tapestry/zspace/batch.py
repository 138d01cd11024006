"""Thousands of ranges or projections at once, as NumPy int64 arrays.

    >>> from tapestry.zspace import Partition
    >>> shards = RangeBatch.of(Partition.balanced(Range.of((4096, 32)), (1024, 1)))
    >>> reads = shards.project(Projection.of([[2, 0]], shape=[3]))
    >>> len(reads), str(reads[1023]), str(reads.bounding()), int(reads.sizes().sum())
    (1024, '[8184] : [8193]', '[0] : [8193]', 9216)

Each operation agrees with the one on single ranges. Where a result might not fit 64 bits it raises
InvalidArgumentError instead of wrapping: use the single forms, which are exact at any size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tapestry.zspace.errors import DimMismatchError, InvalidArgumentError, InvalidRangeError
from tapestry.zspace.points import format_point, require_rank
from tapestry.zspace.projection import Projection
from tapestry.zspace.ranges import Range, unchecked
from tapestry.zspace.tiling import check_tiling_arrays, int64s

Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

_LIMIT = 2.0**62
"""Magnitudes are bounded in floating point first, so the limit leaves room for its rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class RangeBatch:
    """n ranges of one rank: `start` and `end` are (n, rank), `start <= end` everywhere."""

    start: Int64s
    end: Int64s

    def __post_init__(self) -> None:
        if self.start.ndim != 2 or self.start.shape != self.end.shape:
            raise DimMismatchError(
                f"starts of shape {self.start.shape} and ends of shape {self.end.shape} must both "
                "be (n, rank)"
            )
        if (self.start > self.end).any():
            number = int((self.start > self.end).any(axis=1).argmax())
            raise InvalidRangeError(
                f"range {number} ends before it starts: {format_point(self.start[number].tolist())}"
                f" : {format_point(self.end[number].tolist())}"
            )

    @staticmethod
    def of(ranges: Iterable[Range], rank: int | None = None) -> RangeBatch:
        """The batch of `ranges`, all of one rank; `rank` is needed only when there are none."""
        given = tuple(ranges)
        if rank is None:
            rank = given[0].rank if given else 0
        for candidate in given:
            require_rank(candidate.start, rank, "range start")
        return RangeBatch(
            int64s([r.start for r in given], (len(given), rank)),
            int64s([r.end for r in given], (len(given), rank)),
        )

    @property
    def rank(self) -> int:
        return self.start.shape[1]

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, number: int) -> Range:
        start, end = self.start[number].tolist(), self.end[number].tolist()
        return unchecked(tuple(start), tuple(end))

    def __iter__(self) -> Iterator[Range]:
        for start, end in zip(self.start.tolist(), self.end.tolist(), strict=True):
            yield unchecked(tuple(start), tuple(end))

    def shapes(self) -> Int64s:
        """Extents, (n, rank)."""
        return self.end - self.start

    def sizes(self) -> Int64s:
        """Cells per range, (n,)."""
        shapes = self.shapes()
        if len(self) and prod(float(side.max()) for side in shapes.T) >= _LIMIT:
            _require_fits(shapes.astype(np.float64).prod(axis=1))
        return shapes.prod(axis=1)

    def is_empty(self) -> Bools:
        """Which ranges have no cell, (n,)."""
        return ~_everywhere(self.start < self.end)

    def contains(self, points: Int64s) -> Bools:
        """Whether range k holds point k of `points` (n, rank), or the one point (rank,)."""
        self._require_rank(points.shape[-1])
        return _everywhere((self.start <= points) & (points < self.end))

    def contains_range(self, other: Range | RangeBatch) -> Bools:
        """Whether range k contains range k of `other`, or the one range."""
        start, end = self._corners(other)
        return _everywhere((self.start <= start) & (end <= self.end))

    def overlaps(self, other: Range | RangeBatch) -> Bools:
        """Whether range k shares a cell with range k of `other`, or with the one range."""
        start, end = self._corners(other)
        return _everywhere(np.maximum(self.start, start) < np.minimum(self.end, end))

    def intersect(self, other: Range | RangeBatch) -> tuple[RangeBatch, Bools]:
        """The common ranges, and which exist (n,): False stands for the single form's None.

        A pair that is disjoint has an empty range in the batch.
        """
        start, end = self._corners(other)
        low, high = np.maximum(self.start, start), np.minimum(self.end, end)
        return RangeBatch(low, np.maximum(low, high)), _everywhere(low <= high)

    def translate(self, offset: Sequence[int]) -> RangeBatch:
        """Every range moved by `offset`."""
        require_rank(offset, self.rank, "offset")
        by = int64s([tuple(offset)], (1, self.rank))
        for corner in (self.start, self.end):
            _require_fits(corner.astype(np.float64) + by)
        return RangeBatch(self.start + by, self.end + by)

    def project(self, projection: Projection | ProjectionBatch) -> RangeBatch:
        """What each range selects by the projection, or range k by projection k of a batch."""
        if isinstance(projection, Projection):
            projection = ProjectionBatch.of([projection])
        return projection.apply_ranges(self)

    def bounding(self) -> Range:
        """The smallest range that contains all of them."""
        if not len(self):
            raise InvalidArgumentError("nothing has no bounding range: the batch has no range")
        start, end = self.start.min(axis=0).tolist(), self.end.max(axis=0).tolist()
        return unchecked(tuple(start), tuple(end))

    def check_tiling(self, of: Range) -> None:
        """Raise a ZSpaceError unless the ranges tile `of` exactly, as `Partition.check` does."""
        self._require_rank(of.rank)
        check_tiling_arrays(self.start, self.end, of)

    def _corners(self, other: Range | RangeBatch) -> tuple[Int64s, Int64s]:
        self._require_rank(other.rank)
        if isinstance(other, RangeBatch):
            if len(other) != len(self):
                raise DimMismatchError(
                    f"batches of {len(self)} and {len(other)} ranges do not pair"
                )
            return other.start, other.end
        shape = (1, other.rank)
        return int64s([other.start], shape), int64s([other.end], shape)

    def _require_rank(self, rank: int) -> None:
        if rank != self.rank:
            raise DimMismatchError(f"the batch has ranges of rank {self.rank}, not {rank}")


@dataclass(frozen=True, slots=True, eq=False)
class ProjectionBatch:
    """n projections of one kind: `matrix` (n, outputs, inputs), `offset`, `shape` (n, outputs)."""

    matrix: Int64s
    offset: Int64s
    shape: Int64s

    @staticmethod
    def of(projections: Iterable[Projection]) -> ProjectionBatch:
        """The batch of `projections`, at least one, which have equally many inputs and outputs."""
        given = tuple(projections)
        if not given:
            raise InvalidArgumentError("a batch of projections has at least one")
        outputs, inputs = given[0].outputs, given[0].inputs
        for candidate in given:
            if (candidate.outputs, candidate.inputs) != (outputs, inputs):
                raise DimMismatchError(f"{given[0]} and {candidate} do not go in one batch")
        n = len(given)
        return ProjectionBatch(
            int64s([p.map.matrix for p in given], (n, outputs, inputs)),
            int64s([p.map.offset for p in given], (n, outputs)),
            int64s([p.shape for p in given], (n, outputs)),
        )

    def __len__(self) -> int:
        return len(self.matrix)

    def apply_range(self, index: Range) -> RangeBatch:
        """What each projection selects for the one range."""
        return self.apply_ranges(RangeBatch.of([index]))

    def apply_ranges(self, ranges: RangeBatch) -> RangeBatch:
        """What projection k selects for range k; a batch of one pairs with every other."""
        if ranges.rank != self.matrix.shape[2]:
            raise DimMismatchError(
                f"the projections read {self.matrix.shape[2]} dimensions, not {ranges.rank}"
            )
        if len(ranges) != len(self) and 1 not in (len(ranges), len(self)):
            raise DimMismatchError(f"{len(self)} projections and {len(ranges)} ranges do not pair")
        empty = ranges.is_empty()[:, None]
        first = ranges.start
        last = np.where(empty, first, ranges.end - 1)
        _require_images_fit(self, first, last)
        up, down = np.maximum(self.matrix, 0), np.minimum(self.matrix, 0)
        low = _apply(up, first) + _apply(down, last) + self.offset
        high = _apply(up, last) + _apply(down, first) + self.offset
        return RangeBatch(low, np.where(empty, low, high + self.shape))


def _everywhere(holds: Bools) -> Bools:
    """Which rows of (n, rank) hold in every dimension: `all(axis=1)`, but a column at a time."""
    result = np.ones(len(holds), dtype=np.bool_)
    for column in holds.T:
        result &= column
    return result


def _apply(matrix: Int64s, points: Int64s) -> Int64s:
    """Matrix k times point k: (n, outputs, inputs) and (n, inputs) to (n, outputs)."""
    if len(matrix) == 1:
        return points @ matrix[0].T  # one product of all points is several times faster
    return (matrix @ points[:, :, None])[:, :, 0]


def _require_images_fit(many: ProjectionBatch, first: Int64s, last: Int64s) -> None:
    """Raise unless every corner of what the projections select fits, in steps and in sum."""
    if not len(many) or not len(first):
        return
    # The largest of everything together nearly always fits, which needs no pass over pairs.
    reach = np.array(
        [
            max(abs(float(bound)) for x in pair for bound in (x.min(), x.max()))
            for pair in zip(first.T, last.T, strict=True)
        ]
    )
    steps, offset, shape = (
        abs(x.astype(np.float64)).max(axis=0) for x in (many.matrix, many.offset, many.shape)
    )
    if (steps @ reach + offset + shape < _LIMIT).all():
        return
    reach = np.maximum(abs(first.astype(np.float64)), abs(last.astype(np.float64)))
    steps = (abs(many.matrix.astype(np.float64)) @ reach[:, :, None])[:, :, 0]
    _require_fits(steps + abs(many.offset.astype(np.float64)) + many.shape)


def _require_fits(magnitudes: NDArray[np.float64]) -> None:
    if (abs(magnitudes) >= _LIMIT).any():
        raise InvalidArgumentError(
            "a result does not fit the 64 bits of a batch: use the forms for single ranges"
        )
