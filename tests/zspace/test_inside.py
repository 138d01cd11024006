"""Points of domains are counted as visiting them all counts them."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.zspace import Domain, Range
from tapestry.zspace.inside import points_inside


@st.composite
def _domains(draw: st.DrawFn) -> tuple[Domain, Range]:
    rank = draw(st.integers(1, 4))
    start = draw(st.lists(st.integers(-3, 3), min_size=rank, max_size=rank))
    shape = draw(st.lists(st.integers(0, 5), min_size=rank, max_size=rank))
    factors = st.lists(
        st.sampled_from([-4, -2, -1, 0, 0, 1, 1, 2, 4]), min_size=rank, max_size=rank
    )
    rows = draw(st.lists(factors, min_size=1, max_size=3))
    constants = draw(st.lists(st.integers(-6, 6), min_size=len(rows), max_size=len(rows)))
    end = tuple(a + n for a, n in zip(start, shape, strict=True))
    return Domain.of(rows, constants, rank), Range(tuple(start), end)


@given(_domains())
@settings(max_examples=300, deadline=None)
def test_as_many_as_there_are(case: tuple[Domain, Range]) -> None:
    domain, box = case
    points = product(*map(range, box.start, box.end))
    assert points_inside(domain, box) == sum(map(domain.contains, points))


def test_no_more_work_at_any_size() -> None:
    size = 2**40
    window = Domain.of([[1, -1], [-1, 1]], [0, 127])
    assert points_inside(window, Range.of((size, size))) == 128 * size - 127 * 128 // 2
    heads = Domain.of([[0, 64, 1, -8, -1]])
    rows = Range.of((12, size // 64, 64, size // 8, 8))
    assert points_inside(heads, rows) == 12 * size * (size + 1) // 2
