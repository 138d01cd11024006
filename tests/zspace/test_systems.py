"""Integer points in a box under rows, against trying every point."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

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
