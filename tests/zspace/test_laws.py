"""Laws between ranges, maps, projections, partitions and batches, at small and at huge places.

The other files compare one answer with a count of cells. Here answers must agree with each other:
moved, permuted, composed, in batches, and far from the origin, where no cell could be counted.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tapestry.zspace import (
    AffineMap,
    InvalidArgumentError,
    Partition,
    Projection,
    ProjectionBatch,
    Range,
    RangeBatch,
    ZSpaceError,
    bounding,
    check_tiling,
)

SMALL = st.integers(-3, 3)
RANKS = st.integers(0, 3)
EXTENTS = st.integers(0, 3)
FAR = st.integers(-(2**70), 2**70)


@st.composite
def projections(draw, inputs=RANKS, outputs=RANKS, entries=SMALL):
    n, m = draw(inputs), draw(outputs)
    rows = draw(st.lists(st.lists(entries, min_size=n, max_size=n), min_size=m, max_size=m))
    offset = draw(st.lists(entries, min_size=m, max_size=m))
    shape = draw(st.lists(st.integers(0, 3), min_size=m, max_size=m))
    return Projection.of(rows, offset, shape, n)


@st.composite
def boxes(draw, rank, places=SMALL, extents=EXTENTS):
    start = draw(st.lists(places, min_size=rank, max_size=rank))
    shape = draw(st.lists(extents, min_size=rank, max_size=rank))
    return Range(tuple(start), tuple(a + n for a, n in zip(start, shape, strict=True)))


def linear(f: AffineMap, step) -> tuple[int, ...]:
    """How far the image moves when a point moves by `step`."""
    return tuple(a - b for a, b in zip(f.apply(step), f.offset, strict=True))


@given(projections(), st.data())
def test_moving_the_index_moves_what_it_selects(p, data):
    index = data.draw(boxes(p.inputs))
    step = data.draw(st.tuples(*(FAR,) * p.inputs))
    moved = p.apply_range(index.translate(step))
    assert moved == p.apply_range(index).translate(linear(p.map, step))
    assert p.is_injective_on(index.translate(step)) == p.is_injective_on(index)


@settings(max_examples=200)
@given(projections(), st.data())
def test_a_preimage_moves_with_its_range_and_target(p, data):
    f, step = p.map, data.draw(st.tuples(*(FAR,) * p.inputs))
    within, target = data.draw(boxes(p.inputs)), data.draw(boxes(p.outputs))
    here = f.preimage(target, within)
    there = f.preimage(target.translate(linear(f, step)), within.translate(step))
    assert there == here.translate(step)


@given(projections(), st.data())
def test_a_preimage_of_an_image_holds_what_it_came_from(p, data):
    within = data.draw(boxes(p.inputs))
    part = data.draw(boxes(p.inputs)).intersection(within)
    assume(part is not None and not part.is_empty)
    found = p.map.preimage(p.map.image(part), within)
    assert found.contains_range(part)
    assert within.contains_range(found)
    assert p.map.image(found).contains_range(p.map.image(part))


@given(projections(), st.data())
def test_composition_is_associative_and_selects_no_more(p, data):
    g = data.draw(projections(outputs=st.just(p.inputs))).map
    h = data.draw(projections(outputs=st.just(g.inputs))).map
    assert p.compose(g).compose(h) == p.compose(g.compose(h))
    index = data.draw(boxes(h.inputs))
    assume(not index.is_empty)
    through = p.apply_range(g.compose(h).image(index))
    assert through.contains_range(p.compose(g).compose(h).apply_range(index))


@given(projections(), st.data())
def test_permutations_compose_and_undo_each_other(p, data):
    one = data.draw(st.permutations(range(p.inputs)))
    two = data.draw(st.permutations(range(p.inputs)))
    both = [one[dim] for dim in two]
    assert p.permute_input(one).permute_input(two) == p.permute_input(both)
    back = [one.index(dim) for dim in range(p.inputs)]
    assert p.permute_input(one).permute_input(back) == p
    index = data.draw(boxes(p.inputs))
    assert p.permute_input(one).is_injective_on(index.permute(one)) == p.is_injective_on(index)
    strides = [p.marginal_stride(dim) for dim in one]
    assert [p.permute_input(one).marginal_stride(d) for d in range(p.inputs)] == strides
    for dim, old in enumerate(one):
        assert p.permute_input(one).overlap(dim) == p.overlap(old)
        assert p.permute_input(one).waste(dim, 3) == p.waste(old, 3)


@given(projections(inputs=st.integers(1, 3)), st.data())
def test_a_step_overlaps_as_many_cells_as_two_boxes_share(p, data):
    dim = data.draw(st.integers(0, p.inputs - 1))
    point = data.draw(st.tuples(*(FAR,) * p.inputs))
    step = tuple(x + (d == dim) for d, x in enumerate(point))
    common = p.apply_point(point).intersection(p.apply_point(step))
    assert p.overlap(dim) == (0 if common is None else common.size)


@given(projections(), st.data())
def test_a_subset_of_an_index_selects_a_subset(p, data):
    index = data.draw(boxes(p.inputs, places=FAR, extents=st.integers(1, 2**70)))
    ends = zip(index.start, index.end, strict=True)
    sides = [sorted(data.draw(st.tuples(st.integers(a, b), st.integers(a, b)))) for a, b in ends]
    part = Range(tuple(a for a, _ in sides), tuple(b for _, b in sides))
    assume(not part.is_empty)
    assert p.apply_range(index).contains_range(p.apply_range(part))
    assert p.is_injective_on(part) or not p.is_injective_on(index)


@given(st.data())
def test_what_the_parts_select_is_bounded_by_what_the_whole_selects(data):
    p = data.draw(projections(inputs=st.integers(1, 3)))
    whole = data.draw(boxes(p.inputs, places=FAR, extents=st.integers(1, 2**70)))
    counts = [min(n, data.draw(st.integers(1, 3))) for n in whole.shape]
    parts = Partition.balanced(whole, counts)
    assert bounding(p.apply_range(part) for part in parts) == p.apply_range(whole)


@given(st.data())
def test_a_signed_permutation_takes_a_tiling_to_a_tiling(data):
    rank = data.draw(st.integers(1, 3))
    order = data.draw(st.permutations(range(rank)))
    signs = data.draw(st.tuples(*(st.sampled_from((1, -1)),) * rank))
    rows = [[s * (o == c) for c in range(rank)] for s, o in zip(signs, order, strict=True)]
    p = Projection.of(rows, data.draw(st.tuples(*(SMALL,) * rank)))
    whole = data.draw(boxes(rank, extents=st.integers(1, 9)))
    parts = Partition.balanced(whole, [min(3, n) for n in whole.shape])
    images = [p.apply_range(part) for part in parts]
    check_tiling(images, p.apply_range(whole))
    RangeBatch.of(parts).project(p).check_tiling(p.apply_range(whole))
    assert p.tiles(whole, p.apply_range(whole))


@given(st.data())
def test_a_grid_and_the_list_of_its_parts_are_checked_alike(data):
    rank = data.draw(st.integers(1, 2))
    cuts = [sorted(data.draw(st.sets(SMALL, min_size=2))) for _ in range(rank)]
    grid, whole = Partition.grid(cuts), data.draw(boxes(rank, extents=st.integers(1, 6)))

    def accepts(partition: Partition) -> bool:
        try:
            partition.check(whole)
        except ZSpaceError:
            return False
        return True

    backwards = Partition.explicit(reversed(grid.ranges()))
    ends = [(points[0], points[-1]) for points in cuts]
    fits = ends == list(zip(whole.start, whole.end, strict=True))
    assert accepts(grid) == accepts(backwards) == fits


EDGES = st.sampled_from((2**20, 2**31, 2**40, 2**61, 2**62, 2**63 - 1))
WIDE = st.builds(lambda edge, near, sign: sign * (edge - near), EDGES, st.integers(0, 3), SMALL)


@settings(max_examples=300)
@given(st.data())
def test_a_batch_is_right_or_refuses_at_the_edge_of_64_bits(data):
    wide = WIDE.filter(lambda x: -(2**63) <= x < 2**63)
    p = data.draw(projections(inputs=st.integers(0, 2), entries=st.one_of(SMALL, wide)))
    some = st.lists(boxes(p.inputs, places=wide), min_size=1, max_size=4)
    given_ranges = data.draw(some)
    assume(all(x < 2**63 for r in given_ranges for x in r.end))
    batch = RangeBatch.of(given_ranges)
    questions = (
        (lambda: list(batch.project(p)), lambda: [p.apply_range(r) for r in given_ranges]),
        (
            lambda: list(batch.project(ProjectionBatch.of([p] * len(batch)))),
            lambda: [p.apply_range(r) for r in given_ranges],
        ),
        (lambda: batch.sizes().tolist(), lambda: [r.size for r in given_ranges]),
        (
            lambda: list(batch.translate([2**61] * p.inputs)),
            lambda: [r.translate([2**61] * p.inputs) for r in given_ranges],
        ),
    )
    for ours, exact in questions:
        try:
            found = ours()
        except InvalidArgumentError:
            continue  # refused: nothing wrapped
        assert found == exact()


def test_a_batch_goes_up_to_2_to_the_62():
    edge = RangeBatch.of([Range((2**61,), (2**61 + 5,)), Range((-(2**61),), (-(2**60),))])
    up = Projection.of([[1]], [2**60])
    assert list(edge.project(up)) == [up.apply_range(r) for r in edge]
    with pytest.raises(InvalidArgumentError, match="64 bits"):
        edge.project(Projection.of([[-2]]))


@given(st.data())
def test_batches_of_every_rank_agree_with_single_ranges(data):
    rank = data.draw(RANKS)
    some = st.lists(boxes(rank), min_size=1, max_size=5)
    first, second = data.draw(some), data.draw(some)
    n = min(len(first), len(second))
    first, second = first[:n], second[:n]
    batch, other = RangeBatch.of(first), RangeBatch.of(second)
    pairs = list(zip(first, second, strict=True))
    assert batch.is_empty().tolist() == [r.is_empty for r in first]
    assert batch.overlaps(other).tolist() == [a.overlaps(b) for a, b in pairs]
    assert batch.contains_range(other).tolist() == [a.contains_range(b) for a, b in pairs]
    common, exist = batch.intersect(other)
    found = [r if e else None for r, e in zip(common, exist.tolist(), strict=True)]
    assert found == [a.intersection(b) for a, b in pairs]
    points = np.array([r.start for r in second], dtype=np.int64).reshape(n, rank)
    assert batch.contains(points).tolist() == [a.contains(b.start) for a, b in pairs]
    p = data.draw(projections(inputs=st.just(rank)))
    assert list(batch.project(p)) == [p.apply_range(r) for r in first]
    assert batch.bounding() == bounding(first)


@given(st.data())
def test_a_batch_accepts_the_tilings_that_a_list_accepts(data):
    rank = data.draw(RANKS)
    whole = data.draw(boxes(rank))
    parts = data.draw(st.lists(boxes(rank), max_size=3))
    if data.draw(st.booleans()) and rank:
        dim = data.draw(st.integers(0, rank - 1))
        parts = list(whole.split(dim, data.draw(st.integers(1, 3))))
    outcomes = []
    for check in (
        lambda: check_tiling(parts, whole),
        lambda: RangeBatch.of(parts, rank).check_tiling(whole),
    ):
        try:
            check()
            outcomes.append("tiles")
        except ZSpaceError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
    cells = sorted(cell for part in parts for cell in part.coords())
    inside = all(whole.contains_range(part) for part in parts)
    assert (outcomes[0] == "tiles") == (inside and cells == sorted(whole.coords()))
