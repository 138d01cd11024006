"""Folds whose points count at one place each, as the gradient of a table of rows has them.

    place[i] = ids[i]            result[v, n] = sum over i of (values[i, n] if place[i] == v else 0)

The work is that of the points, whatever the number of places. Rows are folded one by one, by a
compiled loop; without one, points are sorted by their place, and what is at one is reduced at once.
Where places vary along kept dimensions too, those are part of the place. Of a state whose parts
go with one of them, as the value that is written last, it is found which point is there
(`ScatterLed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tapestry.codegen.loops import kind_of
from tapestry.codegen.loops.graphs import FOLDS
from tapestry.codegen.loops.scattering import scatter_text
from tapestry.codegen.loops.vectors import HALVES
from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.addresses import address
from tapestry.runtime.cpu.native import Compiled, address_of
from tapestry.runtime.cpu.steps import Place, Step
from tapestry.runtime.cpu.threads import Team, Workers
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.linking import Traced, in_parallel
from tapestry.runtime.prepared.loops.copying import traced_copy
from tapestry.runtime.prepared.memory import empty, reserved

if TYPE_CHECKING:  # what is read from a cache imports no IR
    from tapestry.algebra.led import Led

_WORKERS = Workers()

_ADDRESSES = (3, 4, 5)
"""Which arguments of the loop are addresses: of places, of rows, and of what they are folded to."""

_POINT = 4
"""Scalar operations that it takes to find where a row goes."""

_SHARE, _SHARE_WORKERS = 1 << 18, 1 << 21
"""Those of a thread from which it is worth it: of a team's, which is awake, or of Tapestry's."""

_SIGNED = frozenset({"arith.maximumf", "arith.minimumf"})
"""What tells the zeros of both signs apart, which NumPy takes for equal."""


@dataclass(frozen=True)
class Points:
    """Where points count: along `dim`, whose places begin at `low`.

    `shape` is that of the index space; `folded` and `others` are its other dimensions.
    """

    dim: int
    folded: tuple[int, ...]
    others: tuple[int, ...]
    low: int
    shape: tuple[int, ...]

    def lanes(self, places: Array, *, first: bool | None = None) -> Lanes:
        """Those of places that vary along kept dimensions; unless said, as these lie in memory."""
        dims = tuple(d for d in self.others if places.ndim and places.shape[d] > 1)
        if first is None and dims:
            steps = [abs(step) for step in places.strides]
            apart, folded = (max((steps[d] for d in own), default=0) for own in (dims, self.folded))
            return Lanes(dims, first=apart >= folded)
        return Lanes(dims, first=first is not False)

    def places(self, places: Array, lanes: Lanes) -> tuple[Array, Array | None]:
        """The number of each point's place, and which points have one (None: all of them)."""
        count, size = self.shape[self.dim], prod(self.shape[d] for d in lanes.dims)
        at = self.in_a_row(places, lanes)
        if self.low:
            at = at - self.low
        # What is negative is a large number without a sign.
        inside = at.view(np.uint64) < count
        if lanes.dims:
            room = empty(at.shape, at.dtype)  # which is pooled: there may be as many as values
            if lanes.first:
                rows, made = at.reshape(size, -1), room.reshape(size, -1)
                np.add(rows, count * np.arange(size)[:, None], out=made)
            else:
                made = room.reshape(-1, size)
                np.multiply(at.reshape(-1, size), size, out=made)
                np.add(made, np.arange(size), out=made)
            at = room
        return at, None if inside.all() else inside

    def in_a_row(self, places: Array, lanes: Lanes) -> Array:
        """The place of each point."""
        return self.turned_places(places, lanes).reshape(-1)

    def turned_places(self, places: Array, lanes: Lanes) -> Array:
        """The same with an axis per dimension, as a view."""
        along = lanes.beside(self.folded)
        others = [d for d in self.others if d not in lanes.dims]
        varying = tuple(n if d in along else 1 for d, n in enumerate(self.shape))
        return np.broadcast_to(places, varying).transpose(*along, self.dim, *others)

    def rows(self, values: Array, lanes: Lanes, dtype: np.dtype[np.generic]) -> Array:
        """What each point has, as a row along the other dimensions."""
        along = lanes.beside(self.folded)
        others = [d for d in self.others if d not in lanes.dims]
        sizes = (prod(self.shape[d] for d in dims) for dims in (along, others))
        return self.turned(values, lanes).reshape(*sizes).astype(dtype, copy=False)

    def turned(self, values: Array, lanes: Lanes) -> Array:
        """The same with an axis per dimension, as a view."""
        along = lanes.beside(self.folded)
        others = [d for d in self.others if d not in lanes.dims]
        full = tuple(1 if d == self.dim else n for d, n in enumerate(self.shape))
        return np.broadcast_to(values, full).transpose(*along, self.dim, *others)

    def room(self, lanes: Lanes) -> tuple[int, int]:
        """How many places there are, and how long the row of each is."""
        others = prod(self.shape[d] for d in self.others if d not in lanes.dims)
        return prod(self.shape[d] for d in (self.dim, *lanes.dims)), others

    def arranged(self, made: Array, lanes: Lanes) -> Array:
        """Rows of all places as an array over the kept dimensions."""
        others = (d for d in self.others if d not in lanes.dims)
        dims = (*lanes.beside((self.dim,)), *others)
        return made.reshape([self.shape[d] for d in dims]).transpose(np.argsort(dims))


