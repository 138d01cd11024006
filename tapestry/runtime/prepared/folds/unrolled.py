"""Folds over windows, point by point of the window: passes over shifted views.

    fold = unrolled(max_pool, monoid)       # None where it has another form
    (state,) = fold([x])                    # an axis per kept dimension

For each point of what is folded there is a value for each kept point, computed from views of the
inputs, and merged with the state so far. So no window is copied, and arrays are as long as what is
kept, where folding windows goes along axes of a few cells. It is done in parts that stay in cache.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TypeAlias

import numpy as np

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.literals import number_in
from tapestry.algebra.monoids import Monoid
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.runtime.arrays.arithmetic import cell_constant
from tapestry.runtime.arrays.scalar import evaluate
from tapestry.runtime.cpu.addresses import is_within
from tapestry.runtime.cpu.threads import Team, share
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.bodies import Body, prepared_body
from tapestry.runtime.prepared.cells import bits
from tapestry.runtime.prepared.folds.halves import merge_of
from tapestry.runtime.prepared.folds.looped_windows import looped_fold
from tapestry.runtime.prepared.linking import Traced, in_turn
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.memory import empty
from tapestry.runtime.prepared.padding import Padding
from tapestry.runtime.prepared.views import View, reader
from tapestry.zspace import Domain, Range, bounding

Unrolled: TypeAlias = Callable[[Sequence[Array]], list[Array]]
"""The state over all kept dimensions from the arrays of the inputs."""

_MOST = 64
"""Points of a window."""

_LEAST = 1 << 12
"""Kept points from which passes over them cost less than windows."""

_BLOCK = 1 << 14
"""Kept points that are computed at once, so that what is in between stays in cache."""

_NOWHERE = Range((), ())

_At: TypeAlias = tuple[slice, ...]


def unrolled(
    op: loom.OperationOp,
    monoid: Monoid | None,
    threads: int = 1,
    loops: Loops | None = None,
) -> Unrolled | None:
    """The state of a fold over windows, on so many threads; None where it is none, or a large one.

    Some input is read along a kept and a folded dimension at once. States merge in the order of
    the points, so that any monoid will do. At each point, a domain has to leave a box of what is
    kept; what is read outside is filled in once, where any point that counts reads there.
    """
    few = op.fold_range(op.index).size <= _MOST and op.kept_range(op.index).size >= _LEAST
    folded = set(op.fold_dims)
    inside = op.inside
    if inside is not None and monoid is not None and _is_idle(op, inside, monoid):
        inside = None
    domain = () if inside is None else inside.moving()
    if monoid is None or not few or not _slides(op) or any(len(d - folded) > 1 for d in domain):
        return None
    every = map(partial(_point, op, inside), np.ndindex(op.fold_range(op.index).shape))
    points = [point for point in every if point is not None]
    if not points or prepared_body(op.wrap_block, points[0], range(op.index.rank)) is None:
        return None
    return _Unrolled(op, monoid, points, _blocks(op, inside), threads, loops)


def _is_idle(op: loom.OperationOp, inside: Domain, monoid: Monoid) -> bool:
    """Whether a domain leaves out only what is read outside and adds nothing there.

    Points outside read the fill of the only input, of which wrap makes the zero of the monoid.
    """
    if len(op.ins) != 1 or any(isinstance(one, loom.IndexOp) for one in op.wrap_block.ops):
        return False
    fill, projection = op.in_fills[0], op.in_maps[0]
    value = None if fill is None else number_in(fill)
    if fill is None or value is None or prepared_body(op.wrap_block, _NOWHERE, ()) is None:
        return False
    box, read = tensor_type(op.ins[0]).box, projection.map
    bounds: set[tuple[tuple[int, ...], int]] = set()
    for row, offset, low, high in zip(read.matrix, read.offset, box.start, box.end, strict=True):
        bounds.add((tuple(row), offset - low))
        bounds.add((tuple(-c for c in row), high - 1 - offset))
    rows = zip(inside.rows.matrix, inside.rows.offset, strict=True)
    if not {(tuple(row), offset) for row, offset in rows} <= bounds:
        return False
    outside = bits(cell_constant(value, fill.type))
    with np.errstate(all="ignore"):
        made = evaluate(op.wrap_block, [outside], lambda _: outside)
    zeros = zip(made, monoid.zero, monoid.state, strict=True)
    return all(np.array_equal(cell, cell_constant(zero, kind)) for cell, zero, kind in zeros)


def _slides(op: loom.OperationOp) -> bool:
    """Whether there are windows, and every point reads single cells."""
    folded = set(op.fold_dims)
    rows = [{dim for _, dim in row} for p in op.in_maps for row in p.map.terms]
    windows = any(not row.isdisjoint(folded) and not row <= folded for row in rows)
    return windows and all(p.is_unit for p in op.in_maps)


def _point(op: loom.OperationOp, inside: Domain | None, number: Sequence[int]) -> Range | None:
    """The points of the index space that count at a point of the window."""
    at = {dim: op.index.start[dim] + n for dim, n in zip(op.fold_dims, number, strict=True)}
    box = op.index.with_sides({dim: (low, low + 1) for dim, low in at.items()})
    return box if inside is None else inside.bounds(box)


def _blocks(op: loom.OperationOp, inside: Domain | None) -> list[_At]:
    """The kept points in parts, along dimensions that neither the domain nor the body knows of."""
    known = {one.dimension for one in op.wrap_block.ops if isinstance(one, loom.IndexOp)}
    if inside is not None:
        known = known.union(*inside.moving())
    size = op.kept_range(op.index).size
    axes: list[list[slice]] = []
    for dim, extent in enumerate(op.index.shape):
        step = extent
        if dim in op.kept_dims and dim not in known:
            step = max(1, min(extent, _BLOCK * extent // size))
            size = size * step // extent
        axes.append([slice(n, min(n + step, extent)) for n in range(0, extent, step)])
    return [tuple(at) for at in product(*axes)]


@dataclass(frozen=True)
class _Input:
    """What is read of an input: first cells outside are filled in, then each point has a view."""

    padding: Padding | None
    views: list[View]

    @staticmethod
    def of(op: loom.OperationOp, number: int, points: Sequence[Range], team: Team | None) -> _Input:
        box, projection = tensor_type(op.ins[number]).box, op.in_maps[number]
        fill = op.in_fills[number]
        read = [projection.apply_range(point) for point in points]
        padding = None
        if fill is not None and not all(box.contains_range(one) for one in read):
            value = number_in(fill)
            assert value is not None
            outside = bits(cell_constant(value, fill.type))
            whole = bounding([box, *read])
            padding, box = Padding(box, whole, outside, team), whole
        return _Input(padding, [reader(projection, box, point) for point in points])

    def filled(self, array: Array) -> Array:
        """The cells that views are of."""
        cells = bits(array)
        return cells if self.padding is None else self.padding(cells)

    def traced(self, array: Array) -> Traced | None:
        """The same as compiled functions."""
        cells = bits(array)
        if self.padding is None:
            return Traced([], [cells], []) if is_within(cells, array) else None
        return self.padding.traced([cells])


class _Known(threading.local):
    """A thread's bodies, by the point and the extents of the part."""

    def __init__(self, monoid: Monoid) -> None:
        self.bodies: dict[Hashable, Body] = {}
        self.merge = merge_of(monoid)


