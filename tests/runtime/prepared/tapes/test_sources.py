"""What parts read of whole arrays: coordinates, those of long dimensions without keeping all."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.runtime.prepared.tapes.sources import Coordinate
from tapestry.zspace import Range


@pytest.mark.parametrize(("length", "lies"), [(1 << 20, True), ((1 << 20) + 1, False)])
def test_coordinates(length: int, lies: bool) -> None:
    source = Coordinate(1, 5, Range((0, 7), (3, 7 + length)))
    assert source.lies == lies
    whole = source.whole([])
    assert (whole is not None) == lies
    part = Range((1, 100), (3, 104))
    np.testing.assert_array_equal(source.at(whole, part), [[105, 106, 107, 108]])
