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
from itertools import pairwise, product
from math import prod

from tapestry.zspace.partition import Partition
from tapestry.zspace.points import Point
from tapestry.zspace.projection import Projection
from tapestry.zspace.ranges import Range


def selected_cells(projection: Projection, partition: Partition) -> int:
    """The sizes of the boxes that a projection selects of each part, added up.

    A cell that several parts select counts for each. A part without points selects nothing.
    """
    if partition.cuts is None:
        shapes = Counter(part.shape for part in partition.ranges() if not part.is_empty)
        return sum(count * _cells(projection, shape) for shape, count in shapes.items())
    extents = [Counter(b - a for a, b in pairwise(cuts)) for cuts in partition.cuts]
    if any(0 in counts for counts in extents):
        return 0
    groups = _independent_rows(projection)
    read = {dim for _, dims in groups for dim in dims}
    total = prod(counts.total() for dim, counts in enumerate(extents) if dim not in read)
    for rows, dims in groups:
        part = projection.select_outputs(rows).select_inputs(dims)
        total *= sum(
            prod(count for _, count in combination)
            * _cells(part, tuple(extent for extent, _ in combination))
            for combination in product(*(extents[dim].items() for dim in dims))
        )
    return total


def _cells(projection: Projection, shape: Point) -> int:
    return projection.apply_range(Range.of(shape)).size


def _independent_rows(projection: Projection) -> list[tuple[list[int], list[int]]]:
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
