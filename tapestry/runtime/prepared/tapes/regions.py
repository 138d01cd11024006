"""Boxes of an index space in which what may be read outside of a tensor is inside, or is not.

    regions = Regions.of(index, reads, dims=(0, 1))
    regions.boxes                   # of two halves that are joined along dimension 1: each of them
    regions.kind(part)              # for each such read, whether a part of a box reads inside

Where all points of a part read inside, they read a slice; where none does, the fill. So what is
padded, or joined, is never copied to be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import prod

from tapestry.dialects import loom
from tapestry.dialects._loom_reads import Read
from tapestry.dialects.loom import tensor_type
from tapestry.runtime.prepared.tapes.pieces import PlacedRead, replaced_reads
from tapestry.zspace import Projection, Range

_MOST = 27
"""Boxes up to which it pays to have parts of each: two ends and a middle along three dimensions."""


@dataclass(frozen=True)
class Regions:
    """The boxes, one after another, and the points that are inside for each read that has both.

    In each box, what is `placed` is read at places that are affine: so blocks that are `replaced`
    are not read.
    """

    boxes: tuple[Range, ...]
    inside: Mapping[Read, Range]
    placed: Mapping[loom.ReadOp, PlacedRead] = field(default_factory=dict[loom.ReadOp, PlacedRead])
    replaced: frozenset[Read] = frozenset()

    @staticmethod
    def of(
        index: Range,
        reads: Iterable[Read],
        dims: Sequence[int],
        placed: Mapping[loom.ReadOp, PlacedRead] | None = None,
    ) -> Regions:
        """Those of reads that are outside before or after places along some of `dims` alone.

        So are those between pieces of what is `placed`, or none of it is.
        """
        bounds = [{low, high} for low, high in index.sides]
        axes = [axis for one in (placed or {}).values() for axis in one.axes]
        cut = all(axis.dim in dims for axis in axes if len(axis.starts) > 1)
        for axis in axes:
            bounds[axis.dim].update(axis.starts)
        if axes and not (cut and prod(len(own) - 1 for own in bounds) <= _MOST):
            return Regions.of(index, reads, dims)
        inside: dict[Read, Range] = {}
        for read in reads:
            box = None if read.fill is None else tensor_type(read.value).box
            own = None if box is None else inside_box(read.projection, box, index)
            if own is None or own == index:
                continue
            ends = [set(side) for side in own.sides]
            if any(ends[d] != set(index.sides[d]) for d in range(index.rank) if d not in dims):
                continue
            inside[read] = own
            bounds = [have | new for have, new in zip(bounds, ends, strict=True)]
        if not (inside or placed) or prod(len(own) - 1 for own in bounds) > _MOST:
            return Regions((index,), {})
        sides = product(*(pairwise(sorted(own)) for own in bounds))
        boxes = (Range(*zip(*side, strict=True)) for side in sides)
        placed = placed or {}
        return Regions(tuple(boxes), inside, placed, frozenset(replaced_reads(placed)))

    def kind(self, part: Range) -> tuple[int, ...]:
        """Whether a part of one of the boxes is inside, for each read, and on which pieces."""
        inside = (int(box.contains_range(part)) for box in self.inside.values())
        pieces = (piece for one in self.placed.values() for piece in one.pieces(part))
        return *inside, *pieces


def inside_box(projection: Projection, box: Range, index: Range) -> Range | None:
    """The points of an index space that read inside of a tensor over `box`.

    None where these are no box of points, or none at all, or where blocks are read.

    >>> inside_box(Projection.of([[1]], offset=[-2]), Range.of((4,)), Range.of((8,)))
    Range(start=(2,), end=(6,))
    """
    if not projection.is_unit:
        return None
    sides = list(index.sides)
    rows = zip(projection.map.terms, projection.map.offset, box.start, box.end, strict=True)
    for terms, offset, start, end in rows:
        if len(terms) > 1 or (not terms and not start <= offset < end):
            return None
        for factor, dim in terms:
            first, last = start - offset, end - 1 - offset
            if factor < 0:
                first, last, factor = -last, -first, -factor
            low, high = sides[dim]
            sides[dim] = max(low, -(-first // factor)), min(high, last // factor + 1)
            if sides[dim][0] >= sides[dim][1]:
                return None
    return index.with_sides(dict(enumerate(sides)))
