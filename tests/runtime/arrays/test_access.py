"""A projection's cells as a NumPy view equal a loop over the points."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tapestry.runtime.arrays.access import cells
from tapestry.zspace import Projection, Range

_SMALL = st.integers(-2, 2)


@st.composite
def _reads(draw: st.DrawFn) -> tuple[Range, Projection]:
    rank = draw(st.integers(0, 3))
    rows = draw(st.integers(0, 2))
    start = tuple(draw(st.lists(_SMALL, min_size=rank, max_size=rank)))
    sizes = draw(st.lists(st.integers(0, 3), min_size=rank, max_size=rank))
    index = Range(start, tuple(s + n for s, n in zip(start, sizes, strict=True)))
    matrix = [draw(st.lists(_SMALL, min_size=rank, max_size=rank)) for _ in range(rows)]
    offset = draw(st.lists(_SMALL, min_size=rows, max_size=rows))
    return index, Projection.of(matrix, offset, inputs=rank)


@given(_reads(), st.data())
def test_cells_equal_a_loop(read: tuple[Range, Projection], data: st.DataObject) -> None:
    index, projection = read
    inner = projection.apply_range(index)
    grow = data.draw(st.lists(st.integers(0, 2), min_size=inner.rank, max_size=inner.rank))
    box = Range(
        tuple(s - g for s, g in zip(inner.start, grow, strict=True)),
        tuple(e + g for e, g in zip(inner.end, grow, strict=True)),
    )
    array = np.arange(box.size).reshape(box.shape)
    view = np.broadcast_to(cells(array, box, projection, index), index.shape)
    for point in index.coords():
        cell = projection.map.apply(point)
        at = tuple(c - s for c, s in zip(cell, box.start, strict=True))
        place = tuple(p - s for p, s in zip(point, index.start, strict=True))
        assert view[place] == array[at]


def test_writing_through_a_view() -> None:
    array = np.zeros((3, 2))
    turned = Projection.of([[0, 1], [1, 0]])
    cells(array, Range.of((3, 2)), turned, Range.of((2, 3)))[...] = np.arange(6).reshape(2, 3)
    assert array.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_writing_a_scalar() -> None:
    array = np.zeros(())
    cells(array, Range.of(()), Projection.of([], inputs=0), Range.of(()))[...] = 7
    assert array == 7
