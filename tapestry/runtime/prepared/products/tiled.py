"""Sums of products by loops in tiles, and what is computed of them, in one pass.

    run = TiledProduct(plain, extents, folded, arrays, ...)
    (y,) = run([x, w, bias])        # a convolution, its bias and a rectifier, say

How arrays lie is known at the first call, which finds the tiles (`tiling`). `plain` computes the
same where there are none, and where nothing is compiled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tapestry.algebra.named import Scalar
from tapestry.codegen.loops import Cell, Graph, Number, kind_of
from tapestry.codegen.loops.blocks import block_text
from tapestry.codegen.loops.cells import written
from tapestry.codegen.loops.dots import dot_text
from tapestry.codegen.loops.products import product_text
from tapestry.codegen.loops.tiles import Guard
from tapestry.codegen.loops.vectors import number_of
from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.addresses import address
from tapestry.runtime.cpu.native import Compiled, address_of, compiled
from tapestry.runtime.cpu.steps import Place, Step
from tapestry.runtime.cpu.threads import Team, Workers
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.cells import with_neighbours
from tapestry.runtime.prepared.linking import Traceable, Traced, in_parallel
from tapestry.runtime.prepared.loops.copying import traced_copy
from tapestry.runtime.prepared.memory import empty, reserved
from tapestry.runtime.prepared.products.blocking import block_tiling
from tapestry.runtime.prepared.products.dotting import dot_tiling
from tapestry.runtime.prepared.products.tiling import Operand, Problem, Tiling, tiling

_Run: TypeAlias = Callable[[Sequence[Any]], Sequence[Array]]

_COPIED = 8
"""Products for each cell of an array from which it may be copied to be read in vectors."""

_AGAIN = 150
"""Products for each cell of the factors up to which vectors are along what is folded: libraries
that copy factors into an order of their own are faster where these are met more often.
"""

_SHARE = 1 << 20
"""Products of a thread of the host's from which it is worth one."""

_WORKERS, _SHARE_WORKERS = Workers(), 1 << 23
"""The threads where the host has none, which take longer to wake, and products for each."""


@dataclass(frozen=True)
class Moved:
    """How an operand is read or written: per axis an offset, and the factors of dimensions.

    Outside of an axis that has one of the `limits`, an operand is zero.
    """

    operand: int
    axes: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    limits: tuple[int | None, ...]

    def start(self, strides: Sequence[int]) -> int:
        """Bytes from the array's first cell to the one at the first point."""
        return sum(offset * step for (offset, _), step in zip(self.axes, strides, strict=True))

    def of(self, strides: Sequence[int], size: int, extents: Sequence[int]) -> Operand:
        """The operand over some extents, of an array with these strides."""
        steps = [0] * len(extents)
        guards: list[Guard] = []
        windows: list[tuple[tuple[int, int], ...]] = []
        for (offset, terms), limit, step in zip(self.axes, self.limits, strides, strict=True):
            own = tuple((dim, factor) for dim, factor in terms if extents[dim] > 1)
            for dim, factor in own:
                steps[dim] += factor * step
            if limit is not None:
                guards.append(Guard(own, offset))
            windows.append(own)
        limits = tuple(limit for limit in self.limits if limit is not None)
        return Operand(size, tuple(steps), tuple(guards), limits, tuple(windows))


@dataclass(frozen=True)
class Computed:
    """What is computed of some values: slots are those, then numbers, then what cells make."""

    numbers: tuple[Array, ...]
    cells: tuple[tuple[Scalar, tuple[int, ...]], ...]
    wanted: tuple[int, ...]

    def graph(self, kinds: Sequence[str]) -> Graph:
        """The same for loops."""
        numbers = tuple(Number(number_of(one), _kind(one.dtype)) for one in self.numbers)
        cells = (Cell(partial(written, op), ins, _kind(op.result)) for op, ins in self.cells)
        return Graph(tuple(kinds), numbers, tuple(cells), self.wanted)

    def needs(self, slot: int, count: int) -> frozenset[int]:
        """Which of so many values a slot is computed of."""
        first = count + len(self.numbers)
        if slot < first:
            return frozenset({slot} if slot < count else ())
        every = (self.needs(one, count) for one in self.cells[slot - first][1])
        return frozenset[int]().union(*every)


