"""Calls of a tape that are computed by loops: what is between products and other large functions.

    fused = fuse(tape, stores, seen)        # a tape of the same slots with fewer calls

A call waits until what it computes is needed by one that no loop does, by a fold, or at the end;
then all that it waits for is one loop. A value that other calls need later is written by the loop
that computes it, unless it takes less to compute again. Values that are the same along a dimension
are computed once for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tapestry.algebra.named import Scalar
from tapestry.codegen.loops import Cell, Folded, Graph, Number, is_known, kind_of
from tapestry.codegen.loops.cells import cast_between, written
from tapestry.codegen.loops.graphs import FOLDS, Emit, Fetch
from tapestry.codegen.loops.graphs import Merged as MergedStates
from tapestry.codegen.loops.vectors import HALVES, Value, Writer, number_of
from tapestry.runtime.prepared.loops.loop import Loop, Run
from tapestry.runtime.prepared.loops.merging import compared_parts, emitted, staying
from tapestry.runtime.prepared.tapes.meanings import (
    Arranged,
    Cast,
    Copied,
    Masked,
    Merged,
    Part,
    Placed,
    Product,
    Reduced,
    Running,
    Spread,
)
from tapestry.runtime.prepared.tapes.places import Seen
from tapestry.runtime.prepared.tapes.tape import Call, Tape

_AGAIN = 4
"""Costs up to which a value is computed again instead of being written and read."""

_MOST = 48
"""Calls that a loop computes at most, and arrays that it touches."""

_SEVERAL = 4
"""Times that a value is computed again from which it is written instead."""

_COSTLY: dict[str, int] = {
    **dict.fromkeys(("math.exp", "math.expm1", "math.tanh", "math.erf"), 12),
    **dict.fromkeys(("math.exp2", "math.log", "math.log1p", "math.log2", "math.log10"), 12),
    **dict.fromkeys(("math.sin", "math.cos", "math.tan", "math.atan", "math.atan2"), 32),
    **dict.fromkeys(("math.asin", "math.acos", "math.sinh", "math.cosh", "math.cbrt"), 32),
    **dict.fromkeys(("math.asinh", "math.acosh", "math.atanh", "math.powf"), 32),
    **dict.fromkeys(("arith.divf", "math.sqrt", "math.rsqrt"), 4),
}
"""What takes longer than an addition."""


def fuse(tape: Tape, stores: Sequence[int], seen: Mapping[int, Seen]) -> Tape:
    """A tape that computes the stores by loops where it can."""
    return _Fusing(tape, stores, seen).fused()


def work(tape: Tape, seen: Mapping[int, Seen]) -> int:
    """How many scalar operations there are for loops to do."""
    calls = (call for call in tape.calls if in_loops(call, seen))
    return sum(_operations(call) * prod(_extents(call, seen)) for call in calls)


def _extents(call: Call, seen: Mapping[int, Seen]) -> tuple[int, ...]:
    """All that a call is done for: parts of a state may be the same along what is kept."""
    if not _is_fold(call):
        return seen[call.out].shape
    return np.broadcast_shapes(*(seen[slot].shape for slot in call.ins))


def _operations(call: Call) -> int:
    """How many there are for a cell."""
    return len(call.meaning.merging.cells) if isinstance(call.meaning, Merged | Running) else 1


def in_loops(call: Call, seen: Mapping[int, Seen]) -> bool:
    """Whether a loop can do what a call does."""
    meaning = call.meaning
    if isinstance(meaning, Merged | Running):
        return _is_merged(call, meaning, seen)
    if meaning is None or any(slot not in seen for slot in (*call.ins, call.out)):
        return False
    if seen[call.out].shape == ():
        return False
    if any(kind_of(seen[slot].dtype) is None for slot in (*call.ins, call.out)):
        return False
    match meaning:
        case Cast():
            return cast_between(seen[call.ins[0]].dtype, meaning.dtype) is not None
        case Reduced():
            return meaning.primitive in FOLDS and kind_of(seen[call.out].dtype) not in HALVES
        case Scalar():
            return is_known(meaning)
        case Placed(counted=True):
            whole, have = seen[call.out].shape, seen[call.ins[-1]].shape
            return np.broadcast_shapes(whole, have) == whole
        case _:
            return not isinstance(meaning, Product | Part | Arranged)


def _is_merged(call: Call, meaning: Merged | Running, seen: Mapping[int, Seen]) -> bool:
    """Whether states are of the types that they merge in, all along what is folded."""
    if any(slot not in seen for slot in call.ins) or seen[call.ins[0]].shape == ():
        return False
    parts = [seen[slot] for slot in call.ins]
    typed = all(a.dtype == b for a, b in zip(parts, meaning.merging.dtypes, strict=True))
    lines = {tuple(part.shape[axis] for axis in meaning.axes) for part in parts}
    return typed and len(lines) == 1


def _is_inner(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether values of a shape are the same at several places of an axis before one of theirs."""
    again = 1
    for extent, whole in zip(own, shape, strict=True):
        if extent < whole:
            again *= whole
        elif extent > 1 and again >= _SEVERAL:
            return True
    return False


