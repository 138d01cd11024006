"""The index space as a kernel walks it: linear accesses, merged dimensions, bounds, widths."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.passes.triton.indexing.spaces import (
    Access,
    linear_access,
    make_space,
    needs_64_bits,
    row_major,
)
from tapestry.zspace import Projection, Range


def space(index, axes, ins, outs, cut=(), named=()):
    return make_space(index, axes, tuple(dict.fromkeys(axes)), cut, ins, [], outs, named)


def identity(box):
    return linear_access(Projection.identity(box.rank), box, range(box.rank), box.rank)


def test_an_access_is_an_offset_into_a_tensor_that_starts_anywhere():
    box = Range((2, -1), (6, 9))
    transposed = Projection.of([[0, 1], [1, 0]], offset=[0, 3])
    access = linear_access(transposed, box, (0, 1), 2)
    assert access == Access((1, 10), (0 - 2) * 10 + (3 + 1))


def test_projections_over_map_dimensions_are_placed_in_the_index_space():
    rows = Projection.of([[1, 0], [0, 1]])
    assert linear_access(rows, Range.of((4, 5)), (0, 2), 3) == Access((5, 0, 1), 0)


def test_cells_that_every_access_reads_as_one_run_are_one_dimension():
    index = Range((1, 2), (5, 12))
    (dim,) = space(index, "PP", [identity(index)], [identity(index)]).dims
    assert (dim.extent, dim.sources, dim.cut) == (40, (0, 1), False)


def test_an_access_that_reads_no_run_keeps_dimensions_apart():
    index = Range.of((4, 10))
    columns = linear_access(Projection.of([[0, 1]]), Range.of((10,)), (0, 1), 2)
    made = space(index, "PP", [columns], [identity(index)])
    assert [dim.sources for dim in made.dims] == [(0,), (1,)]
    assert made.ins[0].coefficients == (0, 1)


def test_dimensions_on_different_axes_stay_apart():
    index = Range.of((4, 10))
    out = linear_access(Projection.of([[1]]), Range.of((4,)), (0,), 2)
    made = space(index, "PK", [identity(index)], [out])
    assert [(dim.axis, dim.extent) for dim in made.dims] == [("P", 4), ("K", 10)]


def test_a_dimension_that_is_asked_for_is_not_merged():
    index = Range.of((4, 10))
    made = space(index, "PP", [identity(index)], [identity(index)], named={1})
    assert made.dim_of(1) is not None
    assert made.dim_of(1).extent == 10


def test_dimensions_of_extent_one_disappear_and_leave_their_coordinate():
    index = Range((7, 0), (8, 10))
    made = space(index, "PP", [identity(index)], [identity(index)], named={0})
    assert [dim.sources for dim in made.dims] == [(1,)]
    assert made.constants[0] == 7


def test_an_axis_without_dimensions_walks_one_point():
    index = Range.of((1, 10))
    scalar = Access((0, 0), 0)
    made = space(index, "PK", [identity(index)], [scalar])
    (point,) = made.on("P")
    assert point.extent == 1
    assert made.along(made.outs[0]) == {"P"}


def test_cut_dimensions_keep_their_coordinates_and_take_bounds():
    index = Range((3, 0), (9, 10))
    made = space(index, "PP", [identity(index)], [identity(index)], cut={0})
    (dim,) = made.dims
    assert dim.cut
    assert dim.bounds(Range((5, 0), (9, 10))) == (50, 90)
    # The tensor starts at row 3, which is cell 0.
    assert made.ins[0].constant == -30


@pytest.mark.parametrize(("rows", "wide"), [(1 << 20, False), (1 << 22, True)])
def test_offsets_past_two_to_the_31_take_64_bits(rows, wide):
    index = Range.of((rows, 1024))
    assert needs_64_bits(space(index, "PP", [identity(index)], [identity(index)]), index) is wide


def test_a_sum_of_few_cells_of_a_large_tensor_takes_64_bits_too():
    index = Range.of((4, 4))
    corner = linear_access(Projection.identity(2), Range.of((1 << 16, 1 << 16)), (0, 1), 2)
    far = linear_access(
        Projection.of([[1, 0], [0, 1]], offset=[(1 << 16) - 8, 0]),
        Range.of((1 << 16, 1 << 16)),
        (0, 1),
        2,
    )
    assert not needs_64_bits(space(index, "PP", [corner], [identity(index)]), index)
    assert needs_64_bits(space(index, "PP", [far], [identity(index)]), index)


boxes = st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 4)), min_size=1, max_size=4)


@given(boxes, st.data())
def test_simplified_spaces_visit_the_same_offsets(pairs, data):
    """Whatever is merged or dropped, the points of the space read and write the same cells."""
    index = Range(tuple(s for s, _ in pairs), tuple(s + n for s, n in pairs))
    order = data.draw(st.permutations(range(index.rank)))
    box = Range(tuple(index.start[d] for d in order), tuple(index.end[d] for d in order))
    rows = [[int(d == column) for column in range(index.rank)] for d in order]
    access = linear_access(Projection.of(rows), box, range(index.rank), index.rank)
    out = identity(index)
    made = space(index, "P" * index.rank, [access], [out])

    def offset(form, point):
        return sum(c * x for c, x in zip(form.coefficients, point, strict=True)) + form.constant

    walked = product(*(range(dim.extent) for dim in made.dims))
    got = {(offset(made.ins[0], p), offset(made.outs[0], p)) for p in walked}
    assert got == {(offset(access, p), offset(out, p)) for p in index.coords()}


def test_row_major_steps():
    assert row_major((2, 3, 4)) == (12, 4, 1)
    assert row_major(()) == ()
