"""Cells at computed indices, of which each varies along axes of its own: whole rows are copied.

    >>> table = np.arange(12).reshape(4, 3)
    >>> ids, column = np.array([[3], [0]]), np.array([[0, 1, 2]])
    >>> taken(table, [ids, column])                   # as table[ids, column]
    array([[ 9, 10, 11],
           [ 0,  1,  2]])

So it is where rows of a table are looked up, or what an axis has is put into another order. NumPy
would go through the indices of every cell. Where an index that runs, as that of the images of a
batch, shares its axis with others, what is at one place of the axis is taken after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tapestry.runtime.executor import Array

_EACH = 4096
"""Cells from which they are worth some calls of their own."""


def taken(array: Array, at: Sequence[Array]) -> Array:
    """`array[tuple(at)]`, of indices that are inside and have one rank, and at least one axis each.

    The result is on memory of its own, or a view.
    """
    rank = at[0].ndim if at else 0
    along = [[axis for axis, extent in enumerate(one.shape) if extent > 1] for one in at]
    axes = [axis for own in along for axis in own]
    if not rank or not all(one.size for one in at):
        return array[tuple(at)]
    if len(at) == 1 and not at[0].flags.c_contiguous:  # its cells in the order that they lie in
        order = sorted(range(rank), key=lambda axis: -abs(at[0].strides[axis]))
        return array[at[0].transpose(order)].transpose(np.argsort(order))
    if len(set(axes)) < len(axes):
        return _taken_in_turn(array, at, along)
    lines = [one.ravel() for one in at]
    runs = [_run(line) for line in lines]
    if None not in runs:
        return array[tuple(at)]
    array = array[tuple(slice(None) if run is None else run for run in runs)]
    sought = [dim for dim, run in enumerate(runs) if run is None]
    # Along the last axis it takes longest: while there is little. What shrinks the array is first.
    for dim in sorted(sought, key=lambda dim: (len(lines[dim]) / max(array.shape[dim], 1), -dim)):
        array = array.take(lines[dim], dim)
    extents = [one.shape[axis] for one, own in zip(at, along, strict=True) for axis in own]
    array = array.reshape(extents).transpose(np.argsort(axes))
    shape = np.broadcast_shapes(*(one.shape for one in at))
    return array.reshape(shape)


def _taken_in_turn(array: Array, at: Sequence[Array], along: Sequence[Sequence[int]]) -> Array:
    """The same of indices that share axes: along one that an index runs along, one by one."""
    shape = np.broadcast_shapes(*(one.shape for one in at))
    for one, own in zip(at, along, strict=True):
        run = _run(one.ravel()) if len(own) == 1 else None
        shared = run is not None and any(own[0] in other for other in along if other is not own)
        if run is None or not shared or prod(shape) < _EACH * one.size:
            continue
        found = np.empty(shape, array.dtype)
        for place in range(one.size):
            here = (*[slice(None)] * own[0], slice(place, place + 1))
            parts = [index[here] if index.shape[own[0]] > 1 else index for index in at]
            found[here] = taken(array, parts)
        return found
    return array[tuple(at)]


def _run(line: Array) -> slice | None:
    """The slice that indices are, each after the one before; None where they are none."""
    first, count = int(line[0]), len(line)
    if int(line[-1]) - first != count - 1 or not (np.diff(line) == 1).all():
        return None
    return slice(first, first + count)
