"""Domains: the points of an index space where affine rows are not negative.

A causal mask is one row, a sliding window of three two of them:

    >>> window = Domain.of([[1, -1], [-1, 1]], [0, 2])
    >>> print(window, window.contains((5, 3)), window.contains((5, 2)))
    d0 - d1 >= 0, -d0 + d1 + 2 >= 0 True False

What a box of the index space has to do with a domain is interval arithmetic, a row at a time:

    >>> window.covers(Range((8, 7), (9, 9))), window.misses(Range((0, 8), (4, 16)))
    (True, True)
    >>> print(window.bounds(Range((100, 0), (104, 1000))), "|", window.within(Range.of((2, 1))))
    [100, 98] : [104, 104] | None
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tapestry.zspace.affine import AffineMap, format_row
from tapestry.zspace.errors import InvalidArgumentError
from tapestry.zspace.points import require_rank
from tapestry.zspace.ranges import Range


@dataclass(frozen=True, slots=True)
class Domain:
    """The points x where `rows(x) >= 0` in every coordinate; there is at least one row."""

    rows: AffineMap

    def __post_init__(self) -> None:
        if not self.rows.outputs:
            raise InvalidArgumentError("a domain has at least one row; every point has no domain")

    @staticmethod
    def of(
        matrix: Sequence[Sequence[int]],
        offset: Sequence[int] | None = None,
        inputs: int | None = None,
    ) -> Domain:
        """A domain from rows, as `AffineMap.of`."""
        return Domain(AffineMap.of(matrix, offset, inputs))

    @property
    def rank(self) -> int:
        """How many dimensions its points have."""
        return self.rows.inputs

    def __str__(self) -> str:
        pairs = zip(self.rows.terms, self.rows.offset, strict=True)
        return ", ".join(f"{format_row(terms, constant)} >= 0" for terms, constant in pairs)

    def contains(self, point: Sequence[int]) -> bool:
        """Whether every row holds at `point`."""
        return all(value >= 0 for value in self.rows.apply(point))

    def covers(self, box: Range) -> bool:
        """Whether every point of `box` is inside; exact."""
        return box.is_empty or all(low >= 0 for low in self._image(box).start)

    def misses(self, box: Range) -> bool:
        """Whether some row holds at no point of `box`, so that none is inside.

        Rows that only together hold nowhere are not seen; `bounds` sees them.
        """
        return box.is_empty or any(end <= 0 for end in self._image(box).end)

    def bounds(self, box: Range) -> Range | None:
        """The tight box of the points of `box` that are inside; None when none is.

        Several rows that mix the same dimensions may give a larger box, never a smaller one.
        """
        if self.misses(box):
            return None
        high = [max(end, 0) for end in self._image(box).end]
        found = self.rows.preimage(Range((0,) * len(high), tuple(high)), box)
        return None if found.is_empty and box.rank else found

    def within(self, box: Range) -> Domain | None:
        """The rows that do not hold all over `box`, each once; None when every point is inside."""
        if box.is_empty:
            return None
        lows = self._image(box).start
        pairs = zip(self.rows.matrix, self.rows.offset, strict=True)
        kept = dict.fromkeys(row for row, low in zip(pairs, lows, strict=True) if low < 0)
        if not kept:
            return None
        return Domain.of([row for row, _ in kept], [b for _, b in kept], self.rank)

    def compose(self, inner: AffineMap) -> Domain:
        """The points that `inner` takes into this domain."""
        return Domain(self.rows.compose(inner))

    def moving(self) -> tuple[frozenset[int], ...]:
        """Per row, the dimensions that it depends on."""
        return tuple(frozenset(dim for _, dim in terms) for terms in self.rows.terms)

    def only(self, numbers: Sequence[int]) -> Domain | None:
        """The rows with the given numbers; None without any."""
        return Domain(self.rows.select_outputs(numbers)) if numbers else None

    def _image(self, box: Range) -> Range:
        require_rank(box.start, self.rank, "range start")
        return self.rows.image(box)
