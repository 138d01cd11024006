"""Where buffers lie in one block of memory: those that are never needed at once share bytes.

A step of a program reads some buffers and writes others. A buffer lives from the first step that
touches it to the last one, both included, so that what a step writes never lies on what it reads.
Here `b` is needed by the last step, and `c` takes the place of `a`:

    >>> steps = [((), ("a",)), (("a",), ("b",)), ((), ("c",)), (("b", "c"), ())]
    >>> lives(steps)
    {'a': Life(first=0, last=1), 'b': Life(first=1, last=3), 'c': Life(first=2, last=3)}
    >>> place({"a": 1000, "b": 500, "c": 1000}, lives(steps))
    Arena(size=1536, offsets={'a': 0, 'c': 0, 'b': 1024})

`dropped_after` says the same for programs that let go of buffers instead of placing them.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

ALIGNMENT = 256
"""Bytes that every buffer's place is a multiple of, as CUDA's allocators have it."""

Buffer = TypeVar("Buffer", bound=Hashable)

Step: TypeAlias = tuple[Iterable[Buffer], Iterable[Buffer]]
"""What a step reads and what it writes."""


@dataclass(frozen=True)
class Life:
    """The steps from `first` to `last`, both included."""

    first: int
    last: int

    def meets(self, other: Life) -> bool:
        """Whether both live at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Arena:
    """A block of `size` bytes, and where each buffer starts in it."""

    size: int
    offsets: Mapping[Hashable, int]


def lives(steps: Sequence[Step[Buffer]], kept: Iterable[Buffer] = ()) -> dict[Buffer, Life]:
    """How long each buffer lives; `kept` are needed after the last step."""
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    for number, (reads, writes) in enumerate(steps):
        for buffer in (*reads, *writes):
            first.setdefault(buffer, number)
            last[buffer] = number
    for buffer in kept:
        if buffer in first:
            last[buffer] = len(steps)
    return {buffer: Life(start, last[buffer]) for buffer, start in first.items()}


def dropped_after(
    steps: Sequence[Step[Buffer]], kept: Iterable[Buffer] = ()
) -> list[tuple[Buffer, ...]]:
    """Per step, the buffers that nothing needs after it.

    >>> dropped_after([((), ("a",)), (("a",), ("b", "unused"))], kept=["b"])
    [(), ('a', 'unused')]
    """
    dropped: list[list[Buffer]] = [[] for _ in steps]
    for buffer, life in lives(steps, kept).items():
        if life.last < len(steps):
            dropped[life.last].append(buffer)
    return [tuple(buffers) for buffers in dropped]


def place(sizes: Mapping[Buffer, int], over: Mapping[Buffer, Life]) -> Arena:
    """Offsets for buffers of some bytes each, which live as `over` says.

    The largest is placed first, each at the lowest place that is free while it lives ("greedy by
    size" of Pisarchyk and Lee, 2020, https://arxiv.org/abs/2001.03288). Buffers without bytes are
    at 0.
    """
    placed: list[tuple[int, int, Life]] = []
    offsets: dict[Hashable, int] = {}
    for buffer, size in sorted(sizes.items(), key=lambda pair: -pair[1]):
        life, offset = over[buffer], 0
        for start, end, other in placed if size else ():
            if start - offset >= size:
                break
            if other.meets(life):
                offset = max(offset, end)
        offsets[buffer] = offset
        if size:
            insort(placed, (offset, offset + _aligned(size), life), key=lambda one: one[0])
    return Arena(max((end for _, end, _ in placed), default=0), offsets)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
