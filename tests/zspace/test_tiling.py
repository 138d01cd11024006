"""The check that ranges tile a range: exact, with a witness, and fast for many ranges."""

import random
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tapestry.zspace import (
    IndexOutOfRangeError,
    InvalidArgumentError,
    Partition,
    Range,
    ZSpaceError,
    check_tiling,
)

WHOLE = Range((0, 0), (10, 12))


@st.composite
def tilings(draw, max_rank=3):
    """A range, and ranges that tile it: made by cutting it again and again."""
    sides = draw(st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 5)), max_size=max_rank))
    whole = Range(tuple(a for a, _ in sides), tuple(a + n for a, n in sides))
    parts = [whole]
    for _ in range(draw(st.integers(0, 6))):
        chosen = parts.pop(draw(st.integers(0, len(parts) - 1)))
        if chosen.rank:
            dim = draw(st.integers(0, chosen.rank - 1))
            at = draw(st.integers(0, chosen.shape[dim]))
            parts.extend(chosen.split_sizes(dim, (at, chosen.shape[dim] - at)))
        else:
            parts.append(chosen)
    return whole, draw(st.permutations(parts))


def cover(ranges):
    return sorted(cell for r in ranges for cell in r.coords())


@given(tilings())
def test_exact_tilings_are_accepted(tiling):
    whole, parts = tiling
    Partition.explicit(parts).check(whole)


@settings(max_examples=400)
@given(tilings(), st.data())
def test_any_other_list_of_ranges_is_rejected(tiling, data):
    whole, parts = tiling
    number = data.draw(st.integers(0, len(parts) - 1))
    start = data.draw(st.tuples(*(st.integers(-1, 1),) * whole.rank))
    end = data.draw(st.tuples(*(st.integers(-1, 1),) * whole.rank))
    moved = [
        list(map(sum, zip(parts[number].start, start, strict=True))),
        list(map(sum, zip(parts[number].end, end, strict=True))),
    ]
    assume(all(a <= b for a, b in zip(*moved, strict=True)))
    changed = [*parts]
    changed[number] = Range(tuple(moved[0]), tuple(moved[1]))
    inside = all(whole.contains_range(part) for part in changed)
    if inside and cover(changed) == cover([whole]):
        check_tiling(changed, whole)
    else:
        with pytest.raises(ZSpaceError):
            check_tiling(changed, whole)


@given(tilings(), st.data())
def test_the_message_names_an_overlap_or_a_missing_point(tiling, data):
    whole, parts = tiling
    number = data.draw(st.integers(0, len(parts) - 1))
    part = parts[number]
    assume(not part.is_empty)
    with pytest.raises(InvalidArgumentError, match="do not cover") as error:
        check_tiling([r for k, r in enumerate(parts) if k != number], whole)
    short = f"they have {whole.size - part.size} of its {whole.size} cells"
    assert short in str(error.value)
    point = re.search(r"point \[(.*)\] is in none", str(error.value))
    assert part.contains([int(x) for x in point[1].split(",")] if point[1] else ())
    with pytest.raises(InvalidArgumentError, match=f"ranges {number} and {len(parts)} overlap"):
        check_tiling([*parts, part], whole)


def test_a_range_outside_is_named():
    with pytest.raises(IndexOutOfRangeError, match=r"range 1, \[5, 0\] : \[11, 12\], reaches"):
        check_tiling([Range.of((5, 12)), Range((5, 0), (11, 12))], WHOLE)


def test_an_empty_range_is_tiled_by_empty_ranges_in_it_and_by_nothing():
    nothing = Range((2, 0), (2, 9))
    check_tiling([], nothing)
    check_tiling([nothing, Range((2, 3), (2, 3))], nothing)
    with pytest.raises(IndexOutOfRangeError):
        check_tiling([Range((2, 0), (2, 10))], nothing)


def test_rank_0_has_one_cell():
    point = Range.of(())
    check_tiling([point], point)
    with pytest.raises(InvalidArgumentError, match="overlap"):
        check_tiling([point, point], point)
    with pytest.raises(InvalidArgumentError, match="do not cover"):
        check_tiling([], point)


def shuffled(partition):
    parts = list(partition.ranges())
    random.Random(7).shuffle(parts)
    return parts


@pytest.mark.parametrize(
    ("whole", "counts"),
    [
        (Range.of((2**40,)), (100_000,)),
        (Range.of((2**40, 2**40)), (500, 200)),
        (Range.of((2**15,) * 4), (16, 16, 16, 25)),
        (Range.of((64,) * 6), (8, 8, 8, 8, 8, 3)),
    ],
)
def test_100_000_ranges_take_a_moment(whole, counts):
    parts = shuffled(Partition.balanced(whole, counts))
    check_tiling(parts, whole)
    spoiled = parts[-1].split_sizes(0, (1, parts[-1].shape[0] - 1))
    with pytest.raises(InvalidArgumentError, match="do not cover"):
        check_tiling([*parts[:-1], spoiled[1]], whole)
    with pytest.raises(InvalidArgumentError, match=f"ranges {len(parts) - 1} and {len(parts)}"):
        check_tiling([*parts, spoiled[0]], whole)


def test_equal_sizes_do_not_hide_an_overlap_and_a_gap():
    parts = [Range((0, 0), (5, 12)), Range((4, 0), (9, 12))]
    with pytest.raises(InvalidArgumentError, match="overlap"):
        check_tiling(parts, Range.of((10, 12)))


def test_many_distinct_coordinates_do_not_overflow_the_keys():
    rank = 8
    whole = Range.of((2**20,) * rank)
    parts, rest, source = [], whole, random.Random(3)
    for step in range(2000):
        dim = step % rank
        cut = source.randint(1, rest.shape[dim] // 50 + 1)
        first, rest = rest.split_sizes(dim, (cut, rest.shape[dim] - cut))
        parts.append(first)
    check_tiling([*parts, rest], whole)
    with pytest.raises(InvalidArgumentError, match="do not cover"):
        check_tiling(parts, whole)


def test_coordinates_beyond_64_bits_are_refused_in_lists_and_fine_in_grids():
    whole = Range.of((2**70,))
    with pytest.raises(InvalidArgumentError, match="64 bits"):
        check_tiling(whole.split(0, 2**69), whole)
    Partition.balanced(whole, (2,)).check(whole)
