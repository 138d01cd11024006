"""Exact integer algebra below the maps: elimination, and integer points in boxes under rows."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.zspace.lattice import has_point
from tapestry.zspace.matrices import inverse, rank
from tapestry.zspace.systems import boxes_collide, solution_box

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


@settings(max_examples=300)
@given(systems())
def test_solution_box_is_tight(system):
    matrix, bounds, rows = system
    points = solutions(*system)
    found = solution_box(
        matrix,
        [low for low, _ in rows],
        [high for _, high in rows],
        tuple(low for low, _ in bounds),
        tuple(high for _, high in bounds),
    )
    if not points:
        assert found is None
    else:
        assert found == (tuple(map(min, *points, points[0])), tuple(map(max, *points, points[0])))


@given(systems(), st.data())
def test_boxes_collide_when_two_share_a_cell(system, data):
    matrix, bounds, _ = system
    extents = [high - low + 1 for low, high in bounds]
    shape = data.draw(st.tuples(*(st.integers(0, 4),) * len(matrix)))
    seen = set()
    collide = False
    for x in product(*map(range, extents)):
        corner = [sum(a * b for a, b in zip(row, x, strict=True)) for row in matrix]
        cells = set(product(*(range(c, c + n) for c, n in zip(corner, shape, strict=True))))
        collide |= bool(cells & seen)
        seen |= cells
    assert boxes_collide(matrix, extents, shape) == collide


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.tuples(*(entries,) * n), min_size=1,
                                                    max_size=4)))  # fmt: skip
def test_rank_is_that_of_the_rows_and_of_the_columns(matrix):
    matrix = tuple(matrix)
    columns = tuple(zip(*matrix, strict=True))
    assert rank(matrix) == rank(columns) <= min(len(matrix), len(columns))
    assert rank((*matrix, tuple(map(sum, zip(*matrix, strict=True))))) == rank(matrix)


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [((), 0), (((0, 0),), 0), (((0, 2), (3, 0)), 2), (((1, 2), (2, 4), (0, 1)), 2)],
)
def test_rank_of(matrix, expected):
    assert rank(matrix) == expected


@given(st.integers(1, 3).flatmap(lambda n: st.tuples(*(st.tuples(*(entries,) * n),) * n)))
def test_inverse_times_matrix_is_one(matrix):
    n = len(matrix)
    back = inverse(matrix)
    if back is not None:
        assert [[sum(a * b for a, b in zip(row, column, strict=True))
                 for column in zip(*matrix, strict=True)] for row in back] == [
            [Fraction(r == c) for c in range(n)] for r in range(n)
        ]  # fmt: skip


@pytest.mark.parametrize("matrix", [((2,),), ((0, 0), (0, 1)), ((1, 2), (2, 4)), ((1, 1), (1, 3))])
def test_other_matrices_have_no_integer_inverse(matrix):
    assert inverse(matrix) is None
