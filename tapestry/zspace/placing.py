"""Do placed boxes tile a range exactly? Each box lands where an affine map puts its points.

Even and odd cells of a line, without visiting one of its 2**41 cells:

    >>> half, line = Range.of((2**40,)), Range.of((2**41,))
    >>> even, odd = AffineMap.of([[2]]), AffineMap.of([[2]], [1])
    >>> check_placed([(even, half), (odd, half)], line)
    >>> check_placed([(even, half), (even, half)], line)
    Traceback (most recent call last):
        ...
    tapestry.zspace.errors.InvalidArgumentError: parts 0 and 1 overlap: both hold [0]

Points tile a range when each lands inside it, no two land on one cell, and there are as many as the
range has cells. Whether two land on one cell is a question about integer points of a box under
linear equations, which `systems` decides exactly: for strides it is the question whether residue
classes meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from tapestry.zspace import systems
from tapestry.zspace.affine import AffineMap
from tapestry.zspace.errors import DimMismatchError, IndexOutOfRangeError, InvalidArgumentError
from tapestry.zspace.matrices import Matrix
from tapestry.zspace.points import Point, format_point
from tapestry.zspace.ranges import Range, unchecked
from tapestry.zspace.tiling import int64s

Placed: TypeAlias = tuple[AffineMap, Range]
"""Where the points of a box go."""


def check_placed(placed: Sequence[Placed], of: Range) -> None:
    """Raise unless every cell of `of` is the image of exactly one point, and no image is outside.

    DimMismatchError for a wrong rank, IndexOutOfRangeError for an image outside,
    InvalidArgumentError for an overlap or a gap. n parts whose images lie apart cost O(n^2) on
    arrays; only those whose bounding boxes meet are looked at one by one.
    """
    images: list[Range] = []
    for number, (mapping, box) in enumerate(placed):
        if (mapping.inputs, mapping.outputs) != (box.rank, of.rank):
            raise DimMismatchError(
                f"part {number} of rank {box.rank} is placed by {mapping} in {of}, of rank "
                f"{of.rank}"
            )
        image = mapping.image(box)
        if not box.is_empty and not of.contains_range(image):
            raise IndexOutOfRangeError(
                f"part {number} is placed on {image}, which reaches outside {of}"
            )
        if not mapping.is_injective_on(box):
            raise InvalidArgumentError(f"part {number} is placed on some cell more than once")
        images.append(image)
    for one, two in _meeting(images, of.rank):
        if _meet(placed[one], placed[two]):
            cell = _common_cell(placed[one], placed[two])
            where = "" if cell is None else f": both hold {format_point(cell)}"
            raise InvalidArgumentError(f"parts {one} and {two} overlap{where}")
    covered = sum(box.size for _, box in placed)
    if covered != of.size:
        cell = _uncovered_cell(placed, of)
        where = "" if cell is None else f"; {format_point(cell)} is in none of them"
        raise InvalidArgumentError(
            f"the parts do not cover {of}: they have {covered} of its {of.size} cells{where}"
        )


def _meeting(images: Sequence[Range], rank: int) -> Iterator[tuple[int, int]]:
    """The pairs of images whose bounding boxes share a cell."""
    shape = (len(images), rank)
    start = int64s([image.start for image in images], shape)
    end = int64s([image.end for image in images], shape)
    full = np.flatnonzero(np.all(start < end, axis=1))
    start, end = start[full], end[full]
    for one in range(len(full)):
        meets = np.all((start[one + 1 :] < end[one]) & (start[one] < end[one + 1 :]), axis=1)
        for offset in np.flatnonzero(meets).tolist():
            yield int(full[one]), int(full[one + 1 + offset])


def _meet(one: Placed, two: Placed) -> bool:
    """Whether some cell is the image of a point of each."""
    return systems.has_solution(*_difference(one, two))


def _common_cell(one: Placed, two: Placed) -> Point | None:
    """A cell that both hold, where the least point of the first that may be it is one."""
    mapping, box = one
    found = systems.solution_box(*_difference(one, two))
    if found is None:
        return None
    first = found[0][: box.rank]
    point = unchecked(first, tuple(x + 1 for x in first))
    return mapping.apply(first) if _meet((mapping, point), two) else None


def _difference(
    one: Placed, two: Placed
) -> tuple[Matrix, Sequence[int], Sequence[int], Point, Point]:
    """The system of the points `(x, y)` of both boxes that land on one cell."""
    (first, a), (second, b) = one, two
    rows = zip(first.matrix, second.matrix, strict=True)
    matrix = tuple((*row, *(-c for c in other)) for row, other in rows)
    gap = [y - x for x, y in zip(first.offset, second.offset, strict=True)]
    return matrix, gap, gap, (*a.start, *b.start), tuple(x - 1 for x in (*a.end, *b.end))


def _uncovered_cell(placed: Sequence[Placed], of: Range) -> Point | None:
    """A cell of `of` that no part holds; None when some row of a placement mixes dimensions.

    Parts that do not overlap leave a gap in a range exactly when they hold fewer cells of it than
    it has, so the range is halved until one cell is left.
    """
    if any(len(terms) > 1 for mapping, _ in placed for terms in mapping.terms):
        return None
    while of.size > 1:
        dim = max(range(of.rank), key=lambda d: of.shape[d])
        for half in of.split(dim, -(-of.shape[dim] // 2)):
            if sum(mapping.preimage(half, box).size for mapping, box in placed) < half.size:
                of = half
                break
        else:
            return None
    return of.start
