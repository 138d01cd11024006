"""Digits of positions, and index spaces split into them, against visiting every point."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.passes.loom.rebuilding.digits import Split
from tapestry.passes.loom.simplification.reshape import common_factors, mixed_radix_digit
from tapestry.zspace import Partition, Range
from tests.amounts import drawn

sides = st.lists(st.tuples(st.integers(-2, 3), st.integers(1, 6)), min_size=1, max_size=3)
coefficients = st.sampled_from([0, 1, -1, 2, -2, 3, 4, -4, 6, 8, 12, 13, 24])


@given(sides, st.data(), st.sampled_from([1, 2, 3, 4]), st.sampled_from([2, 3, 4]))
@settings(deadline=None, max_examples=drawn(1000))
def test_a_digit_is_that_of_every_point(sides, data, weight, extent):
    space = Range(tuple(a for a, _ in sides), tuple(a + n for a, n in sides))
    row = [data.draw(coefficients) for _ in sides]
    least = sum(min(c * a, c * (a + n - 1)) for c, (a, n) in zip(row, sides, strict=True))
    shift = data.draw(st.integers(0, 30)) - least
    found = mixed_radix_digit(row, shift, space, weight, extent)
    if found is None:
        return
    digit, offset = found
    for point in space.coords():
        value = sum(c * x for c, x in zip(row, point, strict=True)) + shift
        affine = sum(c * x for c, x in zip(digit, point, strict=True)) + offset
        assert value // weight % extent == affine


@given(st.integers(-3, 3), st.integers(1, 4), st.integers(1, 4), st.data())
def test_split_parts_hold_the_same_points(start, outer, inner, data):
    index = Range((start, 5), (start + outer * inner, 7))
    split = Split(0, inner)
    cuts = sorted(
        data.draw(
            st.sets(st.integers(start + 1, index.end[0] - 1), max_size=3)
            if index.shape[0] > 1
            else st.just(set())
        )
    )
    grid = Partition.grid([[start, *cuts, index.end[0]], [5, 6, 7]])
    partition = data.draw(st.sampled_from([grid, Partition.explicit(grid.ranges())]))
    found = split.partition(partition, index)
    whole = split.range(index)
    to_old = split.map(index)
    assert sorted(map(to_old.apply, whole.coords())) == list(index.coords())
    if found is None:
        return
    found.check(whole)
    old = [sorted(part.coords()) for part in partition.ranges()]
    assert [sorted(map(to_old.apply, part.coords())) for part in found.ranges()] == old


def test_common_factors():
    assert common_factors((6, 4), (4, 6)) is None
    assert [f.extent for f in common_factors((6, 4), (2, 12)) or ()] == [2, 3, 4]
    assert common_factors((1, 0), (0,)) is None
