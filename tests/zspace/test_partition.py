"""Partitions: grids and lists of ranges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.zspace import (
    DimMismatchError,
    IndexOutOfRangeError,
    InvalidArgumentError,
    Partition,
    Range,
    check_tiling,
)

WHOLE = Range((0, 0), (10, 12))


def test_grid_in_row_major_order():
    grid = Partition.grid([(0, 5, 10), (0, 4, 12)])
    assert grid.is_grid
    assert (grid.count, grid.counts, grid.rank) == (4, (2, 2), 2)
    assert grid.ranges() == (
        Range((0, 0), (5, 4)),
        Range((0, 4), (5, 12)),
        Range((5, 0), (10, 4)),
        Range((5, 4), (10, 12)),
    )
    assert tuple(grid.part(k) for k in range(4)) == grid.ranges()
    grid.check(WHOLE)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 9), st.integers(1, 9)), max_size=3))
def test_balanced_parts_tile_and_differ_by_one(sides):
    whole = Range(tuple(a for a, _, _ in sides), tuple(a + n for a, n, _ in sides))
    counts = [min(n, c) for _, n, c in sides]
    partition = Partition.balanced(whole, counts)
    assert partition.counts == tuple(counts)
    partition.check(whole)
    check_tiling(partition.ranges(), whole)
    for dim in range(whole.rank):
        extents = [part.shape[dim] for part in partition]
        assert max(extents) - min(extents) <= 1
    assert [partition.part(k) for k in range(partition.count)] == list(partition)


def test_rank_0_and_empty_dimensions_have_one_part():
    assert Partition.grid([]).ranges() == (Range.of(()),)
    Partition.grid([]).check(Range.of(()))
    empty = Range((3, 0), (3, 8))
    Partition.balanced(empty, (1, 2)).check(empty)


def test_selecting_permuting_and_restricting():
    grid = Partition.grid([(0, 5, 10), (0, 4, 12)])
    assert grid.select((1,)) == Partition.grid([(0, 4, 12)])
    assert grid.permute((1, 0)).ranges()[1] == Range((0, 5), (4, 10))
    assert grid.restrict(Range((5, 2), (10, 6))) == Partition.grid([(5, 10), (2, 4, 6)])
    listed = Partition.explicit(grid.ranges())
    assert listed.part(2) == grid.part(2)
    assert listed.permute((1, 0)).ranges() == tuple(r.permute((1, 0)) for r in grid)
    assert listed.restrict(Range((5, 2), (10, 6))).ranges() == (
        Range((5, 2), (10, 4)),
        Range((5, 4), (10, 6)),
    )


def test_text():
    assert str(Partition.grid([(0, 5, 10), (0, 12)])) == "grid [[0, 5, 10], [0, 12]]"
    assert (
        str(Partition.explicit([Range((0, 0), (5, 12)), Range((5, 0), (10, 12))]))
        == "ranges [[0, 0] : [5, 12], [5, 0] : [10, 12]]"
    )


GRID = Partition.grid([(0, 5, 10), (0, 12)])
LISTED = Partition.explicit(GRID.ranges())


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Partition.grid([(0, 5, 5)]), InvalidArgumentError, r"\[0, 5, 5\] of dimension 0"),
        (lambda: Partition.grid([(0,)]), InvalidArgumentError, "at least two"),
        (lambda: Partition.explicit([]), InvalidArgumentError, "at least one range"),
        (lambda: Partition(None, None), InvalidArgumentError, "either cuts or ranges"),
        (lambda: Partition.explicit([WHOLE, Range.of(())]), DimMismatchError, "ranges 0 and 1"),
        (lambda: Partition.balanced(WHOLE, (11, 1)), InvalidArgumentError, "use 1 to 10"),
        (lambda: Partition.balanced(WHOLE, (0, 1)), InvalidArgumentError, "into 0 parts"),
        (lambda: Partition.balanced(WHOLE, (2,)), DimMismatchError, "counts"),
        (lambda: GRID.check(Range.of((10,))), DimMismatchError, "2 dimensions"),
        (lambda: LISTED.check(Range.of((10,))), DimMismatchError, "2 dimensions"),
        (lambda: GRID.check(Range.of((9, 12))), IndexOutOfRangeError, "reach outside"),
        (lambda: GRID.check(Range.of((10, 13))), InvalidArgumentError, "cover 12 of 13"),
        (lambda: check_tiling([WHOLE], Range.of(())), DimMismatchError, "range 0"),
        (lambda: GRID.part(2), IndexOutOfRangeError, "there are 2"),
        (lambda: LISTED.select((0,)), InvalidArgumentError, "only a grid"),
        (lambda: GRID.restrict(Range((10, 0), (10, 9))), InvalidArgumentError, "no cell"),
        (lambda: LISTED.restrict(Range((20, 0), (21, 9))), InvalidArgumentError, "at least one"),
    ],
)
def test_mistakes_say_what_is_wrong(make, error, message):
    with pytest.raises(error, match=message):
        make()
