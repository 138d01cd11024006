"""`AffineMap.inverse` and `inverse_on` lead back, and find what a search finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tapestry.zspace import AffineMap, Range

_SMALL = st.integers(-2, 2)


@st.composite
def _maps(draw: st.DrawFn) -> tuple[AffineMap, Range]:
    inputs, outputs = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    row = st.lists(st.sampled_from([0, 0, 1, -1, 2]), min_size=inputs, max_size=inputs)
    matrix = draw(st.lists(row, min_size=outputs, max_size=outputs))
    offset = draw(st.lists(_SMALL, min_size=outputs, max_size=outputs))
    start = tuple(draw(st.lists(_SMALL, min_size=inputs, max_size=inputs)))
    sizes = draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=inputs, max_size=inputs))
    index = Range(start, tuple(s + n for s, n in zip(start, sizes, strict=True)))
    return AffineMap.of(matrix, offset, inputs=inputs), index


@given(_maps())
def test_it_leads_back(drawn: tuple[AffineMap, Range]) -> None:
    forth, index = drawn
    back = forth.inverse_on(index)
    if back is not None:
        assert all(back.apply(forth.apply(point)) == point for point in index.coords())
        assert forth.is_injective_on(index)


@given(
    st.permutations(range(3)), st.tuples(*[st.sampled_from([1, -1])] * 3), st.tuples(*[_SMALL] * 3)
)
def test_signed_permutations_are_inverted(
    order: list[int], signs: tuple[int, ...], offset: tuple[int, ...]
) -> None:
    rows = [[signs[r] * int(order[r] == c) for c in range(3)] for r in range(3)]
    forth = AffineMap.of(rows, offset)
    back = forth.inverse()
    assert back is not None
    assert back.compose(forth) == AffineMap.identity(3)


def test_constant_outputs_and_single_coordinates_do_not_matter() -> None:
    kept = AffineMap.of([[1], [0]], [0, 4])
    assert kept.inverse_on(Range((0,), (8,))) == AffineMap.of([[1, 0]])
    wide = AffineMap.of([[1, 7]])
    assert wide.inverse_on(Range((0, 2), (8, 3))) == AffineMap.of([[1], [0]], [-14, 2])
    assert wide.inverse_on(Range((0, 2), (8, 4))) is None
