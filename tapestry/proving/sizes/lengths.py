"""How long the gaps between the edges of an axis become.

An axis is cut by its edges into gaps. Gaps inside a rigid stretch keep their cells; gaps that
relations of the axis with itself carry onto each other stay equal; the others shrink, by rank: a
longer gap stays longer, two cells at least, so a partial tile stays partial and stays shorter than
a whole one.

    >>> axis = Axis(edges={0, 128, 256, 300})
    >>> choose_lengths({0: axis}, [], seed=0)
    {0: {0: 0, 128: 3, 256: 6, 300: 8}}

Axes that meet in an operation get extents of which none divides another, where that is possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_MANY_TILES = 4
"""Tiles of a grid that are all kept; of more, the first, the last and one beside them are."""

_LEAST = {1: 5, 2: 3}
"""Cells a gap keeps, by how many gaps can shrink; two where there are more."""

_RANKS = 4
"""Distinct lengths that stay distinct."""

_CHOICES = 12
"""Ways tried to tell an axis' extent from its neighbors'."""

_LONG = 3
"""How many times its shift a stretch is long that is a halo's, not one of a few equal parts."""

_CLOSED = 256
"""Edges more than which copying them along an axis is given up, and the axis kept whole."""

Places = dict[int, int]
"""Where each edge of an axis goes."""


@dataclass(frozen=True)
class Copy:
    """Cells `[start, end)` of an axis are tied to `sign * cell + shift` of the same axis."""

    start: int
    end: int
    sign: int
    shift: int

    def edge(self, at: int) -> int:
        """Where an edge is carried."""
        return at + self.shift if self.sign > 0 else self.shift - at + 1

    @property
    def image(self) -> tuple[int, int]:
        """The stretch that the cells are carried to."""
        low, high = sorted((self.edge(self.start), self.edge(self.end)))
        return low, high

    @property
    def is_halo(self) -> bool:
        """Whether it moves a long stretch by a little: what reads its neighbors' cells."""
        return self.sign > 0 and abs(self.shift) * _LONG < self.end - self.start


@dataclass
class Axis:
    """What is known of one axis; all in its own coordinates."""

    edges: set[int] = field(default_factory=set[int])
    rigid: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    grids: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    copies: list[Copy] = field(default_factory=list[Copy])
    pinned: bool = False


@dataclass(frozen=True)
class _Gaps:
    """An axis cut into gaps: where they begin, and which of them shrink together."""

    edges: tuple[int, ...]
    kind: tuple[int, ...]
    """Per gap, the number of its class."""
    lengths: tuple[int, ...]
    """Per class, how long its gaps are."""
    free: tuple[bool, ...]
    """Per class, whether they may shrink."""

    def places(self, lengths: Sequence[int]) -> Places:
        """Where the edges go when the gaps of each class have these lengths."""
        found = {self.edges[0]: self.edges[0]} if self.edges else {}
        for (left, right), kind in zip(pairwise(self.edges), self.kind, strict=True):
            found[right] = found[left] + lengths[kind]
        return found

    def extent(self, lengths: Sequence[int]) -> int:
        """How long the axis is when the gaps of each class have these lengths."""
        return sum(lengths[kind] for kind in self.kind)


def choose_lengths(
    axes: Mapping[int, Axis], neighbors: Iterable[Sequence[int]], seed: int
) -> dict[int, Places]:
    """Where every edge of every axis goes; `seed` picks one of several ways."""
    near: dict[int, set[int]] = {number: set() for number in axes}
    for group in set(map(tuple, neighbors)):
        for number in group:
            if number in near:
                near[number].update(other for other in group if other != number)
    gaps = {number: _gaps(axis, seed) for number, axis in axes.items()}
    extents: dict[int, int] = {}
    places: dict[int, Places] = {}
    # Those that cannot change come first: the others step aside.
    for number in sorted(axes, key=lambda n: (any(gaps[n].free), n)):
        taken = [extents[other] for other in near[number] if other in extents]
        lengths = _choose(gaps[number], taken, seed)
        extents[number] = gaps[number].extent(lengths)
        places[number] = gaps[number].places(lengths)
    return places


