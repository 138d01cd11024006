"""States whose parts are stored each over its own dimensions.

    loom.kernel @attend [map, fold, map] by @scaled ... parts((i, d) -> (i), (i, d) -> (i, d))
    %m, %o = loom.application @attend over <[0, 0, 0] : [4, 8, 16]> partial (...)
               : (...) -> (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0, 0] : [4, 16], f32>)

A part is stored over all kept dimensions, or over those that its kernel names, which are all that
it varies along (`varying_axes` of `tapestry.algebra.parts`). Then it stands for everything that is
merged along the others: a state that covers less of them stores its parts over all kept dimensions.
The rank tells the two apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from tapestry.dialects._loom_types import tensor_type
from tapestry.dialects._loom_writes import left_out
from tapestry.issues import Problem
from tapestry.zspace import Projection, Range

if TYPE_CHECKING:
    from tapestry.dialects import loom

Axes = tuple[int, ...]
"""Some of the kept dimensions, counted among themselves, in order."""


def declared_axes(projections: Sequence[Projection], kept: int) -> tuple[Axes | None, ...]:
    """The kept dimensions, out of `kept`, that projections of parts name; None for any other one.

    >>> declared_axes([Projection.of([[1, 0]]), Projection.of([[1, 1]])], 2)
    ((0,), None)
    """
    every = Projection.identity(kept)
    found: list[Axes | None] = []
    for projection in projections:
        dims = [dim for terms in projection.map.terms for _, dim in terms]
        named = projection.inputs == kept and sorted(set(dims)) == dims
        found.append(tuple(dims) if named and projection == every.select_outputs(dims) else None)
    return tuple(found)


def part_problems(op: loom.KernelOp) -> list[Problem]:
    """The dimensions that parts are stored over are kept ones, and all that they vary along."""
    from tapestry.algebra.parts import varying_axes

    if op.part_projections is None:
        return []
    projections = [attribute.data for attribute in op.part_projections]
    varying, kept = varying_axes(op), len(op.kept_dims)
    if len(projections) != len(varying) or op.monoid_name is None:
        parts = 0 if op.monoid_name is None else len(varying)
        message = f"{len(projections)} projections of parts, but the state has {parts}"
        return [Problem("part-projection", message, projections=projections)]
    problems: list[Problem] = []
    declared = declared_axes(projections, kept)
    for part, (axes, along) in enumerate(zip(declared, varying, strict=True)):
        needed = Projection.identity(kept).select_outputs(along)
        if axes is None:
            message = (
                f"part {part} is stored over {projections[part]}; its rows must be kept "
                f"dimensions, in order, {needed} for example"
            )
        elif not set(axes).issuperset(along):
            message = f"part {part} is stored over {projections[part]}, but it varies over {needed}"
        else:
            continue
        problems.append(Problem("part-projection", message, projection=projections[part]))
    return problems


def varying_outputs(
    op: loom.BlockSignature, kept: Range, *, sound: bool = True
) -> tuple[Axes, ...] | None:
    """Per output, the dimensions that its value varies along, out of those that run over `kept`.

    None where that is no question, because no output leaves a dimension of several points out. Of
    bodies that are not sound, and say so themselves, nothing is said to vary.
    """
    from tapestry.algebra.parts import output_axes

    outs = op.out_maps
    if all(p.inputs != kept.rank or not left_out(p, kept) for p in outs):
        return None
    found = output_axes(op) if sound else ()
    return found if len(found) == len(outs) else ((),) * len(outs)


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
    box = over
    for part, axes in reversed(list(zip(parts, own, strict=True))):
        stored = stored_axes(part, axes, over.rank)
        box = box.with_sides(dict(zip(stored, part.sides, strict=True)))
    return box


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
