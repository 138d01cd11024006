"""`origin` finds the point that wrote what is read, or says that no affine map does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tapestry.zspace import AffineMap, Range
from tapestry.zspace.origins import origin, settle

_SMALL = st.integers(-2, 2)


@st.composite
def _written(draw: st.DrawFn) -> tuple[AffineMap, Range]:
    """An injective map: each row is the digits of some dimensions, forth or back, with gaps."""
    rank = draw(st.integers(1, 4))
    shape = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    start = draw(st.lists(_SMALL, min_size=rank, max_size=rank))
    index = Range(tuple(start), tuple(s + n for s, n in zip(start, shape, strict=True)))
    order = draw(st.permutations(range(rank)))
    rows = [[0] * rank]
    size = draw(st.integers(1, 2))
    for dim in order:
        if draw(st.booleans()):
            rows.append([0] * rank)
            size = 1
        rows[-1][dim] = size * draw(st.sampled_from([1, -1]))
        size *= shape[dim] * draw(st.sampled_from([1, 1, 2]))
    offset = draw(st.lists(_SMALL, min_size=len(rows), max_size=len(rows)))
    return AffineMap.of(rows, offset, inputs=rank), index


@st.composite
def _points(draw: st.DrawFn, index: Range) -> tuple[AffineMap, Range]:
    """A map of a further index space into `index`: dimensions taken, turned or held."""
    over = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2)))]
    rows: list[list[int]] = []
    offset: list[int] = []
    for first, extent in zip(index.start, index.shape, strict=True):
        sign = draw(st.sampled_from([0, 1, -1]))
        rows.append([0] * len(over))
        if sign:
            rows[-1].append(sign)
            over.append(extent)
        held = draw(st.integers(0, extent - 1))
        offset.append(first + (held if sign == 0 else 0 if sign > 0 else extent - 1))
    matrix = [row + [0] * (len(over) - len(row)) for row in rows]
    return AffineMap.of(matrix, offset, inputs=len(over)), Range.of(tuple(over))


@given(st.data())
def test_what_was_composed_is_found(data: st.DataObject) -> None:
    written, index = data.draw(_written())
    points, over = data.draw(_points(index))
    found = origin(written, index, written.compose(points), over)
    assert found is not None
    assert all(found.apply(point) == points.apply(point) for point in over.coords())


_FACTORS = st.sampled_from([-4, -3, -2, -1, 0, 0, 1, 2, 3, 4, 6])


@given(
    st.lists(st.tuples(_FACTORS, st.integers(1, 3)), min_size=1, max_size=3),
    st.integers(-3, 12),
    _written(),
)
def test_what_is_found_is_right(
    terms: list[tuple[int, int]], offset: int, drawn: tuple[AffineMap, Range]
) -> None:
    written, index = drawn
    over = Range.of(tuple(extent for _, extent in terms))
    row = [factor for factor, _ in terms]
    read = AffineMap.of([row] * written.outputs, [offset] * written.outputs)
    cells = {written.apply(point) for point in index.coords()}
    if not all(read.apply(point) in cells for point in over.coords()):
        return
    found = origin(written, index, read, over)
    if found is not None:
        for point in over.coords():
            assert index.contains(found.apply(point))
            assert written.apply(found.apply(point)) == read.apply(point)


def test_a_read_across_digits_has_no_origin() -> None:
    written = AffineMap.of([[4, 1]])
    assert origin(written, Range.of((6, 4)), AffineMap.of([[1]]), Range.of((24,))) is None
    assert origin(written, Range.of((6, 4)), AffineMap.of([[2, 1]]), Range.of((6, 2))) is None
    assert origin(written, Range.of((6, 4)), AffineMap.of([[4, 1]]), Range.of((6, 4))) == (
        AffineMap.identity(2)
    )


def test_settled_maps_agree_on_their_index() -> None:
    mapping, index = AffineMap.of([[2, 1], [0, 3]], [1, 1]), Range((3, -1), (4, 2))
    settled = settle(mapping, index)
    assert settled == AffineMap.of([[0, 1], [0, 3]], [7, 1])
    assert all(settled.apply(p) == mapping.apply(p) for p in index.coords())
