"""Axes: integer lines that dimensions lie on, tied together, and how each one is made shorter.

Every dimension of a tensor or an index space is a *line* with its own coordinates. Lines are tied
by `x = sign * y + shift` (then they share one axis) or split into digits, `x = anchor + w * hi +
lo` (a reshape, or a row like `64 * h + d`). Known places of a line are *edges*, the gaps before
which cells begin: ends of ranges, cuts, the border of a mask. Shortening an axis keeps every edge,
in order, and takes cells out of the gaps between them; a *rigid* stretch (a halo) keeps its cells.

    >>> axes = Axes()
    >>> row, column, flat = axes.line(), axes.line(), axes.line()
    >>> for line, extent in ((row, 12), (column, 64), (flat, 768)):
    ...     axes.extent(line, 0, extent)
    >>> high, low = axes.split(flat, 64, 0)
    >>> axes.tie(high, row, 0, 12), axes.tie(low, column, 0, 64)
    (None, None)
    >>> axes.together((row, column))
    >>> shorter = axes.shorten(seed=0)
    >>> shorter.edge(row, 12), shorter.edge(column, 64), shorter.edge(flat, 768)
    (5, 6, 30)
    >>> shorter.weight(flat, 64)
    6

An axis that nothing is known to do with is *pinned*: it keeps all its cells.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tapestry.proving.sizes.lengths import Axis, Copy, choose_lengths

_DEPTH = 32
"""Digits of digits beyond which an axis is pinned; a row of a real program has a few."""

Line = int
"""A dimension's own coordinates: a handle that `Axes` gives out."""


class UnplacedError(Exception):
    """A place that is no edge of its axis, so that nothing says where it goes."""

    def __init__(self, line: Line) -> None:
        super().__init__(f"line {line} has no edge there")
        self.line = line


@dataclass(frozen=True)
class Frame:
    """A line's coordinate in terms of its axis': `x = sign * root + shift`."""

    root: Line
    sign: int
    shift: int

    def edge(self, at: int) -> int:
        """The axis' edge at the line's edge `at`."""
        return at - self.shift if self.sign > 0 else self.shift - at + 1


@dataclass(frozen=True)
class _Split:
    """`root = anchor + width * high + low`, with `low` in [0, width)."""

    width: int
    anchor: int
    high: Line
    low: Line


