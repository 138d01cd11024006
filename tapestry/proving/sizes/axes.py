"""Axes: integer lines that dimensions lie on, and what ties them.

Every dimension of a tensor or an index space is a *line* with its own coordinates. Lines are tied
by `x = sign * y + shift` (then they share one axis) or split into digits, `x = anchor + w * hi +
lo` (a reshape, or a row like `64 * h + d`). Known places of a line are *edges*, the gaps before
which cells begin: ends of ranges, cuts, the border of a mask. A *rigid* stretch (a halo) keeps its
cells when the axis gets shorter, which `shortening` does; a *pinned* axis keeps all.

    >>> axes = Axes()
    >>> flat, column = axes.line(), axes.line()
    >>> high, low = axes.split(flat, 64, 0)
    >>> axes.tie(low, column, 0, 64)
    >>> axes.frame(low).root == axes.frame(column).root
    True
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
class Split:
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
    _splits: dict[Line, Split] = field(default_factory=dict[Line, Split])
    copies: list[tuple[Line, int, int, int, int]] = field(
        default_factory=list[tuple[Line, int, int, int, int]]
    )
    edges: list[tuple[Line, int]] = field(default_factory=list[tuple[Line, int]])
    marks: list[tuple[Line, int]] = field(default_factory=list[tuple[Line, int]])
    distances: list[tuple[Line, int]] = field(default_factory=list[tuple[Line, int]])
    stiff: list[tuple[Line, int, int]] = field(default_factory=list[tuple[Line, int, int]])
    cuts: list[tuple[Line, tuple[int, ...]]] = field(
        default_factory=list[tuple[Line, tuple[int, ...]]]
    )
    counted: set[Line] = field(default_factory=set[Line])
    meetings: list[tuple[Line, ...]] = field(default_factory=list[tuple[Line, ...]])

    def line(self) -> Line:
        """A new line, on an axis of its own."""
        self._frames.append(Frame(len(self._frames), 1, 0))
        return len(self._frames) - 1

    def extent(self, line: Line, start: int, end: int) -> None:
        """Cells `[start, end)` of a line are used."""
        self.edges += [(line, start), (line, end)]

    def mark(self, line: Line, at: int) -> None:
        """A border at `at` matters where it lies inside the axis (a mask compares with it)."""
        self.marks.append((line, at))

    def distance(self, line: Line, cells: int) -> None:
        """Places that far apart on the axis are told apart (a mask compares two coordinates)."""
        self.distances.append((line, cells))

    def rigid(self, line: Line, start: int, end: int) -> None:
        """Every cell of `[start, end)` stays: a halo, a window, one fixed cell."""
        self.stiff.append((line, start, end))

    def cut(self, line: Line, cuts: tuple[int, ...]) -> None:
        """A grid cuts the line there; of many tiles a few are kept."""
        self.cuts.append((line, cuts))

    def together(self, lines: tuple[Line, ...]) -> None:
        """These lines meet in one operation: unrelated ones get extents that tell them apart."""
        self.meetings.append(lines)

    def number(self, line: Line) -> None:
        """Coordinates of the line are used as numbers, so that its moves may not change."""
        self.counted.add(line)

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
                self.copies.append((a.root, low, high, sigma, tau))
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
            self._splits[root] = Split(width, anchor, high, low)
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
            self._splits[high] = Split(ratio, -(moved // width), have.high, finer[0])
            if root in self._pinned:
                self.pin(high)
            return high, finer[1]
        if width % have.width == 0:
            coarser = self._split(have.high, width // have.width, moved // have.width, depth + 1)
            if coarser is None:
                return None
            low = self.line()
            self.extent(low, 0, width)
            self._splits[low] = Split(have.width, 0, coarser[1], have.low)
            if root in self._pinned:
                self.pin(low)
            return coarser[0], low
        return None

    def is_pinned(self, line: Line) -> bool:
        """Whether a line keeps all its cells."""
        return self.frame(line).root in self._pinned

    def digits(self, line: Line) -> Split | None:
        """How a line's axis is split, None when it is not or keeps all its cells."""
        root = self.frame(line).root
        return None if root in self._pinned else self._splits.get(root)

    def parts(self, line: Line) -> set[Line]:
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

    def cyclic(self) -> set[Line]:
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
