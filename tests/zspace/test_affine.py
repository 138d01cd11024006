"""Affine maps: algebra, and exact answers about boxes against brute force on small ones."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tapestry.zspace import AffineMap, DimMismatchError, Range, bounding
from tapestry.zspace.matrices import rank

small = st.integers(-3, 3)
RANKS = st.integers(0, 3)


@st.composite
def maps(draw, inputs=RANKS, outputs=RANKS, entries=small):
    n, m = draw(inputs), draw(outputs)
    rows = draw(st.lists(st.lists(entries, min_size=n, max_size=n), min_size=m, max_size=m))
    return AffineMap.of(rows, draw(st.lists(small, min_size=m, max_size=m)), n)


@st.composite
def boxes(draw, rank, extent=4):
    sides = draw(st.lists(st.tuples(small, st.integers(0, extent)), min_size=rank, max_size=rank))
    return Range(tuple(a for a, _ in sides), tuple(a + n for a, n in sides))


def unit_box(point):
    return Range(point, tuple(x + 1 for x in point))


def plain_apply(f, point):
    return tuple(
        sum(a * x for a, x in zip(row, point, strict=True)) + b
        for row, b in zip(f.matrix, f.offset, strict=True)
    )


@given(maps(), st.data())
def test_composition_is_one_after_the_other(f, data):
    g = data.draw(maps(outputs=st.just(f.inputs)))
    point = data.draw(st.tuples(*(small,) * g.inputs))
    assert f.compose(g).apply(point) == f.apply(g.apply(point)) == plain_apply(f, g.apply(point))
    assert f.compose(AffineMap.identity(f.inputs)) == f
    assert AffineMap.identity(f.outputs).compose(f) == f


@given(maps(), st.data())
def test_changes_of_inputs_and_outputs(f, data):
    point = data.draw(st.tuples(*(small,) * f.inputs))
    order = data.draw(st.permutations(range(f.inputs)))
    rows = data.draw(st.permutations(range(f.outputs)))
    image = f.apply(point)
    assert f.permute_input(order).apply([point[dim] for dim in order]) == image
    assert f.permute_output(rows).apply(point) == tuple(image[row] for row in rows)
    assert f.translate(image).apply(point) == tuple(2 * x for x in image)
    kept = sorted(order[: data.draw(st.integers(0, f.inputs))])
    dropped = [dim for dim in range(f.inputs) if dim not in kept]
    part = f.select_inputs(kept)
    held = [x if dim in kept else 0 for dim, x in enumerate(point)]
    assert part.apply([point[dim] for dim in kept]) == f.apply(held)
    assert part.insert_inputs(dropped).apply(point) == f.apply(held)
    assert f.broadcast_apply((7, *point)) == (7, *image)


@given(maps(), st.data())
def test_image_is_the_tight_box(f, data):
    index = data.draw(boxes(f.inputs))
    image = f.image(index)
    if index.is_empty:
        assert image.start == image.end == f.apply(index.start)
    else:
        assert image == bounding(unit_box(f.apply(point)) for point in index.coords())


@settings(max_examples=400)
@given(maps(), st.data())
def test_preimage_is_the_tight_box(f, data):
    within, target = data.draw(boxes(f.inputs)), data.draw(boxes(f.outputs))
    found = [unit_box(point) for point in within.coords() if target.contains(f.apply(point))]
    expected = bounding(found) if found else Range(within.start, within.start)
    assert f.preimage(target, within) == expected


@settings(max_examples=400)
@given(maps(), st.data())
def test_injectivity_on_a_box_is_that_of_its_points(f, data):
    index = data.draw(boxes(f.inputs))
    images = [f.apply(point) for point in index.coords()]
    assert f.is_injective_on(index) == (len(set(images)) == len(images))


@given(maps(entries=st.integers(-9, 9)), st.data())
def test_injectivity_everywhere_is_full_column_rank(f, data):
    assert f.is_injective() == (rank(f.matrix) == f.inputs)
    if f.is_injective():
        assert f.is_injective_on(data.draw(boxes(f.inputs, extent=2**50)))


@given(maps(inputs=st.just(2), outputs=st.just(2)), st.tuples(small, small))
@example(AffineMap.of([[0, 1], [-1, 3]], [5, 6]), (2, 3))
def test_inverse_exists_exactly_when_unimodular(f, point):
    (a, b), (c, d) = f.matrix
    back = f.inverse()
    assert (back is not None) == (abs(a * d - b * c) == 1)
    if back is not None:
        assert back.apply(f.apply(point)) == f.apply(back.apply(point)) == point


def test_only_square_maps_have_an_inverse():
    assert AffineMap.of([[1], [0]]).inverse() is None
    assert AffineMap.of([], inputs=0).inverse() == AffineMap.identity(0)


def test_mixed_radix_rows_at_full_size():
    folded = AffineMap.of([[2**40 * 64, 64, 1]])
    assert not folded.is_injective()
    assert folded.is_injective_on(Range.of((2**40, 2**40, 64)))
    assert not folded.is_injective_on(Range.of((2**40, 2**40, 65)))
    assert not folded.is_injective_on(Range.of((2, 2**40 + 1, 64)))
    assert folded.is_injective_on(Range.of((1, 2**40, 64)))
    row = folded.apply((5, 7, 0))[0]
    within = Range.of((2**40, 2**40, 64))
    assert folded.preimage(Range((row,), (row + 64,)), within) == Range((5, 7, 0), (6, 8, 64))
    assert folded.preimage(Range((row + 60,), (row + 70,)), within) == Range((5, 7, 0), (6, 9, 64))


def test_what_no_single_row_decides():
    # x + y is even, and x - y is 1: each row has solutions, together they have none.
    parity = AffineMap.of([[1, 1, 2], [1, -1, 0]])
    within = Range((-(2**40),) * 3, (2**40,) * 3)
    assert parity.preimage(Range((0, 1), (1, 2)), within).is_empty
    # No multiple of 2 is 1.
    assert AffineMap.of([[2, 4]]).preimage(Range((1,), (2,)), Range.of((9, 9))).is_empty
    # 15 * 10 = 6 * 25, so steps of (5, 0, -2) collide, and no shorter ones do.
    coins = AffineMap.of([[6, 10, 15]])
    assert not coins.is_injective_on(Range.of((1, 4, 3)))
    assert coins.is_injective_on(Range.of((1, 3, 2)))


def test_unit_rows():
    f = AffineMap.of([[0, 1], [2, 0], [1, 1], [0, 0], [0, -1]], [9, 0, 0, 0, 0])
    assert [f.unit_row(row) for row in range(5)] == [1, None, None, None, None]


def test_no_rows_keep_the_number_of_inputs():
    forget = AffineMap.of([], inputs=2)
    assert forget.apply((1, 2)) == ()
    assert forget.is_injective_on(Range.of((1, 1)))
    assert not forget.is_injective_on(Range.of((1, 2)))
    assert forget != AffineMap.of([], inputs=1)


@pytest.mark.parametrize(
    ("rows", "offset", "text"),
    [
        ([[2, -1], [-1, 0], [0, 0], [0, -3]], [3, 0, -5, 1],
         "(d0, d1) -> (2 * d0 - d1 + 3, -d0, -5, -3 * d1 + 1)"),
        ([[1, 1]], [-1], "(d0, d1) -> (d0 + d1 - 1)"),
        ([], [], "() -> ()"),
    ],
)  # fmt: skip
def test_text(rows, offset, text):
    assert str(AffineMap.of(rows, offset)) == text


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: AffineMap.of([[1, 0], [1]]), r"row \[1\] has 1 coefficients .* 2 inputs"),
        (lambda _: AffineMap.of([[1, 0]], [1, 2]), r"offset \[1, 2\] has 2 dimensions"),
        (lambda f: f.apply((1,)), "where 2 are needed"),
        (lambda f: f.broadcast_apply((1,)), "at least 2"),
        (lambda f: f.compose(f), "reads 2 coordinates, not 3"),
        (lambda f: f.translate((1, 2)), "where 3 are needed"),
        (lambda f: f.permute_input((0,)), "where 2 are needed"),
        (lambda f: f.permute_output((0, 1)), "where 3 are needed"),
        (lambda f: f.image(Range.of((1,))), "reads 2 dimensions"),
        (lambda f: f.preimage(Range.of((1,)), Range.of((1, 1))), "has 3 outputs"),
        (lambda f: f.is_injective_on(Range.of(())), "reads 2 dimensions"),
    ],
)
def test_ranks_must_agree(make, message):
    with pytest.raises(DimMismatchError, match=message):
        make(AffineMap.of([[1, 0], [0, 2], [1, 2]], [4, 5, 6]))