class _Unrolled:
    """A fold over windows at all points of one where some kept points count."""

    def __init__(
        self,
        op: loom.OperationOp,
        monoid: Monoid,
        points: Sequence[Range],
        blocks: Sequence[_At],
        threads: int,
        loops: Loops | None,
    ) -> None:
        self._op, self._points, self._threads = op, points, threads
        self._blocks = blocks
        team = None if loops is None else loops.team
        self._inputs = [_Input.of(op, number, points, team) for number in range(len(op.ins))]
        self._shape = tuple(1 if d in op.fold_dims else n for d, n in enumerate(op.index.shape))
        self._dtypes = [numpy_dtype(kind) for kind in monoid.state]
        zeros = zip(monoid.zero, monoid.state, strict=True)
        self._zeros = [cell_constant(zero, kind) for zero, kind in zeros]
        self._within = [self._kept(point) for point in points]
        self._known = _Known(monoid)
        whole = all(one == slice(None) for within in self._within for one in within)
        alone = threads == 1 and whole
        self._looped = looped_fold(op, monoid, points, loops) if alone else None

    def __call__(self, ins: Sequence[Array]) -> list[Array]:
        """The state."""
        pairs = [(one, one.filled(cells)) for one, cells in zip(self._inputs, ins, strict=True)]
        views = [[one.views[n](cells) for one, cells in pairs] for n in range(len(self._points))]
        if self._looped is not None:
            state = self._looped([view for some in views for view in some])
            return [part.squeeze(self._op.fold_dims) for part in state]
        made = [empty(self._shape, dtype) for dtype in self._dtypes]

        def work(at: _At) -> None:
            for out, value in zip(made, self._state(views, at), strict=True):
                out[at] = value

        share(work, self._blocks, self._threads)
        return [out.squeeze(self._op.fold_dims) for out in made]

    def traced(self, ins: Sequence[Array]) -> Traced | None:
        """The compiled functions that it calls, where a loop folds what is read in place."""
        if self._looped is None:
            return None
        filled = in_turn(one.traced(cells) for one, cells in zip(self._inputs, ins, strict=True))
        if filled is None:
            return None
        views = [
            one.views[n](cells)
            for n in range(len(self._points))
            for one, cells in zip(self._inputs, filled.made, strict=True)
        ]
        traced = self._looped.traced(views)
        if traced is None:
            return None
        made = [one.squeeze(self._op.fold_dims) for one in traced.made]
        return Traced([*filled.steps, *traced.steps], made, [*filled.held, *traced.held])

    def _state(self, views: Sequence[Sequence[Array]], at: _At) -> list[Array]:
        """The state of a part."""
        extents = zip(self._shape, at, strict=True)
        shape = tuple(len(range(*one.indices(extent))) for extent, one in extents)
        state: list[Array] = []
        for number, within in enumerate(self._within):
            own = self._values(number, views[number], at)
            own = [
                _whole(value, shape, within, zero)
                for value, zero in zip(own, self._zeros, strict=True)
            ]
            state = self._known.merge([*state, *own]) if state else own
        return state

    def _values(self, number: int, views: Sequence[Array], at: _At) -> list[Array]:
        """What the points of a part yield at one of the window."""
        point = self._points[number]
        cut = [slice(None) if self._is_whole(d, one) else one for d, one in enumerate(at)]
        key = (number, *(one.stop - one.start for one in at))
        body = self._known.bodies.get(key)
        if body is None:
            sides = {
                dim: (low, low + one.stop - one.start)
                for dim, (low, one) in enumerate(zip(point.start, cut, strict=True))
                if one != slice(None)
            }
            part = point.with_sides(sides)
            body = prepared_body(self._op.wrap_block, part, range(part.rank))
            assert body is not None
            self._known.bodies[key] = body
        given = [
            view[
                tuple(one if n > 1 else slice(None) for one, n in zip(cut, view.shape, strict=True))
            ]
            for view in views
        ]
        made = zip(body(given), self._dtypes, strict=True)
        values = [value if value.dtype == dtype else value.astype(dtype) for value, dtype in made]
        rank = point.rank
        return [value if value.ndim == rank else value.reshape((1,) * rank) for value in values]

    def _is_whole(self, dim: int, at: slice) -> bool:
        return at == slice(0, self._op.index.shape[dim])

    def _kept(self, point: Range) -> _At:
        """Where a point counts, as a part of a state."""
        ends = zip(self._op.index.start, point.start, point.end, strict=True)
        return tuple(
            slice(None)
            if dim in self._op.fold_dims or self._op.index.shape[dim] == high - first
            else slice(first - low, high - low)
            for dim, (low, first, high) in enumerate(ends)
        )


def _whole(value: Array, shape: tuple[int, ...], within: _At, zero: Array) -> Array:
    """A value all over a part in one run of memory, which many calls go along faster than rows."""
    everywhere = all(one == slice(None) for one in within)
    if everywhere and value.flags.c_contiguous:
        return value
    made = np.empty(shape, value.dtype)
    if not everywhere:
        made[...] = zero
    made[within] = value
    return made