@dataclass(frozen=True)
class Lanes:
    """The kept dimensions that places vary along: each of their points has places of its own.

    Points, and places, are in order of these `first`, or last.
    """

    dims: tuple[int, ...]
    first: bool

    def beside(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """These dimensions and others, in order."""
        return (*self.dims, *dims) if self.first else (*dims, *self.dims)


@dataclass(frozen=True, eq=False)
class Scatter:
    """Folds by `ufunc`, which `primitive` names, what is at one place; the others have `zero`.

    The threads of a `team`, or Tapestry's, have lanes of their own, or places where there are few
    lanes: each looks at all points then, and folds those that are at its places, in order.
    """

    points: Points
    ufunc: np.ufunc
    primitive: str
    zero: Array
    team: Team | None = None

    def __call__(self, values: Array, places: Array) -> Array:
        """The state over the kept dimensions; both have extent 1 along `points.dim`."""
        lanes = self.points.lanes(places)
        rows = self.points.rows(values, lanes, self.zero.dtype)
        room = self.points.room(lanes)
        run = self._loop(rows.shape[1])
        if run is not None:
            made, at = _filled(room, self.zero), self.points.in_a_row(places, lanes)
            rows, at = np.ascontiguousarray(rows), np.ascontiguousarray(at)
            shares = np.array(self._shares(at, rows, made, lanes), np.int64)
            if len(shares) > 1:
                self._threads.run(address_of(run), shares)
            else:
                run(address(shares))
            return self.points.arranged(made, lanes)
        at, inside = self.points.places(places, lanes)
        if inside is not None:
            at, rows = at[inside], rows[inside]
        if self.primitive in _SIGNED:
            nan = 1 if self.primitive == "arith.maximumf" else -1
            keys, zero = in_order(rows, nan), in_order(self.zero.reshape(1), nan)[0]
            made = not_in_order(self._folded(keys, at, room, np.asarray(zero)), self.zero.dtype)
        else:
            made = self._folded(rows, at, room, self.zero)
        return self.points.arranged(made, lanes)

    def traced(self, given: Sequence[Array]) -> Traced | None:
        """The compiled functions that it calls."""
        values, places = given
        lanes = self.points.lanes(places)
        made = reserved(self.points.room(lanes), self.zero.dtype)
        run = self._loop(made.shape[1])
        if run is None or values.dtype != made.dtype:
            return None
        filled = traced_copy(made, np.broadcast_to(self.zero, made.shape), self.team)
        rows = self._in_rows(self.points.turned(values, lanes), (-1, made.shape[1]))
        at = self._in_rows(self.points.turned_places(places, lanes), (-1,))
        if filled is None or rows is None or at is None:
            return None
        arrays = at.made[0], rows.made[0], made
        bases = [address(array) for array in arrays]
        shares = self._shares(*arrays, lanes) if self.team else [self._arguments(*arrays, lanes)]
        own: list[list[Step]] = []
        for share in shares:
            away = [(_ADDRESSES[n], Place(n, share[_ADDRESSES[n]] - bases[n])) for n in range(3)]
            own.append([Step(run, tuple(share), tuple(away)).at(bases)])
        worth = self._most(*arrays[:2]) > 1
        folded = in_parallel(self.team if worth else None, own)
        if folded is None:
            return None
        arranged = self.points.arranged(made, lanes)
        steps = [*filled.steps, *rows.steps, *at.steps, *folded]
        return Traced(steps, [arranged], [*rows.held, *at.held, made])

    def _in_rows(self, array: Array, shape: tuple[int, ...]) -> Traced | None:
        """An array in a shape, whose cells are neighbours along the last axis; or a copy of it."""
        try:
            made = np.reshape(array, shape, copy=False)
        except ValueError:
            made = None
        if made is not None and (made.shape[-1] == 1 or made.strides[-1] == made.itemsize):
            return Traced([], [made], [])
        room = reserved(array.shape, array.dtype)
        copied = traced_copy(room, array, self.team)
        return None if copied is None else replace(copied, made=[room.reshape(shape)], held=[room])

    def _arguments(self, at: Array, rows: Array, made: Array, lanes: Lanes) -> list[int]:
        """Those of the loop."""
        size, count = made[:1].nbytes, self.points.shape[self.points.dim]
        own = len(made) // count  # lanes, each of which has places
        points = len(at) // own
        if lanes.first:
            extents, steps = (own, points), (size, 0, count * size)
        else:
            extents, steps = (points, own), (own * size, size, 0)
        arrays = [address(array) for array in (at, rows, made)]
        head = [*extents, rows.shape[1], *arrays, rows.strides[0]]
        return [*head, *steps, self.points.low, count]

    @property
    def _threads(self) -> Team:
        return _WORKERS if self.team is None else self.team

    def _most(self, at: Array, rows: Array) -> int:
        """How many threads would have enough to do."""
        worth = _SHARE_WORKERS if self.team is None else _SHARE
        return len(at) * (_POINT + rows.shape[1]) // worth

    def _shares(self, at: Array, rows: Array, made: Array, lanes: Lanes) -> list[list[int]]:
        """The arguments of the loop for each thread, of as many as are worth it."""
        whole, most = self._arguments(at, rows, made, lanes), self._most(at, rows)
        number = max(1, min(self._threads.count(), most)) if most > 1 else 1
        by_lanes = lanes.first and whole[0] >= number
        total = whole[0] if by_lanes else self.points.shape[self.points.dim]
        ends = [total * n // number for n in range(number + 1)]
        found: list[list[int]] = []
        for start, end in pairwise(ends):
            share = list(whole)
            if by_lanes:
                points = start * whole[1]
                share[0] = end - start
                moves = points * at.itemsize, points * whole[6], start * whole[9]
            else:
                share[10], share[11] = whole[10] + start, end - start
                moves = 0, 0, start * whole[7]
            for number_of, move in zip(_ADDRESSES, moves, strict=True):
                share[number_of] += move
            found.append(share)
        return found

    def _folded(self, rows: Array, at: Array, room: tuple[int, int], zero: Array) -> Array:
        """Rows folded at places by NumPy."""
        made = _filled(room, zero)
        if rows.shape[1] == 1:
            self.ufunc.at(made[:, 0], at, rows[:, 0])
        elif len(at):
            order = np.argsort(at, kind="stable")
            here = at[order]
            first = np.flatnonzero(np.concatenate([[True], here[1:] != here[:-1]]))
            made[here[first]] = self.ufunc.reduceat(rows[order], first, axis=0)
        return made

    def _loop(self, length: int) -> Compiled | None:
        """The loop that folds rows of a length where they go, None where there is none."""
        kind = kind_of(self.zero.dtype)
        if kind is None or kind in HALVES or self.primitive not in FOLDS or not native.is_ready():
            return None
        return _compiled(self.primitive, kind, single=length == 1)


@dataclass(frozen=True, eq=False)
class ScatterLed:
    """The parts of the state that `led` names are, at each place, those of the point that leads.

    What leads varies along folded dimensions alone. A place without points has `zeros`.
    """

    points: Points
    led: Led
    zeros: tuple[Array, ...]

    def __call__(self, operands: Sequence[Array]) -> list[Array]:
        """The parts over the kept dimensions, of the parts at the points, then of the places."""
        *parts, places = operands
        lanes = self.points.lanes(places, first=True)
        at, inside = self.points.places(places, lanes)
        rows = [
            self.points.rows(part, lanes, zero.dtype)
            for part, zero in zip(parts, self.zeros, strict=True)
        ]
        keys = self._keys(parts[self.led.parts.index(self.led.part)])
        order, leading = self._order(keys, len(at)), self._leading(keys)
        number = np.arange(len(at))
        if leading is not None:
            every = np.tile(leading, len(at) // max(1, len(leading)))
            inside = every if inside is None else inside & every
        if order is not None:
            at, inside = at[order], None if inside is None else inside[order]
        if inside is not None:
            at, number = at[inside], number[inside]
        room = self.points.room(lanes)
        last = np.full(room[0], -1)
        np.maximum.at(last, at, number)
        missing = np.flatnonzero(last < 0)
        found = last if order is None or not len(order) else order[last]
        made: list[Array] = []
        for row, zero in zip(rows, self.zeros, strict=True):
            part = row.take(found, 0) if len(row) else np.empty((room[0], room[1]), zero.dtype)
            part[missing] = zero
            made.append(self.points.arranged(part, lanes))
        return made

    def _keys(self, leader: Array) -> Array:
        """What leads, of each point, so that the largest does."""
        folded = self.points.folded
        shape = tuple(n if d in folded else 1 for d, n in enumerate(self.points.shape))
        own = leader[tuple(slice(None) if d in folded else slice(1) for d in range(leader.ndim))]
        keys = np.broadcast_to(own, shape).transpose(
            *folded, *(d for d in range(len(shape)) if d not in folded)
        )
        keys = keys.reshape(-1)
        return keys if self.led.largest else ~keys

    def _leading(self, keys: Array) -> Array | None:
        """The points that lead the zero, which a fold begins with, and which points that are
        elsewhere have: of those that are equal to it the last one of all. None if all lead.
        """
        zero = self.zeros[self.led.parts.index(self.led.part)].astype(keys.dtype)
        least = zero if self.led.largest else ~zero
        leading = keys > least
        if self.led.later and len(keys):
            leading[-1] |= keys[-1] == least
        return None if leading.all() else leading

    def _order(self, keys: Array, count: int) -> Array | None:
        """The points in the order in which the last of a place leads; None if they are in it."""
        rising = keys[1:] >= keys[:-1] if self.led.later else keys[1:] > keys[:-1]
        if rising.all():
            return None
        if self.led.later:
            order = np.argsort(keys, kind="stable")
        else:
            order = len(keys) - 1 - np.argsort(keys[::-1], kind="stable")
        lanes = count // max(1, len(keys))
        return (np.arange(lanes)[:, None] * len(keys) + order).reshape(-1)


@cache
def _compiled(primitive: str, kind: str, *, single: bool) -> Compiled | None:
    text = scatter_text(primitive, kind, single=single)
    return native.compiled(text, f"of {primitive} at places")


def _filled(room: tuple[int, int], zero: Array) -> Array:
    """The system hands out cells whose bits are 0: most of a large table is never written."""
    nothing = not any(zero.tobytes())
    return np.zeros(room, zero.dtype) if nothing else np.full(room, zero)


def in_order(cells: Array, nan: int) -> Array:
    """Integers that are in the order of floats: -0.0 is before 0.0, NaN last, or first for -1."""
    bits = np.array(cells).view(f"i{cells.itemsize}")
    least, most = np.iinfo(bits.dtype).min, np.iinfo(bits.dtype).max
    # Of negative numbers, those with larger bits are smaller.
    bits ^= (bits >> (8 * cells.itemsize - 1)) & bits.dtype.type(most)
    bits[np.isnan(cells)] = most if nan > 0 else least
    return bits


def not_in_order(keys: Array, dtype: np.dtype[np.generic]) -> Array:
    """The floats that `in_order` has made integers of, in the memory of these."""
    keys ^= (keys >> (8 * keys.itemsize - 1)) & keys.dtype.type(np.iinfo(keys.dtype).max)
    return keys.view(dtype)
