"""How many cells the parts of a partition select, without visiting the parts of a grid.

    >>> rows = Projection.of([[1, 0]])
    >>> halves = Partition.balanced(Range.of((2**40, 2**40)), (2, 2**10))
    >>> selected_cells(rows, halves) == 2**40 * 2**10
    True

How many cells a box selects depends on its extents alone. Rows of a projection that share no index
dimension are independent, so their counts multiply, and a grid has few different extents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import reduce
from itertools import pairwise, product
from math import prod

from tapestry.zspace.partition import Partition
from tapestry.zspace.projection import Projection
from tapestry.zspace.ranges import Range


def selected_cells(
    projection: Projection, partition: Partition, within: Range | None = None
) -> int:
    """The sizes of the boxes that a projection selects of each part, added up.

    A cell that several parts select counts for each. A part without points selects nothing. Cells
    outside `within`, where it is given, do not count.
    """
    if partition.cuts is None:
        boxes = Counter(_placed(part, within) for part in partition.ranges() if not part.is_empty)
        return sum(count * _cells(projection, box, within) for box, count in boxes.items())
    sides = [
        Counter(_placed(Range((a,), (b,)), within) for a, b in pairwise(cuts))
        for cuts in partition.cuts
    ]
    if any(side.is_empty for counts in sides for side in counts):
        return 0
    groups = independent_rows(projection)
    read = {dim for _, dims in groups for dim in dims}
    total = prod(counts.total() for dim, counts in enumerate(sides) if dim not in read)
    for rows, dims in groups:
        part = projection.select_outputs(rows).select_inputs(dims)
        inside = None if within is None else within.select(rows)
        total *= sum(
            prod(count for _, count in combination)
            * _cells(part, _product(side for side, _ in combination), inside)
            for combination in product(*(sides[dim].items() for dim in dims))
        )
    return total


def _placed(part: Range, within: Range | None) -> Range:
    """A part as far as its size depends on it: where it is matters only to what lies inside."""
    return Range.of(part.shape) if within is None else part


def _product(sides: Iterable[Range]) -> Range:
    return reduce(Range.product, sides, Range((), ()))


def _cells(projection: Projection, box: Range, within: Range | None) -> int:
    selected = projection.apply_range(box)
    return (selected if within is None else selected.clip(within)).size


def independent_rows(projection: Projection) -> list[tuple[list[int], list[int]]]:
    """Rows in groups that share no index dimension, each with the dimensions that it reads."""
    groups: list[tuple[list[int], list[int]]] = []
    for row, terms in enumerate(projection.map.terms):
        rows, dims = [row], {dim for _, dim in terms}
        apart: list[tuple[list[int], list[int]]] = []
        for group in groups:
            if dims.isdisjoint(group[1]):
                apart.append(group)
            else:
                rows, dims = [*group[0], *rows], dims.union(group[1])
        groups = [*apart, (rows, sorted(dims))]
    return groups
