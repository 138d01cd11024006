"""Loops over arrays, compiled for how these lie in memory.

    loop = Loop(graph, shape=(64, 4096), folded=(1,))
    loop([x], [sums])               # or loop([x]), which makes new arrays

Axes along which all arrays go on are one; the innermost is one along which most arrays are dense.
There is a function for each way in which arrays lie, found by their strides. Where there is none,
because LLVM failed, `otherwise` computes the same.

With a `team`, threads of the host's share what there is of a kept axis. What is computed for a cell
is the same as without, fold by fold.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import prod
from struct import Struct
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tapestry.codegen.loops import BYTES, WIDTH, Graph, Layout, loop_text
from tapestry.codegen.loops.folding import vectors_of
from tapestry.runtime.arrays.blocks import BlockCells
from tapestry.runtime.cpu.addresses import address
from tapestry.runtime.cpu.native import Compiled, address_of, compiled
from tapestry.runtime.cpu.steps import Place, Step
from tapestry.runtime.cpu.threads import Team
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.linking import Traced, in_parallel
from tapestry.runtime.prepared.loops.axes import Axes
from tapestry.runtime.prepared.memory import maker, passes_caches, reserved

_DTYPES = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "half": np.dtype(np.float16),
    "bfloat": np.dtype(ml_dtypes.bfloat16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}

Run: TypeAlias = Callable[[Sequence[Any]], Sequence[Array]]
"""A function of arrays that makes new ones."""

_Lying = tuple[object, ...]
"""The threads, what is passing, the strides of boxes, shapes and strides of arrays."""

SHARE = 1 << 17
"""Scalar operations of a thread from which it is worth one: some tens of microseconds."""

_EVEN = 4
"""Steps of each thread along an axis from which it matters little that some have one more."""

_PASSING = 1 << 10
"""Bytes of a row from which it is written past caches, if all that is written is so large."""

_NO_BOXES: Sequence[tuple[int, ...]] = ()


class NotCompiledError(Exception):
    """A loop that was not compiled, and has nothing to run instead."""


@dataclass(frozen=True)
class Ready:
    """A compiled function, its arguments but for addresses, and where these go.

    `rows` are the arguments of several calls, of a part each: addresses are added to what is there.
    """

    function: Compiled
    arguments: tuple[int, ...]
    addresses: tuple[int, ...]
    rows: NDArray[np.int64] | None
    may_fail: bool

    @cached_property
    def address(self) -> int:
        """Where the function is."""
        return address_of(self.function)

    def steps(self, bases: Sequence[int]) -> list[Step]:
        """A step for each call, of arrays that are at these addresses."""
        places = tuple((at, Place(n, 0)) for n, at in enumerate(self.addresses))
        step = Step(self.function, self.arguments, places, self.may_fail)
        return [one.at(bases) for one in step.of_rows(self.rows)]

    @cached_property
    def packed(self) -> Callable[..., bytes]:
        """The arguments as the function reads them, in memory that it does not write to."""
        return Struct(f"{len(self.arguments)}q").pack


class Loop:
    """What a graph computes over an index space of some shape, on arrays of that rank.

    Arrays have extent 1 along axes that they do not vary along; what is folded has it along the
    `folded` axes, but for the states of a running graph. Stores may be written over operands
    of the same shape, cell by cell.
    """

    takes_boxes = True

    def __init__(
        self,
        graph: Graph,
        shape: tuple[int, ...],
        folded: tuple[int, ...] = (),
        about: str = "",
        otherwise: Run | None = None,
        team: Team | None = None,
    ) -> None:
        self._otherwise = otherwise
        self._team = team
        count = prod(shape) * max(1, len(graph.cells) + len(graph.folds))
        self._most = 1 if team is None else max(1, count // SHARE)
        self._graph = graph
        self._shape = shape
        self._folded = folded
        self._about = about
        kinds = graph.kinds
        once = () if graph.running else folded
        kept = tuple(1 if axis in once else extent for axis, extent in enumerate(shape))
        made = [
            *((shape, _DTYPES[kinds[slot]]) for slot in graph.stores),
            *((kept, _DTYPES[kinds[slot]]) for slot in graph.folded),
        ]
        self._made = [(maker(shape, dtype), shape, dtype) for shape, dtype in made]
        self._passing = frozenset(
            number
            for number, (_, kept, dtype) in enumerate(self._made)
            if passes_caches(prod(kept) * dtype.itemsize)
        )
        slots = [*range(len(graph.inputs)), *graph.stores, *graph.folded]
        self._widths = [BYTES[kinds[slot]] for slot in slots]
        self._dtypes = [_DTYPES[kinds[slot]] for slot in slots]
        self._boxes = graph.boxes
        self._axes = Axes(graph, shape, folded, self._widths)
        self._ready: dict[_Lying, Ready | None] = {}

    def __call__(
        self, given: Sequence[Any], outs: Sequence[Array] | None = None
    ) -> Sequence[Array]:
        """The results, in `outs` or new arrays: stores, then folds.

        Raises:
            NotCompiledError: if it could not be compiled, and there is no `otherwise`.
        """
        if outs is None:
            outs = [make(shape, dtype) for make, shape, dtype in self._made]
        arrays = [one if type(one) is np.ndarray else lying(one) for one in given]
        arrays += outs
        ready = self.ready(given, arrays, self._threads)
        if ready is None:
            return self._plainly(given, outs)
        arguments = list(ready.arguments)
        for place, array in zip(ready.addresses, arrays, strict=True):
            arguments[place] = address(array)
        if self._team is None or ready.rows is None:
            if not ready.may_fail:
                ready.function(ready.packed(*arguments))
                return outs
            buffer = (ctypes.c_int64 * len(arguments))(*arguments)
            ready.function(buffer)
            failed = buffer[-1]
        else:
            rows = ready.rows + arguments
            self._team.run(ready.address, rows)
            failed = ready.may_fail and rows[:, -1].any()
        return self._plainly(given, outs) if failed else outs

    def traced(self, given: Sequence[Any], outs: Sequence[Array] | None = None) -> Traced | None:
        """The compiled function that it calls; perhaps to write to some arrays."""
        held = [] if outs else [reserved(shape, dtype) for _, shape, dtype in self._made]
        made = outs or held
        arrays = [*map(lying, given), *made]
        ready = self.ready(given, arrays, self._threads)
        if ready is None:
            return None
        team = self._team if self._most > 1 else None
        steps = in_parallel(team, [[one] for one in ready.steps([*map(address, arrays)])])
        return None if steps is None else Traced(steps, made, held)

    @property
    def _threads(self) -> int:
        """How many threads a call may use at the moment."""
        return 1 if self._team is None or self._most < 2 else self._team.count()

    def ready(
        self,
        given: Sequence[Any],
        arrays: Sequence[Array],
        threads: int,
        passing: frozenset[int] = frozenset(),
    ) -> Ready | None:
        """The function for so many threads, of `arrays` that lie like these: `given`, and outputs.

        The outputs whose numbers are `passing` are read when caches have them no more; those that
        are so large are known to be. None where it cannot be compiled.
        """
        along = [given[array].data.strides for array in self._boxes] if self._boxes else _NO_BOXES
        if passing or self._passing:
            outs = enumerate(arrays[len(given) :])
            large = passing | self._passing
            passing = frozenset(n for n, out in outs if n in large and out.flags.aligned)
        key = threads, passing, *along, *[(array.shape, array.strides) for array in arrays]
        found = self._ready.get(key)
        if found is None and key not in self._ready:
            found = self._prepared(arrays, along, min(threads, self._most), passing)
            self._ready[key] = found
        return found

    def _plainly(self, given: Sequence[Any], outs: Sequence[Array]) -> Sequence[Array]:
        """The results without a function of LLVM's; all are computed before one is written."""
        if self._otherwise is None:
            raise NotCompiledError(f"a loop {self._about} was not compiled")
        with np.errstate(all="ignore"):
            made = self._otherwise(given)
        for out, array in zip(outs, made, strict=True):
            np.copyto(out, array)
        return outs

    def _prepared(
        self,
        arrays: Sequence[Array],
        along: Sequence[tuple[int, ...]],
        threads: int,
        passing: frozenset[int],
    ) -> Ready | None:
        """The function for arrays that lie like these; None where it cannot be compiled.

        `along` has the strides of each box.

        Raises:
            ValueError: if they are not what the loop is for; it would touch other memory.
        """
        for array, dtype in zip(arrays, self._dtypes, strict=True):
            fits = array.ndim in (0, len(self._shape)) and all(
                have in (1, want) for have, want in zip(array.shape, self._shape, strict=False)
            )
            if array.dtype != dtype or not fits:
                message = f"{array.dtype} {array.shape} in a loop of {dtype} over {self._shape}"
                raise ValueError(message)
        extents, steps, folded = self._axes.of(arrays)
        in_rows = self._axes.in_rows(extents, steps, folded)
        if in_rows is not None:
            extents, folded = [*extents[:-2], prod(extents[-2:])], [*folded[:-2], in_rows.folded]
            lasts = [width if n in in_rows.own else 0 for n, width in enumerate(self._widths)]
            steps = [[*own[:-2], last] for own, last in zip(steps, lasts, strict=True)]
        dense = tuple(own[-1] in (0, width) for own, width in zip(steps, self._widths, strict=True))
        moves = tuple(tuple(step != 0 for step in own) for own in steps)
        ahead = self._axes.ahead(extents, steps)
        boxes = {
            (array, dim): stride
            for array, own in zip(self._boxes, along, strict=True)
            for dim, stride in enumerate(own)
            if stride != self._widths[array]
        }
        crossed = self._axes.crossed(extents, steps, folded)
        past = None
        if passing and not (folded[-1] or self._graph.running or crossed or in_rows):
            stores = range(len(self._graph.inputs), len(arrays) - len(self._graph.folded))
            large = (n for n in stores if n - stores.start in passing)
            past = next((n for n in large if self._is_long(extents[-1], steps[n][-1], n)), None)
        layout = Layout(
            tuple(folded),
            moves,
            dense,
            tuple(ahead),
            tuple(boxes),
            crossed,
            past,
            columns=1 if in_rows is None else in_rows.columns,
            repeated=() if in_rows is None else in_rows.repeated,
            spread=() if in_rows is None else in_rows.spread,
            by_rows=in_rows is not None and in_rows.by_rows,
        )
        function = compiled(loop_text(self._graph, layout), self._about)
        if function is None:
            return None
        arguments, addresses = list(extents), list[int]()
        for array, axis in layout.arguments():
            if axis is None:
                addresses.append(len(arguments))
            arguments.append(0 if axis is None else steps[array][axis])
        arguments += [*ahead.values(), *boxes.values()]
        if self._graph.may_fail:
            arguments.append(0)
        unit, of_rows = vectors_of(layout.columns) * WIDTH, layout.spread
        if layout.by_rows:
            folded[-1] = False  # rows may be parted
            unit = layout.columns * WIDTH
            of_rows += tuple(range(len(arrays) - len(self._graph.folded), len(arrays)))
        axis, cuts = _cuts(extents, folded, threads, unit)
        rows = None
        if len(cuts) > 1:
            far: list[int | Fraction] = [own[axis] for own in steps]
            if axis == len(extents) - 1:
                for array in of_rows:
                    far[array] = Fraction(self._widths[array], layout.columns)
            rows = np.zeros((len(cuts), len(arguments)), np.int64)
            for row, (start, end) in zip(rows, cuts, strict=True):
                row[axis] = end - start - extents[axis]
                row[addresses] = [int(start * one) for one in far]
        return Ready(function, tuple(arguments), tuple(addresses), rows, self._graph.may_fail)

    def _is_long(self, extent: int, step: int, array: int) -> bool:
        """Whether rows are long beside the parts of lines that they begin and end with."""
        width = self._widths[array]
        return step == width and extent * width >= _PASSING


def lying(given: Any) -> Array:
    """An array, or the first cells of boxes."""
    return given.corners if isinstance(given, BlockCells) else np.asarray(given)


def _cuts(
    extents: Sequence[int], folded: Sequence[bool], count: int, vectors: int
) -> tuple[int, list[tuple[int, int]]]:
    """An axis that is not folded, and at most so many parts of it.

    It is the outermost one that has parts of about the same length, else the one of most. The last
    one is parted at multiples of `vectors`.
    """
    units = [-(-extent // vectors) for extent in extents[-1:]]
    units = [0 if fold else n for n, fold in zip([*extents[:-1], *units], folded, strict=True)]
    even = (axis for axis, own in enumerate(units) if own >= _EVEN * count)
    axis = next(even, max(range(len(units)), key=units.__getitem__))
    parts = min(count, units[axis])
    if parts < 2:
        return axis, []
    unit = vectors if axis == len(extents) - 1 else 1
    bounds = [units[axis] * n // parts * unit for n in range(parts)]
    return axis, list(pairwise([*bounds, extents[axis]]))
