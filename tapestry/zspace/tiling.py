"""Do boxes tile a range exactly? Decided from their corners, without visiting cells.

Take the indicator function of a box and its difference along every dimension: what remains is +1
or -1 at each corner of the box, and 0 elsewhere. Boxes tile a range exactly when their indicators
sum to the indicator of the range; summing along every dimension undoes the difference, so that
holds exactly when the signed corners of the boxes sum to the signed corners of the range. Sorting
the corners takes O(n 2^rank log n), and it is exact: no volume argument, no pairs.

When the sums differ, the lexicographically least corner where they do is a cell that is covered too
often or not at all, which is what the message shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tapestry.zspace.errors import DimMismatchError, IndexOutOfRangeError, InvalidArgumentError
from tapestry.zspace.matrices import Matrix
from tapestry.zspace.points import Point, format_point
from tapestry.zspace.ranges import Range

Int64s: TypeAlias = NDArray[np.int64]

_KEYS = 2**62
"""Corner keys stay below this, so that they fit 64 bits."""


def check_tiling(ranges: Sequence[Range], of: Range) -> None:
    """Raise unless every cell of `of` is in exactly one of `ranges`, and they lie inside it.

    DimMismatchError for a wrong rank, IndexOutOfRangeError for a range outside,
    InvalidArgumentError for an overlap or a gap.
    """
    for number, candidate in enumerate(ranges):
        if candidate.rank != of.rank:
            raise DimMismatchError(
                f"range {number}, {candidate}, has {candidate.rank} dimensions where {of} has "
                f"{of.rank}"
            )
    shape = (len(ranges), of.rank)
    start = int64s([r.start for r in ranges], shape)
    end = int64s([r.end for r in ranges], shape)
    check_tiling_arrays(start, end, of)


def check_tiling_arrays(start: Int64s, end: Int64s, of: Range) -> None:
    """`check_tiling` of n boxes given as arrays of corners, each (n, rank of `of`)."""
    outside = (start < _row(of.start)).any(axis=1) | (end > _row(of.end)).any(axis=1)
    if outside.any():
        number = int(outside.argmax())
        raise IndexOutOfRangeError(
            f"range {number}, {_box(start, end, number)}, reaches outside {of}"
        )
    fault = _first_fault(start, end, of)
    if fault is None:
        return
    point, several = fault
    if not several:
        covered = sum(_box(start, end, number).size for number in range(len(start)))
        short = f": they have {covered} of its {of.size} cells" if covered < of.size else ""
        raise InvalidArgumentError(
            f"the ranges do not cover {of}{short}; point {format_point(point)} is in none of them"
        )
    at = _row(point)
    holding = np.flatnonzero(np.all((start <= at) & (at < end), axis=1))
    one, two = holding[:2].tolist()
    raise InvalidArgumentError(
        f"ranges {one} and {two} overlap: {_box(start, end, one)} and {_box(start, end, two)} "
        f"both hold {format_point(point)}"
    )


def int64s(values: Sequence[Point] | Sequence[Matrix], shape: tuple[int, ...]) -> Int64s:
    """Integers as an array of `shape`; InvalidArgumentError when one does not fit 64 bits."""
    try:
        return np.array(values, dtype=np.int64).reshape(shape)
    except OverflowError as error:
        raise InvalidArgumentError(
            "a coordinate does not fit the 64 bits of an array of ranges"
        ) from error


def _first_fault(start: Int64s, end: Int64s, of: Range) -> tuple[Point, bool] | None:
    """The least point that is not in exactly one box, and whether it is in several."""
    if of.is_empty:
        return None
    # Empty boxes hold nothing, and a dimension that every box spans decides nothing.
    full = (start < end).all(axis=1)
    start, end = start[full], end[full]
    spanned = (start == _row(of.start)).all(axis=0) & (end == _row(of.end)).all(axis=0)
    dims = [dim for dim in range(of.rank) if not spanned[dim]]
    # The range itself is the last column; a corner is named by one number that sorts like it.
    start = np.concatenate((start, _row(of.start)[None]))
    end = np.concatenate((end, _row(of.end)[None]))
    keys = np.zeros((1, len(start)), dtype=np.int64)
    base = 1
    for dim in dims:
        low, high, count = _places(start[:, dim], end[:, dim])
        if base * count >= _KEYS:
            distinct, keys = np.unique(keys, return_inverse=True)
            base = len(distinct)
            keys = keys.reshape(-1, len(start))
        base *= count
        keys = np.concatenate((keys * count + low, keys * count + high))
    # Corner r takes the end of dims[i] where bit i of r is set; its sign is the parity of r.
    odd = np.array([r.bit_count() % 2 == 1 for r in range(len(keys))])
    plus = np.sort(np.concatenate((keys[~odd, :-1].ravel(), keys[odd, -1])))
    minus = np.sort(np.concatenate((keys[odd, :-1].ravel(), keys[~odd, -1])))
    shared = min(len(plus), len(minus))
    differ = plus[:shared] != minus[:shared]
    if not differ.any() and len(plus) == len(minus):
        return None
    at = int(differ.argmax()) if differ.any() else shared
    several = at >= len(minus) or (at < len(plus) and bool(plus[at] < minus[at]))
    corner, column = np.argwhere(keys == (plus if several else minus)[at])[0]
    point = list(of.start)
    for bit, dim in enumerate(dims):
        point[dim] = int((end if corner >> bit & 1 else start)[column, dim])
    return tuple(point), several


def _places(low: Int64s, high: Int64s) -> tuple[Int64s, Int64s, int]:
    """Both arrays as positions among the distinct values of the two, and how many those are."""
    distinct, places = np.unique(np.concatenate((low, high)), return_inverse=True)
    return places[: len(low)], places[len(low) :], len(distinct)


def _row(point: Point) -> Int64s:
    return int64s([point], (len(point),))


def _box(start: Int64s, end: Int64s, number: int) -> Range:
    return Range(tuple(start[number].tolist()), tuple(end[number].tolist()))