@dataclass(frozen=True, eq=False)
class _Ready:
    """A compiled function, its arguments but for addresses, and where these go."""

    function: Compiled
    arguments: tuple[int, ...]
    addresses: tuple[tuple[int, int], ...]
    """The place of an argument, and the array whose address it is."""
    buffer: Callable[..., Any]
    room: tuple[int, int]
    """Bytes to pack into, for each thread, and the place of the argument that says where."""
    rows: NDArray[np.int64] | None
    address: int
    turned: tuple[tuple[int, int], ...]
    """Arrays that are copied, with an axis whose cells are neighbours then."""


@dataclass(frozen=True)
class _Way:
    """A tiling, which factor is in vectors, and what is copied before: arrays, and an axis of each
    whose cells are neighbours then.
    """

    tiling: Tiling
    first: int
    turned: tuple[tuple[int, int], ...] = ()


@dataclass(eq=False)
class TiledProduct:
    """What an operation makes of one sum of products: all its results, or some.

    The two factors are what `wrap` computes of the first of `reads`, the first one by so much
    `work`; `unwrap` takes the sum, and the others.
    """

    plain: _Run
    extents: tuple[int, ...]
    folded: tuple[int, ...]
    reads: tuple[Moved, ...]
    wrap: Computed
    unwrap: Computed
    writes: tuple[Moved, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype[Any], ...]
    work: tuple[int, int]
    wrapped: int
    """How many of the reads are for the factors."""
    team: Team | None = None
    places: tuple[Array, ...] = ()
    """Coordinates along some dimensions, which are read as operands after the others."""

    def __post_init__(self) -> None:
        self._ready: dict[object, _Ready | None] = {}

    def __call__(self, given: Sequence[Any]) -> Sequence[Array]:
        outs = [empty(shape, dtype) for shape, dtype in zip(self.shapes, self.dtypes, strict=True)]
        return outs if self._run(given, outs) else self.plain(given)

    def fill(self, place: Array, given: Sequence[Any]) -> None:
        """Write the only result to a place."""
        if not self._run(given, [place]):
            place[...] = self.plain(given)[0]

    def _run(self, given: Sequence[Any], outs: Sequence[Array]) -> bool:
        """Write the results to some arrays; false where that is not for loops: nothing is done."""
        values = [*given, *self.places]
        arrays = [_spread_out(np.asarray(values[read.operand])) for read in self.reads]
        arrays += outs
        team = _WORKERS if self.team is None else self.team
        ready = self._found(arrays)
        if ready is None:
            return False
        for number, axis in ready.turned:
            arrays[number] = with_neighbours(arrays[number], axis)
        found = list(ready.arguments)
        for place, array in ready.addresses:
            found[place] = address(arrays[array])
        size, place = ready.room
        room = empty((size,), np.dtype(np.uint8))
        if size:
            found[place] = address(room)
        if ready.rows is None:
            ready.function(ready.buffer(*found))
        else:
            team.run(ready.address, ready.rows + found)
        return True

    def traced(self, given: Sequence[Array]) -> Traced | None:
        """What is called, of arrays however they lie."""
        kinds = zip(self.shapes, self.dtypes, strict=True)
        outs = [reserved(shape, dtype) for shape, dtype in kinds]
        return self._traced(given, outs, outs)

    def traced_to(self, place: Array, given: Sequence[Array]) -> Traced | None:
        """The same where the only result is written to a place."""
        return self._traced(given, [place], ())

    def _traced(
        self, given: Sequence[Array], outs: Sequence[Array], new: Sequence[Array]
    ) -> Traced | None:
        values = [*given, *self.places]
        arrays: list[Array] = [values[read.operand] for read in self.reads]
        if any(_spread_out(array) is not array for array in arrays):
            return None
        arrays += outs
        ready = self._found(arrays)
        if ready is None:
            plain = self.plain if new else None
            return plain.traced(given) if isinstance(plain, Traceable) else None
        size, place = ready.room
        room = reserved((size,), np.dtype(np.uint8))
        copies, held = list[Step](), [*new, room]
        for number, axis in ready.turned:
            lies = np.moveaxis(arrays[number], axis, -1)
            held.append(reserved(lies.shape, lies.dtype))
            copied = traced_copy(held[-1], lies, self.team)
            if copied is None:
                return None
            copies += copied.steps
            arrays[number] = np.moveaxis(held[-1], -1, axis)
        own = [*ready.addresses, *([(place, len(arrays))] if size else [])]
        places = tuple((at, Place(number, 0)) for at, number in own)
        step = Step(ready.function, ready.arguments, places)
        bases = [*map(address, arrays), address(room)]
        steps = in_parallel(self.team, [[one.at(bases)] for one in step.of_rows(ready.rows)])
        return None if steps is None else Traced([*copies, *steps], outs, held)

    def _found(self, arrays: Sequence[Array]) -> _Ready | None:
        """The function for arrays that lie like these, and the threads that there are."""
        count = (_WORKERS if self.team is None else self.team).count()
        key = count, *[array.strides for array in arrays]
        if key not in self._ready:
            self._ready[key] = self._prepared(arrays, count)
        return self._ready[key]

    def _prepared(self, arrays: Sequence[Array], threads: int) -> _Ready | None:
        """The function for arrays that lie like these; None where there is none."""
        kinds = [kind_of(array.dtype) for array in arrays]
        if not native.is_ready() or None in kinds:
            return None
        found = min(self._ways(arrays), key=lambda one: one.tiling.time, default=None)
        if found is None:
            return None
        own = list(arrays)
        for number, axis in found.turned:
            own[number] = with_neighbours(own[number], axis)
        return self._compiled(found, own, threads)

    def _ways(self, arrays: Sequence[Array]) -> Iterator[_Way]:
        """The tilings that there are: of blocks; of arrays as they lie, or turned; of dots."""
        registers = native.registers()
        problems = [self._problem(arrays, first) for first in (0, 1)]
        for first, problem in enumerate(problems):
            found = None if problem is None else block_tiling(problem, *registers)
            if found is not None:
                yield _Way(found, first)
        straight = list(self._straight(arrays, None))
        for vectors in self._dense(arrays):
            straight = straight or list(self._straight(arrays, vectors))
        yield from straight
        cells = sum(array.size for array in arrays[: self.wrapped])
        if problems[0] is not None and prod(self.extents) <= _AGAIN * cells:
            found = dot_tiling(replace(problems[0], work=sum(self.work)), *registers)
            if found is not None:
                yield _Way(found, 0)

    def _straight(self, arrays: Sequence[Array], vectors: int | None) -> Iterator[_Way]:
        """Those without blocks; arrays are turned for vectors along a dimension."""
        for first in (0, 1):
            turned = () if vectors is None else self._turns(arrays, first, vectors)
            if turned is None:
                continue
            own = list(arrays)
            for number, axis in turned:
                own[number] = with_neighbours(own[number], axis)
            problem = self._problem(own, first)
            found = None if problem is None else tiling(problem, *native.registers())
            if found is not None:
                yield _Way(found, first, turned)

    def _dense(self, arrays: Sequence[Array]) -> list[int]:
        """The dimensions along which results are neighbours."""
        every = self._operands(arrays)[len(self.reads) :]
        dims = range(len(self.extents))
        return [d for d in dims if all(one.steps[d] == one.size for one in every)]

    def _turns(
        self, arrays: Sequence[Array], first: int, vectors: int
    ) -> tuple[tuple[int, int], ...] | None:
        """The arrays of a factor whose cells are to be neighbours along a dimension, and the axes
        that are last then. None where there is no such axis, or too much to copy.
        """
        found: list[tuple[int, int]] = []
        for number in sorted(self.wrap.needs(self.wrap.wanted[first], self.wrapped)):
            axes = [
                axis
                for axis, (_, terms) in enumerate(self.reads[number].axes)
                if any(dim == vectors for dim, _ in terms)
            ]
            array = arrays[number]
            if len(axes) > 1 or array.size * _COPIED > prod(self.extents):
                return None
            found += [(number, axis) for axis in axes if array.strides[axis] != array.itemsize]
        return tuple(found)

    def _operands(self, arrays: Sequence[Array]) -> list[Operand]:
        """How arrays are gone along: those that are read, and those that are written."""
        return [
            moved.of(array.strides, array.itemsize, self.extents)
            for moved, array in zip((*self.reads, *self.writes), arrays, strict=True)
        ]

    def _problem(self, arrays: Sequence[Array], first: int) -> Problem | None:
        """What is known of the sum of products, one factor of which is the `first`."""
        operands = self._operands(arrays)
        if any(one.guards for one in operands[self.wrapped :]):
            return None
        bound = [(one, d) for one in operands for guard in one.guards for d, _ in guard.terms]
        if any(self.extents[d] > 1 and not one.steps[d] for one, d in bound):
            return None  # two places would share a cell, and not what a guard says of them
        sides = [sorted(self.wrap.needs(slot, self.wrapped)) for slot in self.wrap.wanted]
        return Problem(
            self.extents,
            frozenset(self.folded),
            tuple(operands),
            tuple(sides[first]),
            tuple(sides[1 - first]),
            len(self.writes),
            self.work[first],
        )

    def _compiled(self, way: _Way, arrays: Sequence[Array], threads: int) -> _Ready | None:
        found = way.tiling
        tiles, problem = found.tiles, found.problem
        kinds = [_kind(array.dtype) for array in arrays]
        wrap = self.wrap.graph(kinds[: self.wrapped])
        if way.first == 1:
            wrap = replace(wrap, stores=wrap.stores[::-1])
        unwrap = self.unwrap.graph(["float", *kinds[self.wrapped : len(self.reads)]])
        about = f"of products over {'x'.join(map(str, self.extents))}"
        text = dot_text if tiles.summed else product_text if tiles.panel is None else block_text
        function = compiled(text(wrap, unwrap, tiles), about)
        if function is None:
            return None
        moved = zip((*self.reads, *self.writes), arrays, strict=True)
        starts = [one.start(array.strides) for one, array in moved]
        arguments = [problem.extents[dim] for dim in found.dims]
        addresses: list[tuple[int, int]] = []
        room = 0
        for what, number, dim in tiles.arguments():
            match what:
                case "address":
                    addresses.append((len(arguments), number))
                    arguments.append(0)
                case "start":
                    arguments.append(starts[number])
                case "stride":
                    arguments.append(problem.operands[number].steps[found.dims[dim]])
                case "limit":
                    arguments.append(problem.operands[number].limits[dim])
                case "block":
                    arguments.append(found.blocks[dim])
                case "pace":
                    arguments.append(found.paces[dim])
                case "panel":
                    arguments.append(found.panel)
                case _:
                    room = len(arguments)
                    arguments.append(0)
        rows = self._rows(found, arguments, addresses, room, threads)
        return _Ready(
            function,
            tuple(arguments),
            tuple(addresses),
            ctypes.c_int64 * len(arguments),
            (found.room * (1 if rows is None else len(rows)), room),
            rows,
            address_of(function),
            way.turned,
        )

    def _rows(
        self,
        found: Tiling,
        arguments: Sequence[int],
        addresses: Sequence[tuple[int, int]],
        room: int,
        threads: int,
    ) -> NDArray[np.int64] | None:
        """What is added to the arguments for each thread; None where one does all."""
        worth = _SHARE_WORKERS if self.team is None else _SHARE
        most = min(threads, prod(self.extents) // worth)
        tiles, problem = found.tiles, found.problem
        bound = {dim for one in tiles.arrays for guard in one.guards for dim, _ in guard.terms}
        units = {
            n: problem.extents[found.dims[n]] // tile
            for n, tile in enumerate(tiles.kept if tiles.summed else tiles.kept[:-1])
            if n not in bound
        }
        if most < 2 or not units:
            return None
        axis = max(units, key=lambda n: (min(units[n], most), -n))
        count = min(most, units[axis])
        if count < 2:
            return None
        dim, tile = found.dims[axis], tiles.kept[axis]
        extent = problem.extents[dim]
        bounds = [*(units[axis] * n // count * tile for n in range(count)), extent]
        rows = np.zeros((count, len(arguments)), np.int64)
        for n, row in enumerate(rows):
            row[axis] = bounds[n + 1] - bounds[n] - extent
            for (place, _), own in zip(addresses, problem.operands, strict=True):
                row[place] = bounds[n] * own.steps[dim]
            if found.room:
                row[room] = n * found.room
        return rows


def _spread_out(array: Array) -> Array:
    """An array whose cells are memory of their own: guards may hold for one, and not for others."""
    if 0 in array.strides and any(
        not step and n > 1 for n, step in zip(array.shape, array.strides, strict=True)
    ):
        return np.ascontiguousarray(array)
    return array


def _kind(dtype: np.dtype[Any]) -> str:
    kind = kind_of(dtype)
    assert kind is not None
    return kind