@dataclass
class Axes:
    """Lines and what ties them; `shorten` says where every edge goes."""

    _frames: list[Frame] = field(default_factory=list[Frame])
    _pinned: set[Line] = field(default_factory=set[Line])
    _splits: dict[Line, _Split] = field(default_factory=dict[Line, _Split])
    _copies: list[tuple[Line, int, int, int, int]] = field(
        default_factory=list[tuple[Line, int, int, int, int]]
    )
    _edges: list[tuple[Line, int]] = field(default_factory=list[tuple[Line, int]])
    _marks: list[tuple[Line, int]] = field(default_factory=list[tuple[Line, int]])
    _distances: list[tuple[Line, int]] = field(default_factory=list[tuple[Line, int]])
    _rigid: list[tuple[Line, int, int]] = field(default_factory=list[tuple[Line, int, int]])
    _cuts: list[tuple[Line, tuple[int, ...]]] = field(
        default_factory=list[tuple[Line, tuple[int, ...]]]
    )
    _numbers: set[Line] = field(default_factory=set[Line])
    _neighbors: list[tuple[Line, ...]] = field(default_factory=list[tuple[Line, ...]])

    def line(self) -> Line:
        """A new line, on an axis of its own."""
        self._frames.append(Frame(len(self._frames), 1, 0))
        return len(self._frames) - 1

    def extent(self, line: Line, start: int, end: int) -> None:
        """Cells `[start, end)` of a line are used."""
        self._edges += [(line, start), (line, end)]

    def mark(self, line: Line, at: int) -> None:
        """A border at `at` matters where it lies inside the axis (a mask compares with it)."""
        self._marks.append((line, at))

    def distance(self, line: Line, cells: int) -> None:
        """Places that far apart on the axis are told apart (a mask compares two coordinates)."""
        self._distances.append((line, cells))

    def rigid(self, line: Line, start: int, end: int) -> None:
        """Every cell of `[start, end)` stays: a halo, a window, one fixed cell."""
        self._rigid.append((line, start, end))

    def cut(self, line: Line, cuts: tuple[int, ...]) -> None:
        """A grid cuts the line there; of many tiles a few are kept."""
        self._cuts.append((line, cuts))

    def together(self, lines: tuple[Line, ...]) -> None:
        """These lines meet in one operation: unrelated ones get extents that tell them apart."""
        self._neighbors.append(lines)

    def number(self, line: Line) -> None:
        """Coordinates of the line are used as numbers, so that its moves may not change."""
        self._numbers.add(line)

    def frame(self, line: Line) -> Frame:
        """Where a line lies on its axis."""
        path: list[Line] = []
        while self._frames[line].root != line:
            path.append(line)
            line = self._frames[line].root
        frame = Frame(line, 1, 0)
        for step in reversed(path):
            own = self._frames[step]
            frame = Frame(line, own.sign * frame.sign, own.sign * frame.shift + own.shift)
            self._frames[step] = frame
        return frame

    def pin(self, line: Line) -> None:
        """Keep all cells of a line's axis, and of the digits it is split into."""
        waiting = [line]
        while waiting:
            root = self.frame(waiting.pop()).root
            if root not in self._pinned:
                self._pinned.add(root)
                split = self._splits.get(root)
                waiting += [] if split is None else [split.high, split.low]

    def tie(
        self, one: Line, other: Line, start: int, end: int, *, sign: int = 1, shift: int = 0
    ) -> None:
        """`one = sign * other + shift`, where `other` is in `[start, end)`."""
        self._tie(one, other, start, end, sign, shift, 0)

    def _tie(
        self, one: Line, other: Line, start: int, end: int, sign: int, shift: int, depth: int
    ) -> None:
        a, b = self.frame(one), self.frame(other)
        # one = sign * other + shift, in terms of both axes: root_a = sigma * root_b + tau.
        sigma = a.sign * sign * b.sign
        tau = a.sign * (sign * b.shift + shift - a.shift)
        if a.root == b.root:
            if sigma != 1 or tau != 0:
                low, high = sorted((b.edge(start), b.edge(end)))
                self._copies.append((a.root, low, high, sigma, tau))
            return
        split = self._splits.pop(a.root, None)
        self._frames[a.root] = Frame(b.root, sigma, tau)
        if a.root in self._pinned:
            self.pin(b.root)
        if split is None:
            return
        if b.root in self._pinned:
            self.pin(split.high)
            self.pin(split.low)
        if sigma > 0:
            anchor = split.anchor - tau
        else:
            anchor = tau - split.anchor - (split.width - 1)
        digits = self._split(b.root, split.width, anchor, depth + 1)
        if digits is None:
            for line in (b.root, split.high, split.low):
                self.pin(line)
            return
        w = split.width
        reach = (1 << 62) if sigma > 0 else 0
        self._tie(split.high, digits[0], -reach, reach, sigma, 0, depth + 1)
        self._tie(split.low, digits[1], 0, w, sigma, 0 if sigma > 0 else w - 1, depth + 1)

    def split(self, line: Line, width: int, anchor: int) -> tuple[Line, Line] | None:
        """The digits of a line, `x = anchor + width * high + low`; None if others disagree."""
        frame = self.frame(line)
        if frame.sign > 0:
            return self._split(frame.root, width, anchor - frame.shift, 0)
        digits = self._split(frame.root, width, frame.shift - anchor - (width - 1), 0)
        if digits is None:
            return None
        # x = shift - root, and so x's digits count down where the axis' count up.
        high, low = self.line(), self.line()
        self._frames[high] = Frame(digits[0], -1, 0)
        self._frames[low] = Frame(digits[1], -1, width - 1)
        return high, low

    def _split(self, line: Line, width: int, anchor: int, depth: int) -> tuple[Line, Line] | None:
        frame = self.frame(line)
        if frame.sign < 0 or depth > _DEPTH:
            return None
        root, anchor = frame.root, anchor - frame.shift
        have = self._splits.get(root)
        if have is None:
            high, low = self.line(), self.line()
            self.extent(low, 0, width)
            self._splits[root] = _Split(width, anchor, high, low)
            if root in self._pinned:
                self.pin(high)
                self.pin(low)
            return high, low
        moved = anchor - have.anchor
        if moved % min(width, have.width):
            return None
        if width == have.width:
            high = self.line()
            self._frames[high] = Frame(have.high, 1, -(moved // width))
            return high, have.low
        if have.width % width == 0:
            finer = self._split(have.low, width, 0, depth + 1)
            if finer is None:
                return None
            high = self.line()
            ratio = have.width // width
            self._splits[high] = _Split(ratio, -(moved // width), have.high, finer[0])
            if root in self._pinned:
                self.pin(high)
            return high, finer[1]
        if width % have.width == 0:
            coarser = self._split(have.high, width // have.width, moved // have.width, depth + 1)
            if coarser is None:
                return None
            low = self.line()
            self.extent(low, 0, width)
            self._splits[low] = _Split(have.width, 0, coarser[1], have.low)
            if root in self._pinned:
                self.pin(low)
            return coarser[0], low
        return None

    def shorten(self, seed: int) -> Shorter:
        """Where every edge goes; `seed` picks one of several ways."""
        for root in self._cyclic():
            self.pin(root)
        folded = {
            self.frame(root).root
            for root, start, end, sign, shift in self._copies
            if not Copy(start, end, sign, shift).is_halo
        }
        for line in self._numbers:
            if not folded.isdisjoint(self._parts(line)):
                self.pin(line)
        axes: dict[Line, Axis] = {}
        spread = _Spread(self, axes)
        for line, at in self._edges:
            spread.edge(line, at)
        for line, start, end in self._rigid:
            spread.rigid(line, start, end)
        for line, cuts in self._cuts:
            spread.cuts(line, cuts)
        for root, start, end, sign, shift in self._copies:
            spread.copy(root, start, end, sign, shift)
        for line, at in self._marks:
            spread.mark(line, at)
        for line, cells in self._distances:
            spread.distance(line, cells)
        neighbors = [
            tuple(sorted({leaf for line in lines for leaf in spread.leaves(line)}))
            for lines in self._neighbors
        ]
        return Shorter(self, choose_lengths(axes, neighbors, seed))

    def is_pinned(self, line: Line) -> bool:
        """Whether a line keeps all its cells."""
        return self.frame(line).root in self._pinned

    def digits(self, line: Line) -> _Split | None:
        """How a line's axis is split, None when it is not or keeps all its cells."""
        root = self.frame(line).root
        return None if root in self._pinned else self._splits.get(root)

    def _parts(self, line: Line) -> set[Line]:
        """The axis of a line, and all that it is split into."""
        found: set[Line] = set()
        waiting = [line]
        while waiting:
            root = self.frame(waiting.pop()).root
            if root not in found:
                found.add(root)
                split = self._splits.get(root)
                waiting += [] if split is None else [split.high, split.low]
        return found

    def _cyclic(self) -> set[Line]:
        """Axes that are digits of themselves: no shorter extent can be right for both."""
        found: set[Line] = set()
        done: set[Line] = set()
        for first in list(self._splits):
            path: list[Line] = []
            waiting = [(self.frame(first).root, False)]
            while waiting:
                root, leaving = waiting.pop()
                if leaving:
                    path.pop()
                    done.add(root)
                elif root in path:
                    found.update(path[path.index(root) :])
                elif root not in done:
                    path.append(root)
                    waiting.append((root, True))
                    split = self._splits.get(root)
                    if split is not None:
                        waiting += [(self.frame(x).root, False) for x in (split.high, split.low)]
        return found


@dataclass
class _Spread:
    """Brings edges and the like from lines to the axes that are not split further."""

    axes: Axes
    found: dict[Line, Axis]

    def _axis(self, root: Line) -> Axis:
        axis = self.found.get(root)
        if axis is None:
            axis = self.found[root] = Axis(pinned=self.axes.is_pinned(root))
        return axis

    def leaves(self, line: Line) -> list[Line]:
        split = self.axes.digits(line)
        if split is None:
            return [self.axes.frame(line).root]
        return self.leaves(split.high) + self.leaves(split.low)

    def edge(self, line: Line, at: int) -> None:
        frame, split = self.axes.frame(line), self.axes.digits(line)
        at = frame.edge(at)
        if split is None:
            self._axis(frame.root).edges.add(at)
            return
        high, low = divmod(at - split.anchor, split.width)
        self.edge(split.high, high)
        if low:
            self.rigid(split.high, high, high + 1)
            self.edge(split.low, low)

    def rigid(self, line: Line, start: int, end: int) -> None:
        frame, split = self.axes.frame(line), self.axes.digits(line)
        start, end = sorted((frame.edge(start), frame.edge(end)))
        if start == end:
            self.edge(frame.root, start)
            return
        if split is None:
            axis = self._axis(frame.root)
            axis.edges.update((start, end))
            axis.rigid.append((start, end))
            return
        first, begin = divmod(start - split.anchor, split.width)
        last, final = divmod(end - 1 - split.anchor, split.width)
        self.rigid(split.high, first, last + 1)
        if first == last:
            self.rigid(split.low, begin, final + 1)
        elif last == first + 1 and final + 1 < begin:
            self.rigid(split.low, begin, split.width)
            self.rigid(split.low, 0, final + 1)
        else:
            self.rigid(split.low, 0, split.width)

    def cuts(self, line: Line, cuts: tuple[int, ...]) -> None:
        frame, split = self.axes.frame(line), self.axes.digits(line)
        if split is None:
            self._axis(frame.root).grids.append(tuple(sorted(frame.edge(at) for at in cuts)))
        else:
            for at in cuts:
                self.edge(line, at)

    def copy(self, root: Line, start: int, end: int, sign: int, shift: int) -> None:
        """A relation of an axis with itself, found when `root` was one."""
        frame = self.axes.frame(root)
        # In the axis' own coordinates.
        start, end = sorted((frame.edge(start), frame.edge(end)))
        shift = frame.sign * (sign * frame.shift + shift - frame.shift)
        split = self.axes.digits(frame.root)
        if sign == 1 and shift == 0:
            return
        if split is None:
            self._axis(frame.root).copies.append(Copy(start, end, sign, shift))
        elif sign > 0 and shift % split.width == 0:
            high = (start - split.anchor) // split.width
            last = -((split.anchor - end) // split.width)
            self.copy(split.high, high, last, 1, shift // split.width)
        else:
            self._keep(frame.root)

    def _keep(self, line: Line) -> None:
        leaves = self.leaves(line)
        self.axes.pin(line)
        for leaf in leaves:
            self._axis(leaf).pinned = True

    def mark(self, line: Line, at: int) -> None:
        frame, split = self.axes.frame(line), self.axes.digits(line)
        if split is not None:
            self.edge(line, at)
            return
        # The border and the cell on either side of it: `<` and `<=` differ by one.
        axis, place = self._axis(frame.root), frame.edge(at)
        if axis.edges and min(axis.edges) <= place <= max(axis.edges):
            axis.edges.add(place)

    def distance(self, line: Line, cells: int) -> None:
        if self.axes.digits(line) is not None:
            self._keep(line)
            return
        axis = self._axis(self.axes.frame(line).root)
        if axis.edges and min(axis.edges) + cells <= max(axis.edges):
            axis.edges.add(min(axis.edges) + cells)


@dataclass
class Shorter:
    """Where the edges of every line go."""

    axes: Axes
    _places: dict[Line, dict[int, int]]

    def edge(self, line: Line, at: int) -> int:
        """The new coordinate of a line's edge; UnplacedError for a place that is no edge."""
        frame = self.axes.frame(line)
        place = self._root(frame.root, frame.edge(at))
        return place + frame.shift if frame.sign > 0 else frame.shift - place + 1

    def weight(self, line: Line, width: int) -> int:
        """How many cells of a line one step of its digits above `width` takes now."""
        root = self.axes.frame(line).root
        split = self.axes.digits(root)
        if self.axes.is_pinned(root) or width == 1:
            return width
        if split is None:
            raise UnplacedError(line)
        if split.width == width:
            return self._extent(split)
        if split.width % width == 0:
            return self.weight(split.low, width)
        return self._extent(split) * self.weight(split.high, width // split.width)

    def distance(self, line: Line, cells: int) -> int:
        """How far apart places are now that were `cells` apart, counted from the axis' start."""
        root = self.axes.frame(line).root
        places = self._places.get(root)
        if self.axes.is_pinned(root) or cells == 0:
            return cells
        if places is None:
            raise UnplacedError(line)
        first = min(places)
        return self._root(root, first + cells) - places[first]

    def _extent(self, split: _Split) -> int:
        return self.edge(split.low, split.width) - self.edge(split.low, 0)

    def _root(self, root: Line, at: int) -> int:
        if self.axes.is_pinned(root):
            return at
        split = self.axes.digits(root)
        if split is not None:
            high, low = divmod(at - split.anchor, split.width)
            within = self.edge(split.low, low) - self.edge(split.low, 0) if low else 0
            return split.anchor + self._extent(split) * self.edge(split.high, high) + within
        places = self._places[root]
        if at in places:
            return places[at]
        first, last = min(places), max(places)
        if at < first:
            return places[first] - (first - at)
        if at > last:
            return places[last] + (at - last)
        raise UnplacedError(root)
