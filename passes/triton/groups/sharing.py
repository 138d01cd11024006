"""Axes in one block, so that a tensor that is read along one and along the other is loaded once.

    s = tl.dot(k, tl.trans(q))       # folds q's columns (axis C), for each row
    dk = tl.dot(ds, q, dk)           # keeps them (axis N), and folds its rows

Both axes are held whole and are as long, so that their lanes are the same. What is loaded along
K and N is, transposed, what lies along C and K (`KernelWriter.load`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tapestry.passes.triton.indexing.positions import Axis
from tapestry.passes.triton.indexing.spaces import Space
from tapestry.passes.triton.kernels.mapfold import MapFold


def read_together(
    fold: MapFold, space: Space, axes: Mapping[str, Axis], most: int
) -> dict[str, Axis]:
    """The axes, in one block those that are held whole, as long, and read one buffer.

    Only an inner fold of at most `most` points is held whole, and not walked.
    """
    found = dict(axes)
    inner = [axis for name, axis in axes.items() if name.startswith("C") and _is_whole(axis, most)]
    for name, axis in axes.items():
        if name.startswith("N") and _is_whole(axis, most):
            first = next((one for one in inner if _are_alike(fold, space, one, axis)), None)
            if first is not None:
                inner.remove(first)
                found[name] = replace(axis, block=first.block)
    return found


def _is_whole(axis: Axis, most: int) -> bool:
    """Whether one block of at most `most` points holds all of an axis, which no shard cuts."""
    length = axis.length if axis.dims and axis.block is not None else None
    return length is not None and length <= most


def _are_alike(fold: MapFold, space: Space, one: Axis, other: Axis) -> bool:
    """Whether axes have the same points, and some buffer is read along each by itself."""
    if [dim.extent for dim in one.dims] != [dim.extent for dim in other.dims]:
        return False
    alone: list[set[int]] = [set(), set()]
    for buffer, access in zip(fold.buffers, (*space.ins, *space.extras), strict=True):
        along = space.along(access)
        if len({one.name, other.name} & along) == 1:
            alone[other.name in along].add(buffer)
    return not alone[0].isdisjoint(alone[1])
