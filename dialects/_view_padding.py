"""Which cell of a tensor each cell of its padded tensor is, dimension by dimension, as intervals.

    >>> for piece in pieces("reflect", (0, 4), (-2, 6)):
    ...     print(piece)
    Piece(start=-2, end=0, factor=-1, offset=0)
    Piece(start=0, end=4, factor=1, offset=0)
    Piece(start=4, end=6, factor=-1, offset=6)

On a piece, the cell at `p` is the source's at `factor * p + offset`: a padded tensor is an assembly
of views.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tapestry.zspace import Interval

Mode = Literal["constant", "reflect", "replicate", "circular"]
"""What is around a tensor: a value, its mirror image (the edge once), its edge, or itself again."""


@dataclass(frozen=True)
class Piece:
    """Coordinates [start, end) of a padded dimension; `factor` None where the value stands."""

    start: int
    end: int
    factor: int | None
    offset: int = 0


def pieces(mode: Mode, source: Interval, target: Interval) -> list[Piece]:
    """The pieces of `target` in order; only `constant` has pieces of a source without cells."""
    (low, high), (first, last) = source, target
    if first >= last:
        return []
    if low == high and mode != "constant":
        raise ValueError(f"there is nothing to {mode}: the source has no cells along a dimension")
    found = [
        Piece(max(piece.start, first), min(piece.end, last), piece.factor, piece.offset)
        for piece in _unlimited(mode, low, high, first, last)
        if piece.start < last and first < piece.end
    ]
    return [piece for piece in found if piece.start < piece.end]


def _unlimited(mode: Mode, low: int, high: int, first: int, last: int) -> Iterator[Piece]:
    """Pieces that cover [first, last), and may reach further."""
    n = high - low
    if mode == "constant":
        yield Piece(min(first, low), low, None)
        yield Piece(low, high, 1)
        yield Piece(high, max(last, high), None)
    elif mode == "replicate" or (mode == "reflect" and n == 1):
        yield Piece(min(first, low), low, 0, low)
        yield Piece(low, high, 1)
        yield Piece(high, max(last, high), 0, high - 1)
    else:
        # Reflected, the edges are there once: a period turns after n - 1 steps.
        period = n if mode == "circular" else 2 * (n - 1)
        turn = (first - low) // period
        while low + turn * period < last:
            base = low + turn * period
            yield Piece(base, base + n, 1, low - base)
            if mode == "reflect":
                yield Piece(base + n, base + period, -1, low + base + period)
            turn += 1
