"""Projections: what ranges select, against the union of what their points select."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.zspace import (
    AffineMap,
    DimMismatchError,
    InvalidArgumentError,
    Projection,
    Range,
    bounding,
)

small = st.integers(-3, 3)
RANKS = st.integers(0, 3)


@st.composite
def projections(draw, inputs=RANKS, outputs=RANKS, least=0):
    n, m = draw(inputs), draw(outputs)
    rows = draw(st.lists(st.lists(small, min_size=n, max_size=n), min_size=m, max_size=m))
    offset = draw(st.lists(small, min_size=m, max_size=m))
    sizes = draw(st.lists(st.integers(least, 3), min_size=m, max_size=m))
    return Projection.of(rows, offset, sizes, n)


@st.composite
def boxes(draw, rank, least=0):
    sides = draw(st.lists(st.tuples(small, st.integers(least, 3)), min_size=rank, max_size=rank))
    return Range(tuple(a for a, _ in sides), tuple(a + n for a, n in sides))


def selected(p: Projection, index: Range) -> Counter:
    return Counter(cell for point in index.coords() for cell in p.apply_point(point).coords())


@given(projections(), st.data())
def test_a_range_selects_the_bounding_box_of_what_its_points_select(p, data):
    index = data.draw(boxes(p.inputs))
    box = p.apply_range(index)
    if index.is_empty:
        assert box.start == box.end == p.map.apply(index.start)
    else:
        assert box == bounding(map(p.apply_point, index.coords()))


@given(projections(), st.data())
def test_moving_and_composing(p, data):
    g = data.draw(projections(outputs=st.just(p.inputs))).map
    point = data.draw(st.tuples(*(small,) * g.inputs))
    assert p.compose(g).apply_point(point) == p.apply_point(g.apply(point))
    index = data.draw(boxes(p.inputs))
    by = p.map.offset
    assert p.translate(by).apply_range(index) == p.apply_range(index).translate(by)
    order = data.draw(st.permutations(range(p.inputs)))
    rows = data.draw(st.permutations(range(p.outputs)))
    assert p.permute_input(order).apply_range(index.permute(order)) == p.apply_range(index)
    assert p.permute_output(rows).apply_range(index) == p.apply_range(index).permute(rows)
    wider = p.insert_inputs([0])
    assert wider.apply_point((5, *index.start)) == p.apply_point(index.start)
    assert wider.select_inputs(range(1, wider.inputs)) == p


@given(projections(), st.data())
def test_reading_through_a_view(p, data):
    view = data.draw(projections(inputs=st.just(p.outputs)))
    point = data.draw(st.tuples(*(small,) * p.inputs))
    cells = p.apply_point(point)
    through = p.then(view).apply_point(point)
    if cells.is_empty:
        assert through.is_empty or view.outputs == 0
    else:
        assert through == view.apply_range(cells)


@given(projections(), st.data())
def test_injective_when_no_cell_is_selected_twice(p, data):
    index = data.draw(boxes(p.inputs))
    assert p.is_injective_on(index) == all(n == 1 for n in selected(p, index).values())


@given(projections(), st.data())
def test_tiling_is_covering_each_cell_once(p, data):
    index = data.draw(boxes(p.inputs))
    target = data.draw(st.one_of(st.just(p.apply_range(index)), boxes(p.outputs)))
    expected = selected(p, index) == Counter(target.coords())
    assert p.tiles(index, target) == expected


@given(projections(inputs=st.integers(1, 2), least=1), st.integers(1, 5), st.data())
def test_overlap_and_waste_count_cells(p, extent, data):
    dim = data.draw(st.integers(0, p.inputs - 1))
    line = [tuple(k if d == dim else 0 for d in range(p.inputs)) for k in range(extent)]
    covered = {cell for point in line for cell in p.apply_point(point).coords()}
    bound = bounding(map(p.apply_point, line))
    assert p.waste(dim, extent) == bound.size - len(covered)
    origin, step = (
        p.apply_point(tuple(k if d == dim else 0 for d in range(p.inputs))) for k in (0, 1)
    )
    assert p.overlap(dim) == len(set(origin.coords()) & set(step.coords()))
    assert origin.translate(p.marginal_stride(dim)) == step


def test_a_folded_reshape_writes_each_cell_once():
    heads = Projection.of([[1, 0, 0], [0, 64, 1]])
    assert heads.tiles(Range.of((2**40, 8, 64)), Range.of((2**40, 512)))
    assert not heads.tiles(Range.of((2**40, 8, 63)), Range.of((2**40, 511)))
    assert not heads.tiles(Range.of((2**40, 16, 32)), Range.of((2**40, 512)))


def test_extra_leading_coordinates_select_their_own_cell():
    p = Projection.of([[1, 0], [0, 1], [1, 1]], [10, 20, 30], [4, 4, 1])
    assert p.broadcast_apply((100, 20, 5, 6)) == Range((100, 20, 15, 26, 41), (101, 21, 19, 30, 42))


def test_text_leaves_out_a_box_of_one_cell():
    rows = AffineMap.of([[1, 0], [0, 0]])
    assert str(Projection.cells(rows)) == "(d0, d1) -> (d0, 0)"
    assert str(Projection(rows, (1, 5))) == "(d0, d1) -> (d0, 0) :> [1, 5]"
    assert str(Projection.identity(0)) == "() -> ()"
    assert Projection.cells(rows).is_unit


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: Projection(p.map, (1,)), DimMismatchError, "box shape .* 2 rows"),
        (lambda p: Projection(p.map, (1, -1)), InvalidArgumentError, "negative size"),
        (lambda p: p.apply_range(Range.of((1,))), DimMismatchError, "reads 2 dimensions"),
        (lambda p: p.apply_point((1,)), DimMismatchError, "where 2 are needed"),
        (lambda p: p.is_injective_on(Range.of(())), DimMismatchError, "where 2 are needed"),
        (lambda p: p.then(Projection.identity(3)), DimMismatchError, "reads 3 coordinates"),
        (lambda p: p.waste(0, 0), InvalidArgumentError, "extent"),
    ],
)
def test_mistakes_say_what_is_wrong(make, error, message):
    with pytest.raises(error, match=message):
        make(Projection.of([[1, 0], [0, 0]]))
