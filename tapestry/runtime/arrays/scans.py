"""Running states on arrays: what a scan keeps along its dimension, block by block.

An operation that scans folds nothing, so its states are over its whole index space: axis d of an
array is index dimension d. A *carried* state has extent 1 along the scan; a block of values goes on
from it:

    carried 10   values 1 2 3   ->   states 11 13 16   (by add)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tapestry.algebra.monoids import Monoid
from tapestry.algebra.reductions import find_reduction
from tapestry.dialects import loom
from tapestry.runtime.arrays.mapfold import Tensor, boxes_within, merged, wrapped
from tapestry.runtime.arrays.states import Layout
from tapestry.runtime.executor import Array
from tapestry.zspace import Range


def across(box: Range, axis: int, at: int | None = None) -> Range:
    """A box with one point along the scan, its first (or `at`): where a carried state is."""
    at = box.start[axis] if at is None else at
    return box.with_sides({axis: (at, at + 1)})


def running(
    monoid: Monoid, carried: Sequence[Array], values: Sequence[Array], axis: int
) -> list[Array]:
    """The states that go on from `carried` over some values.

    One NumPy accumulation, in order, where there is one; else log2(n) merges of whole blocks, each
    state with the one `step` before it, which keeps the order of what is merged.
    """
    states = [np.concatenate(pair, axis=axis) for pair in zip(carried, values, strict=True)]
    reduction = find_reduction(monoid.primitive, monoid.state[0])
    if reduction is not None:
        states = [reduction.running(states[0], axis)]
    else:
        step, count = 1, states[0].shape[axis]
        while step < count:
            earlier = [_cut(state, axis, 0, count - step) for state in states]
            later = [_cut(state, axis, step, count) for state in states]
            ahead = [_cut(state, axis, 0, step) for state in states]
            pairs = zip(ahead, merged(monoid, earlier, later), strict=True)
            states = [np.concatenate(pair, axis=axis) for pair in pairs]
            step *= 2
    return [_cut(state, axis, 1, state.shape[axis]) for state in states]


def scanned(
    op: loom.BlockSignature,
    layout: Layout,
    box: Range,
    ins: Sequence[Tensor],
    carried: Sequence[Array],
    cells: int,
) -> Iterator[tuple[Range, list[Array]]]:
    """The states over a box of the index space, part by part of at most about `cells` cells.

    `carried` is over `across(box)`; it goes on in place, and ends as the last state.
    """
    axis, monoid = op.scan_dim, layout.monoid
    assert axis is not None
    assert monoid is not None
    if box.is_empty:
        return
    front = across(box, axis)
    length = min(box.shape[axis], cells)
    # Lanes may share cells of a part that does not vary along what tells them apart.
    first = [state.copy() for state in carried]
    for lane in boxes_within(front, max(1, cells // length)):
        own = layout.at(first, lane, front)
        along = lane.with_sides({axis: box.sides[axis]})
        for part in along.split(axis, max(1, cells // lane.size)):
            values = layout.spread(op, wrapped(op, part, ins), part)
            states = running(monoid, own, values, axis)
            own = [last(state, axis) for state in states]
            yield part, states
        layout.put(carried, lane, front, own)


def last(state: Array, axis: int) -> Array:
    """The last state along the scan, with extent 1 there."""
    return _cut(state, axis, state.shape[axis] - 1, state.shape[axis])


def before(
    layout: Layout, states: Sequence[Array], index: Range, box: Range, axis: int
) -> list[Array]:
    """The states just before `box`, from those over `index`; the zero at the scan's start."""
    if box.start[axis] == index.start[axis]:
        return layout.zero(across(box, axis))
    return layout.at(states, across(box, axis, box.start[axis] - 1), index)


def _cut(state: Array, axis: int, start: int, end: int) -> Array:
    where = [slice(None)] * state.ndim
    where[axis] = slice(start, end)
    return state[tuple(where)]
