"""Prepared reads and writes are those of projections."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.runtime.arrays.access import cells
from tapestry.runtime.prepared.views import reader, writer, writes_view
from tapestry.zspace import Projection, Range

_WRITES = [
    (Projection.of([[0, 1], [1, 0]]), (2, 3), (3, 2)),
    (Projection.of([[3, 1, 0], [0, 0, 1]]), (2, 3, 4), (6, 4)),
    (Projection.of([[1, 2, 0], [0, 0, 1]]), (2, 3, 4), (6, 4)),
    (Projection.of([[0, 0, 1], [5, 1, 0]]), (1, 3, 4), (4, 3)),
    (Projection.of([[0, 0], [1, 0]]), (3, 2), (1, 3)),
    (Projection.of([[1, 0], [0, -1]], [0, 2]), (2, 3), (2, 3)),
    (Projection.of([[1, 3], [0, 0]]), (3, 2), (6, 1)),
    (Projection.of([], inputs=2), (2, 3), ()),
]


@pytest.mark.parametrize(("projection", "index", "shape"), _WRITES)
def test_writes(projection: Projection, index: tuple[int, ...], shape: tuple[int, ...]) -> None:
    start = projection.apply_range(Range.of(index)).start
    box = Range(start, tuple(a + n for a, n in zip(start, shape, strict=True)))
    moving = {dim for terms in projection.map.terms for _, dim in terms}
    own = tuple(n if dim in moving else 1 for dim, n in enumerate(index))
    values = np.arange(np.prod(own)).reshape(own)
    made = writer(projection, box, Range.of(index))(values)
    assert made.shape == shape
    np.testing.assert_array_equal(cells(made, box, projection, Range.of(index)), values)


@pytest.mark.parametrize(("projection", "index", "shape"), _WRITES)
def test_what_is_said_to_be_a_view_is_one(
    projection: Projection, index: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    start = projection.apply_range(Range.of(index)).start
    box = Range(start, tuple(a + n for a, n in zip(start, shape, strict=True)))
    write = writer(projection, box, Range.of(index))
    merges = any(sum(index[dim] > 1 for _, dim in terms) > 1 for terms in projection.map.terms)
    turned = projection == Projection.of([[1, 0], [0, -1]], [0, 2])  # written cell by cell
    assert writes_view(write) == (not merges and not turned)
    room = np.arange(np.prod(index) * 2 ** len(index)).reshape([2 * n for n in index])
    apart = room[tuple(slice(None, None, 2) for _ in index)]
    for values in (apart, apart.T.copy().T, apart.copy()):
        if writes_view(write):
            assert np.shares_memory(write(values), values)


_READS = [
    (Projection.of([[0, 2], [0, 0]], [1, 3]), (2, 3)),
    (Projection.of([[-1, 0], [0, 1]], [4, 2]), (3, 2)),
    (Projection.of([[1, 1], [0, 1]]), (3, 2)),
    (Projection.of([[0, 1], [0, 1]]), (2, 4)),
    (Projection.of([[2, 1], [0, 0]], [0, 5]), (2, 2)),
    (Projection.of([[0, 0], [0, 0]], [1, 3]), (2, 2)),
    (Projection.of([[], []], [1, 3], inputs=0), ()),
]


@pytest.mark.parametrize(("projection", "index"), _READS)
def test_reads(projection: Projection, index: tuple[int, ...]) -> None:
    array, box, points = np.arange(48).reshape(8, 6), Range((0, 0), (8, 6)), Range.of(index)
    got = reader(projection, box, points)(array)
    np.testing.assert_array_equal(got, cells(array, box, projection, points))
    assert np.shares_memory(got, array)  # it may be written to
