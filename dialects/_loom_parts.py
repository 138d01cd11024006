"""States whose parts are stored each over its own dimensions.

    %m, %o = loom.application @attend over <[0, 0, 0] : [4, 8, 16]> partial (...)
               : (...) -> (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0, 0] : [4, 16], f32>)

A part is stored over all kept dimensions, or over those that it varies along (`part_axes` of
`tapestry.algebra.parts`). Then it stands for everything that is merged along the others: a state
that covers less of them stores its parts over all kept dimensions. The rank tells the two apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from tapestry.dialects._loom_types import tensor_type
from tapestry.issues import Problem
from tapestry.zspace import Range

if TYPE_CHECKING:
    from tapestry.dialects import loom

Axes = tuple[int, ...]
"""Some of the kept dimensions, counted among themselves, in order."""


def stored_axes(part: Range, own: Axes, rank: int) -> Axes:
    """The kept dimensions that a stored part of a state has, out of `rank`."""
    return own if part.rank < rank else tuple(range(rank))


def state_boxes(op: loom.MergeOp, own: Sequence[Axes]) -> list[Range]:
    """Per state that a verified merge merges, the box of the kept dimensions that it stands for."""
    ranges = [tensor_type(value).box for value in op.states]
    count = len(own)
    return [
        state_box(ranges[first : first + count], own, op.index)
        for first in range(0, len(ranges), count)
    ]


def state_box(parts: Sequence[Range], own: Sequence[Axes], over: Range) -> Range:
    """The box that the stored parts of a state make: all of `over` where none of them says less.

    >>> box = state_box([Range.of((4,)), Range.of((4, 16))], [(0,), (0, 1)], Range.of((8, 16)))
    >>> print(box)
    [0, 0] : [4, 16]
    """
    start, end = list(over.start), list(over.end)
    for part, axes in reversed(list(zip(parts, own, strict=True))):
        for place, axis in enumerate(stored_axes(part, axes, over.rank)):
            start[axis], end[axis] = part.start[place], part.end[place]
    return Range(tuple(start), tuple(end))


def stored_ranges(kept: Range, outs: Sequence[SSAValue], own: Sequence[Axes]) -> list[Range]:
    """What the parts of a state over `kept` must be stored on, by the rank that each one has.

    Where `kept` has no points, there is nothing that a part without some dimensions would hold.
    """
    ranks = [tensor_type(value).box.rank for value in outs]
    return [
        kept.select(axes) if rank < kept.rank and not kept.is_empty else kept
        for rank, axes in zip(ranks, own, strict=False)
    ]


def state_problems(
    first: int,
    parts: Sequence[Range],
    own: Sequence[Axes],
    made: Sequence[Range | None],
    over: Range,
) -> list[Problem]:
    """Rules of the ranges of one state's parts, numbered from `first`, in a merge over `over`.

    `made` is the box of the kept dimensions that each part was folded over, where that is known.
    """
    problems: list[Problem] = []
    axes = [stored_axes(part, mine, over.rank) for part, mine in zip(parts, own, strict=True)]
    for place, (part, along) in enumerate(zip(parts, axes, strict=True)):
        whole = over.select(along)
        if part.rank != whole.rank or not whole.contains_range(part):
            message = f"state {first + place} is on <{part}>, outside <{whole}>"
            problems.append(Problem("out-of-bounds", message, state=part, over=whole))
    if problems:
        return problems
    box = state_box(parts, own, over)
    for place, (part, along) in enumerate(zip(parts, axes, strict=True)):
        if part != box.select(along):
            other = next(n for n in range(place) if _disagree(part, along, parts[n], axes[n]))
            message = (
                f"state {first + place} is on <{part}>, but state {first + other}, a part of the "
                f"same application's result, is on <{parts[other]}>"
            )
            problems.append(Problem("state-range", message, state=part, over=over))
            continue
        folded = box if made[place] is None else made[place]
        assert folded is not None
        missing = [axis for axis in range(over.rank) if axis not in along]
        if folded.select(missing) != over.select(missing):
            message = (
                f"state {first + place} is on <{part}> and so stands for all of <{over}>, but was "
                f"folded over <{folded}>; store it over all kept dimensions"
            )
            problems.append(Problem("part-cover", message, state=part, over=over, folded=folded))
    return problems


def _disagree(part: Range, axes: Axes, other: Range, others: Axes) -> bool:
    """Whether two parts are on different ranges of a dimension that both have."""
    common = [axis for axis in axes if axis in others]
    mine = part.select([axes.index(axis) for axis in common])
    return mine != other.select([others.index(axis) for axis in common])
