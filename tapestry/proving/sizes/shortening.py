"""Axes made shorter: where every edge goes.

Shortening an axis keeps every edge, in order, and takes cells out of the gaps between them.

    >>> axes = Axes()
    >>> row, column, flat = axes.line(), axes.line(), axes.line()
    >>> for line, extent in ((row, 12), (column, 64), (flat, 768)):
    ...     axes.extent(line, 0, extent)
    >>> high, low = axes.split(flat, 64, 0)
    >>> axes.tie(high, row, 0, 12), axes.tie(low, column, 0, 64)
    (None, None)
    >>> axes.together((row, column))
    >>> shorter = shorten(axes, seed=0)
    >>> shorter.edge(row, 12), shorter.edge(column, 64), shorter.edge(flat, 768)
    (5, 6, 30)
    >>> shorter.weight(flat, 64)
    6
"""

from __future__ import annotations

from dataclasses import dataclass

from tapestry.proving.sizes.axes import Axes, Line, Split, UnplacedError
from tapestry.proving.sizes.lengths import Axis, Copy, choose_lengths


def shorten(axes: Axes, seed: int) -> Shorter:
    """Where every edge goes; `seed` picks one of several ways."""
    for root in axes.cyclic():
        axes.pin(root)
    folded = {
        axes.frame(root).root
        for root, start, end, sign, shift in axes.copies
        if not Copy(start, end, sign, shift).is_halo
    }
    for line in axes.counted:
        if not folded.isdisjoint(axes.parts(line)):
            axes.pin(line)
    found: dict[Line, Axis] = {}
    spread = _Spread(axes, found)
    for line, at in axes.edges:
        spread.edge(line, at)
    for line, start, end in axes.stiff:
        spread.rigid(line, start, end)
    for line, cuts in axes.cuts:
        spread.cuts(line, cuts)
    for root, start, end, sign, shift in axes.copies:
        spread.copy(root, start, end, sign, shift)
    for line, at in axes.marks:
        spread.mark(line, at)
    for line, cells in axes.distances:
        spread.distance(line, cells)
    neighbors = [
        tuple(sorted({leaf for line in lines for leaf in spread.leaves(line)}))
        for lines in axes.meetings
    ]
    return Shorter(axes, choose_lengths(found, neighbors, seed))


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

    def _extent(self, split: Split) -> int:
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
