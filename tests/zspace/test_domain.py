"""Domains against their points, on small boxes and at any size."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.zspace import (
    AffineMap,
    DimMismatchError,
    Domain,
    InvalidArgumentError,
    Range,
    bounding,
)

SMALL = st.integers(-3, 3)
COEFFICIENTS = st.sampled_from([0, 0, 1, -1, 2, -3])


@st.composite
def domains(draw, rank):
    count = draw(st.integers(1, 3))
    row = st.lists(COEFFICIENTS, min_size=rank, max_size=rank)
    matrix = draw(st.lists(row, min_size=count, max_size=count))
    offset = draw(st.lists(SMALL, min_size=count, max_size=count))
    return Domain.of(matrix, offset, rank)


@st.composite
def cases(draw):
    rank = draw(st.integers(0, 3))
    start = draw(st.lists(SMALL, min_size=rank, max_size=rank))
    shape = draw(st.lists(st.integers(0, 4), min_size=rank, max_size=rank))
    box = Range(tuple(start), tuple(a + n for a, n in zip(start, shape, strict=True)))
    return draw(domains(rank)), box


@settings(max_examples=300)
@given(cases())
def test_boxes_stand_to_a_domain_as_their_points_do(case):
    domain, box = case
    inside = [point for point in box.coords() if domain.contains(point)]
    assert domain.covers(box) == (len(inside) == box.size)
    assert not (domain.misses(box) and inside)
    rows = [domain.only([n]) for n in range(domain.rows.outputs)]
    assert domain.misses(box) == (
        box.is_empty or any(not any(map(row.contains, box.coords())) for row in rows)
    )
    bounds = domain.bounds(box)
    cells = [Range(p, tuple(x + 1 for x in p)) for p in inside]
    if not cells:
        assert bounds is None
    else:
        assert bounds is not None
        assert box.contains_range(bounds)
        assert bounds == bounding(cells)


@given(cases())
def test_rows_that_hold_everywhere_are_dropped(case):
    domain, box = case
    rest = domain.within(box)
    for point in box.coords():
        assert domain.contains(point) == (rest is None or rest.contains(point))
    assert (rest is None) == domain.covers(box)
    if rest is not None:
        assert rest.within(box) == rest
        assert all(not rest.only([n]).covers(box) for n in range(rest.rows.outputs))


@given(cases(), st.data())
def test_composition_is_the_points_that_land_inside(case, data):
    domain, box = case
    inputs = data.draw(st.integers(0, 3))
    row = st.lists(SMALL, min_size=inputs, max_size=inputs)
    matrix = data.draw(st.lists(row, min_size=box.rank, max_size=box.rank))
    inner = AffineMap.of(matrix, box.start, inputs)
    point = data.draw(st.tuples(*(SMALL,) * inputs))
    assert domain.compose(inner).contains(point) == domain.contains(inner.apply(point))


def test_sizes_do_not_matter():
    causal = Domain.of([[1, -1]])
    n = 2**70
    assert causal.bounds(Range((n, 0), (n + 5, 2 * n))) == Range((n, 0), (n + 5, n + 5))
    assert causal.misses(Range((0, n), (n, 2 * n)))
    assert causal.covers(Range((n, 0), (2 * n, n + 1)))
    assert not causal.covers(Range((n, 0), (2 * n, n + 2)))


def test_rows_that_only_together_hold_nowhere():
    never = Domain.of([[1, 1], [-1, -1]], [-3, 2])
    box = Range.of((9, 9))
    assert not never.misses(box)
    assert never.bounds(box) is None


def test_text():
    assert str(Domain.of([[2, -1], [0, 0]], [3, -1])) == "2 * d0 - d1 + 3 >= 0, -1 >= 0"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Domain.of([], inputs=2), InvalidArgumentError, "at least one row"),
        (lambda: Domain.of([[1]]).contains((1, 2)), DimMismatchError, "where 1 are needed"),
        (lambda: Domain.of([[1]]).covers(Range.of((1, 2))), DimMismatchError, "where 1 are"),
    ],
)
def test_mistakes_say_what_is_wrong(make, error, message):
    with pytest.raises(error, match=message):
        make()
