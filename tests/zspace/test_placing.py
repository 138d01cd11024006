"""Placed boxes tile a range exactly, or a cell shows where they do not."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.zspace import (
    AffineMap,
    DimMismatchError,
    IndexOutOfRangeError,
    InvalidArgumentError,
    Range,
    ZSpaceError,
    check_placed,
)


def classes(steps, of):
    """`of` as residue classes modulo `steps`, each a box placed by stride."""
    parts = []
    for residue in Range.of(steps).coords():
        start = [s + r for s, r in zip(of.start, residue, strict=True)]
        counts = [max(0, -(-(e - s) // n)) for s, e, n in zip(start, of.end, steps, strict=True)]
        parts.append((AffineMap.diagonal(*steps).translate(start), Range.of(counts)))
    return parts


def cells(placed):
    return [mapping.apply(p) for mapping, box in placed for p in box.coords()]


def is_tiling(placed, of):
    return sorted(cells(placed)) == list(of.coords())


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 7)), min_size=1, max_size=2), st.data()
)
@settings(deadline=None)
def test_residue_classes_tile(sides, data):
    of = Range(tuple(a for a, _ in sides), tuple(a + n for a, n in sides))
    steps = data.draw(st.lists(st.integers(1, 4), min_size=of.rank, max_size=of.rank))
    parts = data.draw(st.permutations(classes(steps, of)))
    assert is_tiling(parts, of)
    check_placed(parts, of)


affine = st.tuples(
    st.lists(st.lists(st.integers(-3, 3), min_size=2, max_size=2), min_size=2, max_size=2),
    st.lists(st.integers(0, 3), min_size=2, max_size=2),
    st.lists(st.integers(0, 3), min_size=2, max_size=2),
)


@given(st.lists(affine, min_size=1, max_size=3))
@settings(deadline=None, max_examples=300)
def test_agrees_with_visiting_every_cell(drawn):
    placed = [(AffineMap.of(rows, at), Range.of(shape)) for rows, at, shape in drawn]
    of = Range.of((4, 4))
    try:
        check_placed(placed, of)
    except ZSpaceError:
        assert not is_tiling(placed, of)
    else:
        assert is_tiling(placed, of)


def test_row_major_placement_tiles():
    # A matrix laid out on a line, and a line wound on a matrix's diagonal-free rows.
    check_placed([(AffineMap.of([[4, 1]]), Range.of((6, 4)))], Range.of((24,)))
    check_placed([(AffineMap.of([[4, -1]], [3]), Range.of((6, 4)))], Range.of((24,)))


def test_says_which_cell_is_missing():
    even = (AffineMap.of([[2]]), Range.of((2**40,)))
    odd = (AffineMap.of([[2]], [1]), Range.of((2**40 - 1,)))
    with pytest.raises(InvalidArgumentError, match=rf"; \[{2**41 - 1}\] is in none of them"):
        check_placed([even, odd], Range.of((2**41,)))


def test_says_which_cell_is_held_twice():
    thirds = (AffineMap.of([[3]], [1]), Range.of((3,)))
    halves = (AffineMap.of([[2]]), Range.of((4,)))
    with pytest.raises(InvalidArgumentError, match=r"parts 0 and 1 overlap: both hold \[4\]"):
        check_placed([thirds, halves], Range.of((10,)))


def test_refuses_what_leaves_the_range_or_lands_on_itself():
    with pytest.raises(IndexOutOfRangeError, match=r"part 0 is placed on \[0\] : \[5\]"):
        check_placed([(AffineMap.of([[2]]), Range.of((3,)))], Range.of((4,)))
    with pytest.raises(InvalidArgumentError, match="part 0 is placed on some cell more than once"):
        check_placed([(AffineMap.of([[1, 1]]), Range.of((2, 2)))], Range.of((4,)))
    with pytest.raises(DimMismatchError, match="part 0 of rank 2"):
        check_placed([(AffineMap.of([[1]]), Range.of((2, 2)))], Range.of((4,)))


def test_large_classes_are_decided_at_once():
    of = Range.of((2**40, 2**40))
    parts = classes((7, 5), of)
    check_placed(parts, of)
    for wrong in combinations(parts, len(parts) - 1):
        with pytest.raises(InvalidArgumentError, match="is in none of them"):
            check_placed(wrong, of)


def test_many_parts():
    of = Range.of((4000,))
    parts = []
    for residue in (0, 1):
        parts += [
            (AffineMap.of([[2]], [residue]), Range((n,), (n + 4,))) for n in range(0, 2000, 4)
        ]
    check_placed(parts, of)
