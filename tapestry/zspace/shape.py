"""Shapes: how many cells an array has along each dimension.

>>> broadcast((2, 10, 1), (1, 3)), strides((2, 1, 3))
((2, 10, 3), (3, 0, 1))
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from tapestry.zspace.errors import BroadcastMismatchError, InvalidArgumentError
from tapestry.zspace.points import Point, as_point, format_point


def broadcast(*shapes: Sequence[int]) -> Point:
    """The shape that `shapes` broadcast to by NumPy's rule: aligned at the end, 1 stretches."""
    for shape in shapes:
        _require_sizes(shape)
    result: list[int] = []
    for sizes in zip_longest(*(reversed(shape) for shape in shapes)):
        wanted, *others = (size for size in sizes if size is not None)
        for size in others:
            if size in (wanted, 1):
                continue
            if wanted != 1:
                texts = " and ".join(map(format_point, shapes))
                raise BroadcastMismatchError(
                    f"shapes {texts} do not broadcast: dimension {-len(result) - 1} has sizes "
                    f"{wanted} and {size}, which must be equal or 1"
                )
            wanted = size
        result.append(wanted)
    return as_point(reversed(result))


def strides(shape: Sequence[int]) -> Point:
    """Row-major strides in cells; a dimension of size 0 or 1 never moves, so it has stride 0."""
    _require_sizes(shape)
    result: list[int] = []
    step = 1
    for size in reversed(as_point(shape)):
        result.append(0 if size <= 1 else step)
        step *= max(size, 1)
    return tuple(reversed(result))


def _require_sizes(shape: Sequence[int]) -> None:
    if any(size < 0 for size in shape):
        raise InvalidArgumentError(f"shape {format_point(shape)} has a negative size")
