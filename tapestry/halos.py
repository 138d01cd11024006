"""Halos: what shards of windows read beyond their own part of a tensor.

    >>> from tapestry.frontend import parse_text
    >>> module = parse_text('''
    ... !x = !loom.tensor<[0] : [8], f32>
    ... func.func @main(%x: !x) -> !x {
    ...   %y = loom.operation @window over <[0, 0] : [8, 3]> [map, fold] by @add
    ...          ins(%x : (i, k) -> (i + k - 1) clip 0.0 : f32) outs((i) -> (i))
    ...          shards <grid [[0, 4, 8], [0, 3]]>
    ...          wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !x
    ...   func.return %y : !x
    ... }''')
    >>> (window,) = (op for op in module.walk() if isinstance(op, Splittable))
    >>> [str(halo) for halo in halos(window)]
    ['1 cell below and 1 above its own along dimension 0 of input 0']

A tensor is its readers' in equal measure: where the boxes of two shards overlap, it is cut in the
middle of what both read. That cut is also where `loom-propagate` splits whoever writes the tensor,
so a halo is what moves then. Grids only; what each row of a projection says is independent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tapestry.dialects.loom import tensor_type
from tapestry.movement import Splittable, reads
from tapestry.zspace import Interval, Partition, Projection, Range


@dataclass(frozen=True)
class Halo:
    """The most cells that a shard reads below and above its own, along one dimension of an input.

    `place` counts the operands, of which an operation may read one several times.
    """

    place: int
    dim: int
    below: int
    above: int

    def __str__(self) -> str:
        count = self.below or self.above
        cells = f"{count:,} cell{'' if count == 1 else 's'}"
        both = f"{cells} below and {self.above:,} above" if self.below and self.above else None
        where = both or f"{cells} {'below' if self.below else 'above'}"
        return f"{where} its own along dimension {self.dim} of input {self.place}"


def halos(op: Splittable) -> tuple[Halo, ...]:
    """What the shards of an operation read beyond their own, each read by itself; largest first."""
    found: dict[Halo, None] = {}
    places = {value: place for place, value in reversed(list(enumerate(op.operands)))}
    for value, projection, clipped in reads(op) if op.partition is not None else ():
        box = tensor_type(value).box
        for row, sides in cut_sides(op.partition, projection):
            if clipped:
                sides = [_within(side, box, row) for side in sides]
            cuts = middles(sides)
            inner = zip(cuts, pairwise(sides), strict=True)
            reach = [(cut - b[0], a[1] - cut) for cut, (a, b) in inner]
            below = max((max(0, low) for low, _ in reach), default=0)
            above = max((max(0, high) for _, high in reach), default=0)
            if below or above:
                found[Halo(places[value], row, below, above)] = None
    return tuple(sorted(found, key=lambda halo: -halo.below - halo.above))


def _within(side: Interval, box: Range, row: int) -> Interval:
    low, high = box.start[row], box.end[row]
    return max(low, min(side[0], high)), max(low, min(side[1], high))


def cut_sides(
    partition: Partition | None, projection: Projection
) -> Iterator[tuple[int, list[Interval]]]:
    """Per tensor dimension that a grid cuts, the intervals that its parts select, in order.

    An index dimension that several rows hold, or a row that holds several that are cut, says
    nothing about where the tensor is cut.
    """
    if partition is None or partition.cuts is None:
        return
    split = {dim for dim, cuts in enumerate(partition.cuts) if len(cuts) > 2}
    rows = [{dim for _, dim in terms} & split for terms in projection.map.terms]
    for row, dims in enumerate(rows):
        if len(dims) != 1 or sum(not dims.isdisjoint(other) for other in rows) > 1:
            continue
        (dim,) = dims
        part = projection.select_outputs([row])
        whole = Range.of_sides((cuts[0], cuts[-1]) for cuts in partition.cuts)
        sides: list[Interval] = []
        for side in pairwise(partition.cuts[dim]):
            sides += part.apply_range(whole.with_sides({dim: side})).sides
        yield row, sorted(sides)


def middles(sides: list[Interval]) -> list[int]:
    """Where a tensor is cut between parts that select these: in the middle of what both select."""
    return [(a[1] + b[0]) // 2 for a, b in pairwise(sides)]