def _is_fold(call: Call) -> bool:
    return isinstance(call.meaning, Reduced | Merged | Running)


class _Fusing:
    def __init__(self, tape: Tape, stores: Sequence[int], seen: Mapping[int, Seen]) -> None:
        self._tape = tape
        self._stores = set(stores)
        self._seen = seen
        self._waiting: dict[int, Call] = {}
        """What is not computed yet, by its slot."""
        self._made = Tape()
        self._made.size = tape.size
        self._made.sources = list(tape.sources)
        self._made.constants = dict(tape.constants)
        self._left: dict[int, int] = {}
        """By how many calls that are not on the new tape a slot is read."""
        self._parts: dict[int, list[int]] = {}
        """The slots of the parts of each list."""
        for call in tape.calls:
            for slot in set(call.ins):
                self._left[slot] = self._left.get(slot, 0) + 1
            if isinstance(call.meaning, Part):
                self._parts.setdefault(call.ins[0], []).append(call.out)
        self._needed: frozenset[int] = frozenset()
        """What a loop takes that is written once those before it are."""
        self._merged: set[int] = set()
        """Lists whose parts loops make."""

    def fused(self) -> Tape:
        for call in self._tape.calls:
            if isinstance(call.meaning, Part) and call.ins[0] in self._merged:
                continue
            if not in_loops(call, self._seen):
                for slot in call.ins:
                    self._compute([slot])
                self._made.calls.append(call)
                self._read(call)
            elif _is_fold(call):
                self._fold(call)
            else:
                self._waiting[call.out] = call
                if len(self._behind([call.out])) > _MOST:
                    for slot in call.ins:
                        self._compute([slot])
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for slot in self._stores:
            if slot in self._waiting:
                by_shape.setdefault(self._seen[slot].shape, []).append(slot)
        for slots in by_shape.values():
            self._compute(sorted(slots))
        return self._made

    def _read(self, call: Call) -> None:
        for slot in set(call.ins):
            self._left[slot] -= 1

    def _compute(self, wanted: Sequence[int]) -> None:
        """Values of one shape, by a loop."""
        wanted = [slot for slot in wanted if slot in self._waiting]
        if wanted:
            self._loop(wanted, self._seen[wanted[0]].shape, None)

    def _fold(self, call: Call) -> None:
        """A fold, by a loop that also computes what it folds."""
        self._read(call)
        if isinstance(call.meaning, Merged | Running):
            self._merged.add(call.out)
        self._loop([], _extents(call, self._seen), call)

    def _ahead(self, wanted: Sequence[int], shape: tuple[int, ...]) -> None:
        """Compute values by loops of their own that one over a shape would compute many times.

        What is the same along its last axes is computed outside of those; other values are written,
        unless it takes less to compute them for each point.
        """
        found: dict[tuple[int, ...], list[int]] = {}
        left, met = list(wanted), set[int]()
        while left:
            slot = left.pop()
            if slot not in self._waiting or slot in met:
                continue
            met.add(slot)
            own = self._seen[slot].shape
            if _is_inner(own, shape) and self._cost(slot) > _AGAIN:
                found.setdefault(own, []).append(slot)
            else:
                left += self._waiting[slot].ins
        before, every = self._needed, {*wanted, *(slot for own in found.values() for slot in own)}
        self._needed = before | every
        for own, slots in found.items():
            # What one of these loops needs, and writes, may be what another one is for.
            missing = sorted(slot for slot in slots if slot in self._waiting)
            if missing:
                self._loop(missing, own, None)
        self._needed = before

    def _behind(self, wanted: Sequence[int]) -> list[int]:
        """What waits, and is needed for some values, in order."""
        found: set[int] = set()
        left = list(wanted)
        while left:
            slot = left.pop()
            if slot in self._waiting and slot not in found:
                found.add(slot)
                left += self._waiting[slot].ins
        return [slot for slot in self._waiting if slot in found]

    def _cost(self, slot: int) -> int:
        """What it takes to compute a value of those that are there."""
        calls = [self._waiting[one] for one in self._behind([slot])]
        return sum(
            _COSTLY.get(c.meaning.name, 1) if isinstance(c.meaning, Scalar) else 1 for c in calls
        )

    def _loop(self, wanted: Sequence[int], shape: tuple[int, ...], fold: Call | None) -> None:
        self._ahead([*wanted, *([] if fold is None else fold.ins)], shape)
        inside = self._behind([*wanted, *([] if fold is None else fold.ins)])
        calls = [self._waiting[slot] for slot in inside]
        own = {*inside}
        kept = list(wanted)
        for slot in inside:
            if slot in kept or self._seen[slot].shape != shape:
                continue
            readers = sum(slot in call.ins for call in calls)
            later = self._left[slot] > readers or slot in self._stores
            view = isinstance(self._waiting[slot].meaning, Spread)
            if later and not view and (slot in self._stores or self._cost(slot) > _AGAIN):
                kept.append(slot)
        given = sorted({slot for call in calls for slot in call.ins} - own)
        if fold is not None:
            given = sorted({*given, *fold.ins} - own)
        graph = self._graph(given, calls, kept, fold)
        arrays = [slot for slot in given if not self._is_number(slot)]
        meaning = None if fold is None else fold.meaning
        folded = meaning.axes if isinstance(meaning, Reduced | Merged | Running) else ()
        about = f"of {len(calls) + (fold is not None)} operations over {'x'.join(map(str, shape))}"
        ends = () if fold is None else self._parts.get(fold.out, [fold.out])
        outs = (*kept, *ends)
        every = [*calls, *self._folding(fold)]
        loop = Loop(graph, shape, folded, about, self._plainly(arrays, every, outs))
        # What fails is computed once more by the calls, from operands that are not overwritten.
        mapped = 0 if graph.may_fail else len(kept)
        self._made.calls.append(Call(loop, tuple(arrays), outs, "loop", mapped=mapped))
        for slot in kept:
            self._read(self._waiting.pop(slot))
        for slot in reversed(inside):  # what nobody needs any more does not read, either
            wanted_later = self._left.get(slot) or slot in self._stores or slot in self._needed
            if slot in self._waiting and not wanted_later:
                self._read(self._waiting.pop(slot))

    def _folding(self, fold: Call | None) -> list[Call]:
        """A fold, and those that take the parts of what it makes."""
        if fold is None:
            return []
        taken = (call for call in self._tape.calls if isinstance(call.meaning, Part))
        return [fold, *(call for call in taken if call.ins == (fold.out,))]

    def _plainly(self, ins: Sequence[int], calls: Sequence[Call], outs: Sequence[int]) -> Run:
        """What a loop computes as the calls that it stands for."""
        every, ins, outs = list(calls), list(ins), list(outs)
        needed = {slot for call in every for slot in call.ins}
        known = {slot: one for slot, one in self._tape.constants.items() if slot in needed}

        def run(given: Sequence[Any]) -> list[Any]:
            values = known | dict(zip(ins, given, strict=True))
            for call in every:
                values[call.out] = call.function(*(values[slot] for slot in call.ins))
            return [values[slot] for slot in outs]

        return run

    def _is_number(self, slot: int) -> bool:
        constants = self._tape.constants
        return slot in constants and np.ndim(constants[slot]) == 0

    def _graph(
        self, given: Sequence[int], calls: Sequence[Call], kept: Sequence[int], fold: Call | None
    ) -> Graph:
        arrays = [slot for slot in given if not self._is_number(slot)]
        numbers = [slot for slot in given if self._is_number(slot)]
        place = {slot: n for n, slot in enumerate([*arrays, *numbers])}
        cells: list[Cell | Fetch] = []
        for call in calls:
            ins = tuple(place[slot] for slot in call.ins)
            if isinstance(call.meaning, Spread | Copied):
                place[call.out] = ins[0]
                continue
            place[call.out] = len(given) + len(cells)
            if isinstance(call.meaning, Placed):
                cells.append(self._fetch(call, call.meaning, ins))
            else:
                cells.append(Cell(self._emit(call), ins, self._kind(call.out)))
        slots = () if fold is None else tuple(place[slot] for slot in fold.ins)
        constants = self._tape.constants
        return Graph(
            tuple(self._kind(slot) for slot in arrays),
            tuple(Number(number_of(constants[slot]), self._kind(slot)) for slot in numbers),
            tuple(cells),
            tuple(place[slot] for slot in kept),
            () if fold is None else (_folded(fold, slots, self._narrow(fold)),),
            fold is not None and isinstance(fold.meaning, Running),
        )

    def _narrow(self, fold: Call) -> frozenset[int]:
        """The parts of states of which 32 bits say all, where those of points are `bounded`."""
        if not isinstance(fold.meaning, Merged):
            return frozenset()
        makers = {call.out: call for call in self._tape.calls if len(call.outs) == 1}

        def is_bounded(slot: int) -> bool:
            call = makers.get(slot)
            while call is not None and isinstance(call.meaning, Spread):
                call = makers.get(call.ins[0])
            return call is not None and isinstance(call.meaning, Cast) and call.meaning.bounded

        parts = compared_parts(fold.meaning.merging)
        return frozenset(part for part in parts if is_bounded(fold.ins[part]))

    def _kind(self, slot: int) -> str:
        kind = kind_of(self._seen[slot].dtype)
        assert kind is not None
        return kind

    def _fetch(self, call: Call, meaning: Placed, ins: tuple[int, ...]) -> Fetch:
        array, at, rest = ins[0], ins[1 : meaning.rank + 1], ins[meaning.rank + 1 :]
        last = rest[0] if rest else None
        otherwise, counted = (None, last) if meaning.counted else (last, None)
        extents = self._seen[call.ins[0]].extents
        return Fetch(array, at, extents, self._kind(call.out), otherwise, counted)

    def _emit(self, call: Call) -> Emit:
        match call.meaning:
            case Scalar() as op:
                return partial(written, op)
            case Cast(dtype):
                cast = cast_between(self._seen[call.ins[0]].dtype, dtype)
                assert cast is not None
                return lambda write, values: cast(write, values[0])
            case Masked(zero):
                return lambda write, values: _masked(write, values, zero)
            case _:
                raise AssertionError(call.meaning)


def _folded(fold: Call, slots: tuple[int, ...], narrow: frozenset[int]) -> Folded | MergedStates:
    match fold.meaning:
        case Reduced(primitive, zero):
            return Folded(slots[0], primitive, zero)
        case Merged(merging, zeros):
            stays = staying(merging)
            return MergedStates(slots, emitted(merging), zeros, narrow=narrow, stays=stays)
        case Running(merging, zeros):
            return MergedStates(slots, emitted(merging), zeros, one_by_one=merging.rounds)
        case _:
            raise AssertionError(fold.meaning)


def _masked(write: Writer, values: Sequence[Value], zero: float) -> Value:
    mask, value = values
    return write.chosen(mask, value, write.number(zero, value.kind))
