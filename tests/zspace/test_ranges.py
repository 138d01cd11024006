"""Ranges: every answer agrees with the set of points, and sizes do not matter."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.zspace import (
    DimMismatchError,
    EmptyRangeError,
    IndexOutOfRangeError,
    InvalidArgumentError,
    InvalidRangeError,
    Partition,
    Range,
    bounding,
    cut_dims,
)


def ranges(rank: int) -> st.SearchStrategy[Range]:
    sides = st.tuples(st.integers(-4, 4), st.integers(0, 4))
    return st.lists(sides, min_size=rank, max_size=rank).map(
        lambda s: Range(tuple(a for a, _ in s), tuple(a + n for a, n in s))
    )


several = st.integers(0, 3).flatmap(lambda rank: st.tuples(ranges(rank), ranges(rank)))
one = st.integers(0, 3).flatmap(ranges)


def cells(box: Range) -> set:
    return set(box.coords())


@given(one)
def test_size_counts_the_points(box):
    points = list(box.coords())
    assert len(points) == box.size == np.prod(box.shape, dtype=int)
    assert points == sorted(set(points))
    assert box.is_empty == (not points)
    assert all(box.contains(point) for point in points)
    if points:
        assert box.inclusive_end == points[-1]


@given(one, st.data())
def test_sides(box, data):
    assert Range.of_sides(box.sides) == box
    dims = data.draw(st.sets(st.sampled_from(range(box.rank)))) if box.rank else set()
    sides = {dim: (-7, data.draw(st.integers(-7, 9))) for dim in dims}
    made = box.with_sides(sides)
    assert made.sides == tuple(sides.get(dim, side) for dim, side in enumerate(box.sides))
    first = box.at_start(dims)
    assert first.start == box.start
    assert first.shape == tuple(1 if dim in dims else n for dim, n in enumerate(box.shape))
    assert cut_dims(box, [box, made]) == {dim for dim in dims if sides[dim] != box.sides[dim]}


def test_what_parts_cut():
    whole = Range.of((6, 9))
    shards = Partition.grid([[0, 6], [0, 4, 9]]).ranges()
    assert cut_dims(whole, shards) == {1}
    assert cut_dims(whole, [whole]) == cut_dims(whole, []) == frozenset()


@given(several)
def test_intersection_is_that_of_the_points(pair):
    a, b = pair
    common = a.intersection(b)
    assert (cells(common) if common else set()) == cells(a) & cells(b)
    assert a.overlaps(b) == bool(cells(a) & cells(b))
    assert common == b.intersection(a)


@given(several)
def test_containing_is_that_of_the_points_unless_empty(pair):
    a, b = pair
    if b.is_empty:
        closed = Range(a.start, tuple(x + 1 for x in a.end))
        assert a.contains_range(b) == (closed.contains(b.start) and closed.contains(b.end))
    else:
        assert a.contains_range(b) == (cells(b) <= cells(a))


@given(several)
def test_bounding_contains_all_and_is_least(pair):
    a, b = pair
    bound = bounding(pair)
    assert bound.contains_range(a)
    assert bound.contains_range(b)
    assert bound.start == tuple(map(min, a.start, b.start))
    assert bound.end == tuple(map(max, a.end, b.end))


@given(one.filter(lambda box: box.rank > 0), st.data())
def test_splits_follow_one_another(box, data):
    dim = data.draw(st.integers(-box.rank, box.rank - 1))
    chunk = data.draw(st.integers(1, 5))
    parts = box.split(dim, chunk)
    assert len(parts) == -(-box.shape[dim] // chunk)
    assert all(a.end[dim] == b.start[dim] for a, b in pairwise(parts))
    assert all(part.shape[dim] == chunk for part in parts[:-1])
    assert sorted(p for part in parts for p in part.coords()) == list(box.coords())
    assert box.split_sizes(dim, [part.shape[dim] for part in parts]) == parts


@given(several)
def test_product_pairs_the_points(pair):
    a, b = pair
    assert list(a.product(b).coords()) == [p + q for p in a.coords() for q in b.coords()]


@given(one, st.data())
def test_permuting_and_selecting_dimensions(box, data):
    order = data.draw(st.permutations(range(box.rank)))
    assert cells(box.permute(order)) == {tuple(p[dim] for dim in order) for p in box.coords()}
    kept = order[: data.draw(st.integers(0, box.rank))]
    assert box.select(kept).shape == tuple(box.shape[dim] for dim in kept)


@given(several)
def test_slices_find_the_cells_in_an_array(pair):
    within, box = pair
    stored = np.zeros(within.shape, dtype=int)
    if not within.contains_range(box):
        with pytest.raises(IndexOutOfRangeError, match="is not inside"):
            box.slices(within)
        return
    stored[box.slices(within)] = 1
    found = {
        tuple(int(x) + y for x, y in zip(p, within.start, strict=True)) for p in np.argwhere(stored)
    }
    assert found == cells(box)


def test_huge_ranges_are_exact():
    box = Range((-(2**70), 0), (2**70, 2**40))
    assert box.size == 2**111
    assert box.split(0, 2**70)[1] == Range((0, 0), (2**70, 2**40))
    assert box.intersection(Range((2**69, 5), (2**71, 6))) == Range((2**69, 5), (2**70, 6))
    assert next(box.coords()) == box.start


def test_lists_are_accepted_and_become_points():
    box = Range([0, 0], [2, 3])  # pyright: ignore[reportArgumentType]
    assert box == Range.of((2, 3))
    assert hash(box) == hash(Range.of([2, 3]))


def test_text():
    assert str(Range((0, -1), (2, 3))) == "[0, -1] : [2, 3]"
    assert str(Range.of(())) == "[] : []"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda _: Range((1, 2, 3), (4, 5)), DimMismatchError, "start .* has 3 dimensions"),
        (lambda _: Range((4, 0), (3, 3)), InvalidRangeError, "start <= end must hold"),
        (lambda _: Range.of((2, -1)), InvalidRangeError, "ends before it starts"),
        (lambda r: r.contains((0,)), DimMismatchError, "point .* where 2 are needed"),
        (lambda r: r.contains_range(Range.of((1,))), DimMismatchError, "2 dimensions .* has 1"),
        (lambda r: r.intersection(Range.of(())), DimMismatchError, "2 dimensions .* has 0"),
        (lambda r: r.translate((1,)), DimMismatchError, "offset"),
        (lambda r: r.permute((0,)), DimMismatchError, "permutation"),
        (lambda r: r.split(0, 0), InvalidArgumentError, "at least one cell"),
        (lambda r: r.split(2, 1), IndexOutOfRangeError, "dimension 2 does not exist"),
        (lambda r: r.split_sizes(1, (1, 1)), InvalidArgumentError, "add up to 3"),
        (lambda r: r.split_sizes(1, (4, -1)), InvalidArgumentError, "at least 0"),
        (lambda _: Range((1,), (1,)).inclusive_end, EmptyRangeError, "no last point"),
        (lambda _: bounding([]), InvalidArgumentError, "at least one range"),
        (lambda r: bounding([r, Range.of(())]), DimMismatchError, "different ranks"),
    ],
)
def test_mistakes_say_what_is_wrong(make, error, message):
    with pytest.raises(error, match=message):
        make(Range.of((2, 3)))


@given(several)
def test_clipping_keeps_what_is_inside(pair):
    a, b = pair
    clipped = a.clip(b)
    assert cells(clipped) == cells(a) & cells(b)
    assert b.contains_range(clipped)
