"""Where index spaces are cut: parts tile, fit the cache, and are runs of memory."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tapestry.runtime.prepared.parts.cuts import Access, Cuts
from tapestry.zspace import Projection, Range


def _access(rows: list[list[int]], shape: tuple[int, ...], rank: int) -> Access:
    return Access.of(Projection.of(rows, inputs=rank), shape, 4, again=True)


@given(
    shape=st.lists(st.integers(1, 12), min_size=1, max_size=3),
    cache=st.integers(1, 2000),
    threads=st.integers(1, 4),
    data=st.data(),
)
def test_parts_tile(shape: list[int], cache: int, threads: int, data: st.DataObject) -> None:
    rank = len(shape)
    index = Range.of(tuple(shape)).translate([3] * rank)
    access = _access(np.eye(rank, dtype=int).tolist(), tuple(shape), rank)
    cuts = Cuts(index, [access], threads, cache)
    dims = data.draw(st.lists(st.sampled_from(range(rank)), unique=True))
    seen = np.zeros(shape, int)
    for part in cuts.parts(cuts.steps(dims)):
        seen[part.slices(index)] += 1
    assert (seen == 1).all()


def test_what_is_outermost_in_memory_is_cut_first() -> None:
    index = Range.of((4096, 4096))
    rows = Cuts(index, [_access([[1, 0], [0, 1]], (4096, 4096), 2)], 1, 1 << 20)
    assert rows.steps((0, 1)) == {0: 64}
    columns = Cuts(index, [_access([[0, 1], [1, 0]], (4096, 4096), 2)], 1, 1 << 20)
    assert columns.steps((0, 1)) == {1: 64}


def test_a_row_that_does_not_fit_is_cut_too() -> None:
    index = Range.of((4, 1 << 20))
    cuts = Cuts(index, [_access([[1, 0], [0, 1]], (4, 1 << 20), 2)], 1, 1 << 20)
    assert cuts.steps((0, 1)) == {0: 1, 1: 1 << 18}


def test_the_weights_of_a_layer_are_not_read_for_each_few_rows() -> None:
    """512 x 4096 times 4096 x 4096: columns are cut, which leaves the smaller factor whole."""
    index = Range.of((512, 4096, 4096))
    x = _access([[1, 0, 0], [0, 0, 1]], (512, 4096), 3)
    w = _access([[0, 0, 1], [0, 1, 0]], (4096, 4096), 3)
    y = _access([[1, 0, 0], [0, 1, 0]], (512, 4096), 3)
    steps = Cuts(index, [x, w, y], 2, 1 << 20).steps((0, 1))
    assert steps.keys() == {1}
    read = sum(one.bytes(index) for one in (x, w, y))
    parts = Cuts(index, [x, w, y], 2, 1 << 20).parts(steps)
    assert sum(a.bytes(part) for a in (x, w, y) for part in parts) <= 2 * read
    assert len(parts) >= 4
    large = Cuts(index, [x, w, y], 2, 1 << 20, each=2, any_size=True)
    assert large.steps((0, 1)) == {1: 1024}


def test_threads_have_the_same_number_of_parts_of_a_square_product() -> None:
    """One and a half times as many parts as threads would take as long as twice as many."""
    x = _access([[1, 0, 0], [0, 0, 1]], (2048, 2048), 3)
    w = _access([[0, 0, 1], [0, 1, 0]], (2048, 2048), 3)
    y = Access.of(Projection.of([[1, 0, 0], [0, 1, 0]], inputs=3), (2048, 2048), 4, again=False)
    for threads in (2, 3, 4):
        cuts = Cuts(Range.of((2048, 2048, 2048)), [x, w, y], threads, 1 << 20, 2, any_size=True)
        assert len(cuts.parts(cuts.steps((0, 1)))) == threads
