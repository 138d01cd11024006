"""How many cells parts select: the sum over all parts, whatever the partition."""

from hypothesis import given
from hypothesis import strategies as st

from tapestry.zspace import Partition, Projection, Range
from tapestry.zspace.counting import selected_cells

SMALL = st.integers(-3, 3)


@st.composite
def cases(draw):
    inputs, outputs = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    row = st.lists(st.sampled_from([0, 0, 1, -1, 2]), min_size=inputs, max_size=inputs)
    matrix = draw(st.lists(row, min_size=outputs, max_size=outputs))
    shape = draw(st.lists(st.integers(0, 2), min_size=outputs, max_size=outputs))
    start = draw(st.lists(SMALL, min_size=inputs, max_size=inputs))
    extents = draw(st.lists(st.integers(0, 7), min_size=inputs, max_size=inputs))
    whole = Range(tuple(start), tuple(a + n for a, n in zip(start, extents, strict=True)))
    counts = [min(max(n, 1), draw(st.integers(1, 3))) for n in extents]
    return Projection.of(matrix, shape=shape, inputs=inputs), Partition.balanced(whole, counts)


@given(cases())
def test_it_is_the_sum_over_the_parts(case):
    projection, grid = case
    expected = sum(projection.apply_range(part).size for part in grid if not part.is_empty)
    assert selected_cells(projection, grid) == expected
    assert selected_cells(projection, Partition.explicit(grid.ranges())) == expected


def test_sizes_and_parts_do_not_matter():
    grid = Partition.balanced(Range.of((2**50, 2**40, 2**30)), (3, 10**5, 2**10))
    matrix = Projection.of([[1, 0, 0], [0, 0, 1]])
    assert selected_cells(matrix, grid) == 2**80 * 10**5
    halo = Projection.of([[0, 1, 0]], shape=[3])
    assert selected_cells(halo, grid) == (2**40 + 2 * 10**5) * 3 * 2**10


@given(cases(), st.data())
def test_only_cells_inside_a_tensor_count(case, data):
    projection, grid = case
    rank = projection.outputs
    start = data.draw(st.lists(SMALL, min_size=rank, max_size=rank))
    extents = data.draw(st.lists(st.integers(0, 6), min_size=rank, max_size=rank))
    tensor = Range(tuple(start), tuple(a + n for a, n in zip(start, extents, strict=True)))
    selections = [projection.apply_range(part) for part in grid if not part.is_empty]
    expected = sum(sum(map(tensor.contains, box.coords())) for box in selections)
    assert selected_cells(projection, grid, tensor) == expected
    assert selected_cells(projection, Partition.explicit(grid.ranges()), tensor) == expected
