"""Batches: every operation agrees with the one on single ranges, and nothing wraps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.zspace import (
    DimMismatchError,
    InvalidArgumentError,
    InvalidRangeError,
    Partition,
    Projection,
    ProjectionBatch,
    Range,
    RangeBatch,
    bounding,
)

RANK = 2
small = st.integers(-4, 4)
sides = st.lists(st.tuples(small, st.integers(0, 4)), min_size=RANK, max_size=RANK)
ranges = sides.map(lambda s: Range(tuple(a for a, _ in s), tuple(a + n for a, n in s)))
batches = st.lists(ranges, min_size=1, max_size=5)
rows = st.lists(st.lists(small, min_size=RANK, max_size=RANK), min_size=3, max_size=3)
projections = st.builds(
    Projection.of, rows, st.tuples(small, small, small), st.tuples(*(st.integers(0, 3),) * 3)
)


@given(batches, st.tuples(small, small))
def test_questions_about_one_batch(given_ranges, point):
    batch = RangeBatch.of(given_ranges)
    assert list(batch) == given_ranges
    assert [batch[k] for k in range(len(batch))] == given_ranges
    assert batch.sizes().tolist() == [r.size for r in given_ranges]
    assert batch.is_empty().tolist() == [r.is_empty for r in given_ranges]
    assert batch.contains(np.array(point)).tolist() == [r.contains(point) for r in given_ranges]
    assert list(batch.translate(point)) == [r.translate(point) for r in given_ranges]
    assert batch.bounding() == bounding(given_ranges)


@given(st.lists(st.tuples(ranges, ranges), min_size=1, max_size=5), st.booleans())
def test_questions_about_pairs(pairs, same):
    first = [a for a, _ in pairs]
    second = [pairs[0][1] if same else b for _, b in pairs]
    batch, other = RangeBatch.of(first), second[0] if same else RangeBatch.of(second)
    together = list(zip(first, second, strict=True))
    assert batch.contains_range(other).tolist() == [a.contains_range(b) for a, b in together]
    assert batch.overlaps(other).tolist() == [a.overlaps(b) for a, b in together]
    common, exist = batch.intersect(other)
    for found, exists, (a, b) in zip(common, exist.tolist(), together, strict=True):
        assert (found if exists else None) == a.intersection(b)
        assert exists or found.is_empty


@given(batches, st.lists(projections, min_size=1, max_size=5))
def test_projecting(given_ranges, given_projections):
    batch, many = RangeBatch.of(given_ranges), ProjectionBatch.of(given_projections)
    one = given_projections[0]
    assert list(batch.project(one)) == [one.apply_range(r) for r in given_ranges]
    assert list(many.apply_range(given_ranges[0])) == [
        p.apply_range(given_ranges[0]) for p in given_projections
    ]
    n = min(len(batch), len(many))
    paired = RangeBatch.of(given_ranges[:n]).project(ProjectionBatch.of(given_projections[:n]))
    assert list(paired) == [
        p.apply_range(r) for p, r in zip(given_projections[:n], given_ranges[:n], strict=True)
    ]


def test_tiling_of_100_000_projected_shards():
    whole = Range.of((2**20, 2**20))
    shards = RangeBatch.of(Partition.balanced(whole, (500, 200)))
    transposed = Projection.of([[0, 1], [1, 0]])
    written = shards.project(transposed)
    written.check_tiling(whole)
    with pytest.raises(InvalidArgumentError, match="ranges 0 and 1 overlap"):
        shards.project(Projection.of([[1, 0], [0, 0]])).check_tiling(whole)


def test_no_ranges():
    none = RangeBatch.of([], rank=2)
    assert (len(none), none.rank, none.sizes().tolist()) == (0, 2, [])
    with pytest.raises(InvalidArgumentError, match="nothing"):
        none.bounding()


def test_rank_0():
    batch = RangeBatch.of([Range.of(())] * 3)
    assert batch.sizes().tolist() == [1, 1, 1]
    assert list(batch.project(Projection.of([[]], [5]))) == [Range((5,), (6,))] * 3


HUGE = RangeBatch.of([Range.of((2**40, 2**40))])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RangeBatch.of([Range.of((2**63,))]), InvalidArgumentError, "64 bits"),
        (HUGE.sizes, InvalidArgumentError, "64 bits"),
        (lambda: HUGE.translate((2**62, 0)), InvalidArgumentError, "64 bits"),
        (lambda: HUGE.project(Projection.of([[2**30, 0]])), InvalidArgumentError, "64 bits"),
        (lambda: HUGE.project(Projection.of([[1]])), DimMismatchError, "read 1 dimensions"),
        (lambda: HUGE.overlaps(Range.of((1,))), DimMismatchError, "rank 2, not 1"),
        (lambda: HUGE.overlaps(RangeBatch.of([*HUGE] * 2)), DimMismatchError, "do not pair"),
        (lambda: RangeBatch.of([Range.of(()), Range.of((1,))]), DimMismatchError, "range start"),
        (lambda: RangeBatch(HUGE.start, HUGE.end[:, :1]), DimMismatchError, "must both"),
        (lambda: RangeBatch(HUGE.end, HUGE.start), InvalidRangeError, "range 0 ends before"),
        (lambda: ProjectionBatch.of([]), InvalidArgumentError, "at least one"),
        (
            lambda: ProjectionBatch.of([Projection.identity(1), Projection.identity(2)]),
            DimMismatchError,
            "do not go in one batch",
        ),
        (
            lambda: RangeBatch.of([*HUGE] * 3).project(
                ProjectionBatch.of([Projection.identity(2)] * 2)
            ),
            DimMismatchError,
            "2 projections and 3 ranges do not pair",
        ),
    ],
)
def test_mistakes_say_what_is_wrong(make, error, message):
    with pytest.raises(error, match=message):
        make()