def _choose(gaps: _Gaps, taken: Sequence[int], seed: int) -> tuple[int, ...]:
    """The shortest lengths whose sum is told apart from every extent that is taken."""
    best, fewest = gaps.lengths, len(taken) + 1
    for choice in range(_CHOICES):
        lengths = _lengths(gaps, seed % 2 + choice // 3, choice % 3)
        extent = gaps.extent(lengths)
        clashes = sum(1 for other in taken if _alike(extent, other))
        if clashes < fewest:
            best, fewest = lengths, clashes
        if not clashes:
            break
    return best


def _alike(a: int, b: int) -> bool:
    """Whether one extent divides the other: then confusing them can go unseen."""
    low, high = sorted((a, b))
    return low > 1 and high % low == 0


def _lengths(gaps: _Gaps, wider: int, extra: int) -> tuple[int, ...]:
    """Lengths per class, by rank; each gap `wider`, and the longest ones by `extra` more."""
    shrinking = sum(1 for kind in gaps.kind if gaps.free[kind])
    least = _LEAST.get(shrinking, 2) + wider
    distinct = sorted({n for n, free in zip(gaps.lengths, gaps.free, strict=True) if free})
    rank = {n: min(place, _RANKS) for place, n in enumerate(distinct)}
    longest = distinct[-1] if distinct else 0
    return tuple(
        min(n, least + rank[n] + (extra if n == longest else 0)) if free else n
        for n, free in zip(gaps.lengths, gaps.free, strict=True)
    )


def _gaps(axis: Axis, seed: int) -> _Gaps:
    """The axis cut at its edges, those of its grids that are kept, and what copies carry over."""
    edges = set(axis.edges)
    rigid = list(axis.rigid)
    for grid in axis.grids:
        edges.update(_kept(grid, seed))
    copies = _within(axis.copies, edges)
    for copy in copies:
        if copy.is_halo:
            for at in (copy.start, copy.end):
                low, high = sorted((at, at + copy.shift))
                rigid.append((low, high))
    carried = [copy for copy in copies if not copy.is_halo]
    edges.update(at for stretch in rigid for at in stretch)
    pinned = axis.pinned or not _close(edges, carried)
    ordered = tuple(sorted(edges))
    kind = _classes(ordered, carried) if not pinned else list(range(len(ordered) - 1))
    free = [not pinned] * (max(kind, default=-1) + 1)
    lengths = [0] * len(free)
    stiff = _covered(ordered, rigid)
    for place, (left, right) in enumerate(pairwise(ordered)):
        lengths[kind[place]] = right - left
        if stiff[place]:
            free[kind[place]] = False
    return _Gaps(ordered, tuple(kind), tuple(lengths), tuple(free))


def _kept(grid: tuple[int, ...], seed: int) -> tuple[int, ...]:
    """The cuts of a grid that stay: all of a few tiles; of many, both ends and one tile beside."""
    if len(grid) <= _MANY_TILES + 1:
        return grid
    return (*grid[:2], *grid[-3:]) if seed % 2 else (*grid[:3], *grid[-2:])


def _within(copies: Iterable[Copy], edges: set[int]) -> list[Copy]:
    """Copies cut down to where both they and their images have cells, each once."""
    if not edges:
        return []
    first, last = min(edges), max(edges)
    found: dict[Copy, None] = {}
    for copy in copies:
        back = sorted(
            at - copy.shift if copy.sign > 0 else copy.shift - at + 1 for at in (first, last)
        )
        start, end = max(copy.start, first, back[0]), min(copy.end, last, back[1])
        if start < end:
            found[Copy(start, end, copy.sign, copy.shift)] = None
    return list(found)


def _close(edges: set[int], copies: Sequence[Copy]) -> bool:
    """Add the edges that copies carry over, both ways; False when there is no end of them."""
    limit = len(edges) + _CLOSED
    waiting = list(edges)
    for copy in copies:
        ends = {copy.start, copy.end, *copy.image}
        waiting += ends - edges
        edges |= ends
    while waiting:
        at = waiting.pop()
        for copy in copies:
            low, high = copy.image
            moved: list[int] = []
            if copy.start <= at <= copy.end:
                moved.append(copy.edge(at))
            if low <= at <= high:
                moved.append(at - copy.shift if copy.sign > 0 else copy.shift - at + 1)
            fresh = [place for place in moved if place not in edges]
            edges.update(fresh)
            waiting += fresh
        if len(edges) > limit:
            return False
    return True


def _classes(edges: Sequence[int], copies: Sequence[Copy]) -> list[int]:
    """Per gap, the number of its class: gaps that copies carry onto each other share one."""
    parent = list(range(max(len(edges) - 1, 0)))

    def root(gap: int) -> int:
        while parent[gap] != gap:
            parent[gap] = parent[parent[gap]]
            gap = parent[gap]
        return gap

    place = {at: number for number, at in enumerate(edges)}
    for copy in copies:
        for gap in range(place[copy.start], place[copy.end]):
            image = min(copy.edge(edges[gap]), copy.edge(edges[gap + 1]))
            parent[root(gap)] = root(place[image])
    numbers: dict[int, int] = {}
    return [numbers.setdefault(root(gap), len(numbers)) for gap in range(len(parent))]


def _covered(edges: Sequence[int], stretches: Iterable[tuple[int, int]]) -> list[bool]:
    """Per gap, whether a stretch covers it."""
    place = {at: number for number, at in enumerate(edges)}
    change = [0] * (len(edges) + 1)
    for start, end in stretches:
        change[place[start]] += 1
        change[place[end]] -= 1
    covered: list[bool] = []
    depth = 0
    for step in change[: max(len(edges) - 1, 0)]:
        depth += step
        covered.append(depth > 0)
    return covered
