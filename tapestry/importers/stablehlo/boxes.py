"""Coordinates as tensors, and what boxes leave of a tensor.

>>> uncovered((4, 6), [((1, 0), (2, 6))])
[((0, 0), (1, 6)), ((3, 0), (1, 6))]
"""

from __future__ import annotations

from collections.abc import Iterable

from tapestry.algebra.dtypes import body_type
from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType
from tapestry.importers.bodies import Body
from tapestry.importers.operations import map_operation
from tapestry.importers.stablehlo.values import Affine

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""Where a box starts, and its shape."""


def uncovered(shape: tuple[int, ...], boxes: Iterable[Box]) -> list[Box]:
    """Boxes, apart from one another, of all that is outside the given ones."""
    rest: list[Box] = [((0,) * len(shape), shape)] if all(shape) else []
    for box in boxes:
        rest = [piece for whole in rest for piece in _without(whole, box)]
    return rest


def _without(whole: Box, box: Box) -> list[Box]:
    """What one box has outside another: along each dimension, a slab before and one after it."""
    (start, shape), (other, size) = whole, box
    low = [max(s, o) for s, o in zip(start, other, strict=True)]
    ends = zip(start, shape, other, size, strict=True)
    high = [min(s + n, o + m) for s, n, o, m in ends]
    if any(a >= b for a, b in zip(low, high, strict=True)):
        return [whole]
    pieces: list[Box] = []
    first, extent = list(start), list(shape)
    for dim, (a, b) in enumerate(zip(low, high, strict=True)):
        for begin, end in ((first[dim], a), (b, first[dim] + extent[dim])):
            if begin < end:
                at, sizes = first.copy(), extent.copy()
                at[dim], sizes[dim] = begin, end - begin
                pieces.append((tuple(at), tuple(sizes)))
        first[dim], extent[dim] = a, b - a
    return pieces


def overlap(one: Box, other: Box) -> bool:
    """Whether two boxes have a cell in common."""
    return all(
        a < b + m and b < a + n
        for a, n, b, m in zip(one[0], one[1], other[0], other[1], strict=True)
    )


def coordinates(function: Affine, kind: TensorType) -> loom.OperationOp:
    """The tensor whose cells are an affine function of their coordinates."""
    body = Body([])
    total = body.affine(function.coefficients, function.constant)
    found = body.narrowed(total, body_type(kind.element_type))
    return map_operation("iota", kind, [], body.region(found))
