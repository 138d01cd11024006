"""Places of buffers in one block of memory."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.arena import ALIGNMENT, Life, dropped_after, lives, place

STEPS = st.lists(
    st.tuples(st.sets(st.integers(0, 7), max_size=3), st.sets(st.integers(0, 7), max_size=2)),
    max_size=12,
)
SIZES = st.lists(st.integers(0, 3000), min_size=8, max_size=8)


def _aligned(sizes: Iterable[int]) -> int:
    return sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)


@settings(max_examples=200, deadline=None)
@given(steps=STEPS, sizes=SIZES, kept=st.sets(st.integers(0, 7)))
def test_buffers_that_live_together_lie_apart(steps, sizes, kept) -> None:
    over = lives(steps, kept)
    held = {buffer: sizes[buffer] for buffer in over}
    arena = place(held, over)
    for a, b in combinations(over, 2):
        if over[a].meets(over[b]) and held[a] and held[b]:
            at = arena.offsets
            assert at[a] + held[a] <= at[b] or at[b] + held[b] <= at[a]
    assert all(offset % ALIGNMENT == 0 for offset in arena.offsets.values())
    assert all(arena.offsets[buffer] + size <= arena.size for buffer, size in held.items())
    needed = [
        _aligned(held[b] for b, life in over.items() if life.meets(Life(step, step)))
        for step in range(len(steps))
    ]
    assert max(needed, default=0) <= arena.size <= _aligned(held.values())


@settings(max_examples=100, deadline=None)
@given(steps=STEPS, kept=st.sets(st.integers(0, 7)))
def test_a_buffer_is_dropped_once_and_never_touched_again(steps, kept) -> None:
    dropped = dropped_after(steps, kept)
    gone: set[int] = set()
    for (reads, writes), now in zip(steps, dropped, strict=True):
        assert not gone & (reads | writes)
        assert not gone & set(now)
        gone |= set(now)
    touched = {buffer for reads, writes in steps for buffer in reads | writes}
    assert gone == touched - kept


def test_a_chain_takes_two_places() -> None:
    """However long: each step reads what the one before it wrote."""
    steps = [((n,), (n + 1,)) for n in range(50)]
    over = lives(steps, kept=[50])
    inner = dict.fromkeys(range(1, 50), 1024)
    assert place(inner, over).size == 2048


def test_a_buffer_takes_the_gap_that_it_fits() -> None:
    over = {"a": Life(0, 3), "b": Life(0, 1), "c": Life(0, 3), "d": Life(2, 3)}
    arena = place({"a": 1024, "b": 768, "c": 512, "d": 256}, over)
    assert arena.offsets == {"a": 0, "b": 1024, "c": 1792, "d": 1024}
    assert arena.size == 2304
