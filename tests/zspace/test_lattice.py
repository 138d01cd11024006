"""Whether a box under rows holds an integer point, against trying every point."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.zspace.lattice import has_point

entries = st.integers(-9, 9)
intervals = st.tuples(st.integers(-4, 4), st.integers(0, 4)).map(lambda p: (p[0], p[0] + p[1]))


@st.composite
def systems(draw):
    n, m = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    matrix = tuple(draw(st.tuples(*(entries,) * n)) for _ in range(m))
    return matrix, draw(st.tuples(*(intervals,) * n)), draw(st.tuples(*(intervals,) * m))


def solutions(matrix, bounds, rows):
    return [
        x
        for x in product(*(range(low, high + 1) for low, high in bounds))
        if all(
            low <= sum(a * b for a, b in zip(row, x, strict=True)) <= high
            for row, (low, high) in zip(matrix, rows, strict=True)
        )
    ]


@settings(max_examples=300)
@given(systems(), st.booleans())
def test_a_point_is_found_when_there_is_one(system, nonzero):
    points = solutions(*system)
    expected = any(any(x) for x in points) if nonzero else bool(points)
    assert has_point(*system, nonzero=nonzero) == expected


def test_giving_up_answers_that_there_may_be_one():
    unreachable = ((6, 10, 15),), [(0, 9)] * 3, [(29, 29)]
    assert not has_point(*unreachable)
    assert has_point(*unreachable, limit=0)
