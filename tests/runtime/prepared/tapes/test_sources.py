"""What parts read of whole arrays: coordinates, those of long dimensions without keeping all."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.runtime.prepared.tapes.sources import Coordinate, First, Place, is_bounded
from tapestry.zspace import Range


@pytest.mark.parametrize(("length", "lies"), [(1 << 20, True), ((1 << 20) + 1, False)])
def test_coordinates(length: int, lies: bool) -> None:
    source = Coordinate(1, 5, Range((0, 7), (3, 7 + length)), np.dtype(np.int64))
    assert source.lies == lies
    whole = source.whole([])
    assert (whole is not None) == lies
    part = Range((1, 100), (3, 104))
    np.testing.assert_array_equal(source.at(whole, part), [[105, 106, 107, 108]])


def test_where_parts_start_may_need_64_bits_before_the_shift() -> None:
    first = First(0, -3_000_000_000, (3_000_000_000, 3_000_000_064), 1)
    np.testing.assert_array_equal(first.whole([]), [[0], [64]])


def test_places_in_parts_and_where_these_start() -> None:
    places, first = Place(1, 40, 2), First(1, 5, (7, 47, 87), 2)
    for start, end in ((7, 47), (47, 87), (87, 90)):
        part = Range((0, start), (3, end))
        found = places.at(places.whole([]), part) + first.at(first.whole([]), part)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, [np.arange(start, end) + 5])


@pytest.mark.parametrize(
    ("start", "end", "shift", "fits"),
    [
        (0, (1 << 31) - 1, 0, True),
        (0, (1 << 31) - 1, 1, False),
        (0, 1 << 31, 0, False),
        (0, 1 << 31, -1, True),
        (1 - (1 << 31), 5, 0, True),
        (-(1 << 31), 5, 0, False),
    ],
)
def test_coordinates_between_the_least_and_the_most_of_32_bits(
    start: int, end: int, shift: int, *, fits: bool
) -> None:
    assert is_bounded(Range((start,), (end,)), 0, shift) == fits
