"""Playing a tape on parts of one shape, in memory that is found once.

    frame = Frame(tape, stores=[y])
    frame.play([part_of_x], [part_of_y])        # the first time arrays show their shapes
    frame.play([next_of_x], [next_of_y])        # from then on, in the same memory

What a call computes goes into the output's own memory, over an operand that nothing needs any more,
or into a place in the thread's scratch memory; those whose lives do not meet share bytes. All
frames of a thread use the same scratch memory, as only one plays at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tapestry.runtime.arena import ALIGNMENT, Life, place
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.tape import Call, Tape


class _Scratch(threading.local):
    """Memory of a thread, as large as any frame needs."""

    def __init__(self) -> None:
        self.block = np.empty(0, np.uint8)

    def of(self, size: int) -> Array:
        """At least so many bytes; frames that had less keep what they had."""
        if self.block.size < size:
            made = np.empty(max(size, 2 * self.block.size) + ALIGNMENT, np.uint8)
            self.block = made[-made.ctypes.data % ALIGNMENT :]
        return self.block


_scratch = _Scratch()


class Frame:
    """A tape on parts whose arrays have one shape each; for one thread."""

    def __init__(self, tape: Tape, stores: Sequence[int]) -> None:
        """`stores` are the slots of what is written out, in the order of the outputs."""
        self._tape = tape
        self._stores = list(stores)
        self._values: list[Any] = [None] * tape.size
        for slot, constant in tape.constants.items():
            self._values[slot] = constant
        self._plan: _Plan | None = None

    def play(self, sources: Sequence[Any], outs: Sequence[Array]) -> None:
        """Compute from the values of the sources into the outputs."""
        values = self._values
        for slot, value in zip(self._tape.sources, sources, strict=True):
            values[slot] = value
        plan = self._plan
        if plan is None:
            for call in self._tape.calls:
                values[call.out] = call.function(*(values[slot] for slot in call.ins))
            for slot, out in zip(self._stores, outs, strict=True):
                store(values[slot], out)
            self._settle(outs)
            return
        for slot, number in plan.direct.items():
            values[slot] = outs[number]
        for call, into in plan.steps:
            given = [values[slot] for slot in call.ins]
            if not into:
                values[call.out] = call.function(*given)
                continue
            out = values[call.out]
            made = call.function(*given, out=out)
            if made is not out:
                out[...] = made
        for number in plan.copied:
            store(values[self._stores[number]], outs[number])
        for slot in plan.dropped:
            values[slot] = None

    def state(self, sources: Sequence[Any]) -> list[Array]:
        """What the stores are for a part, as arrays of their own."""
        values = self._values
        if self._plan is not None:
            self.play(sources, ())
            return [np.array(values[slot]) for slot in self._stores]
        for slot, value in zip(self._tape.sources, sources, strict=True):
            values[slot] = value
        for call in self._tape.calls:
            values[call.out] = call.function(*(values[slot] for slot in call.ins))
        made = [np.array(values[slot]) for slot in self._stores]
        self._settle(())
        return made

    def _settle(self, outs: Sequence[Array]) -> None:
        """Shapes are known: find places, and let go of everything else."""
        self._plan = _planned(self._tape, self._stores, self._values, outs)
        for slot in self._plan.dropped:
            self._values[slot] = None


def store(value: Array, out: Array) -> None:
    """Write a value to an output, which may lack dimensions that the value varies along not.

    The output has extent 1 there; the first of the value's cells, which are the same, is written.
    """
    if np.ndim(value) == out.ndim:
        value = value[
            tuple(
                slice(1) if n > m == 1 else slice(None)
                for n, m in zip(value.shape, out.shape, strict=True)
            )
        ]
    out[...] = value


@dataclass(frozen=True)
class _Plan:
    """How a tape is played once shapes are known.

    `steps` are the calls that are made, with whether the result's slot holds what it is written
    into; `direct` the slots that are an output's memory; `copied` the other outputs; `dropped` what
    is let go of at the end.
    """

    steps: list[tuple[Call, bool]]
    direct: dict[int, int]
    copied: list[int]
    dropped: list[int]


def _planned(tape: Tape, stores: Sequence[int], values: list[Any], outs: Sequence[Array]) -> _Plan:
    """The plan, and in `values` the places of what is written into scratch memory."""
    calls, end = tape.calls, len(tape.calls)
    written = [call.out for call in calls if call.kind == "into"]
    shapes = {slot: (np.shape(values[slot]), values[slot].dtype) for slot in written}
    roots = _roots(tape)
    last = {root: n for n, c in enumerate(calls) for slot in c.ins for root in roots[slot]}
    last |= {root: end for slot in stores for root in roots[slot]}
    direct: dict[int, int] = {}
    for number, (slot, out) in enumerate(zip(stores, outs, strict=False)):
        own = roots[slot] == {slot} and stores.count(slot) == 1
        if own and shapes[slot] == (out.shape, out.dtype):
            direct[slot] = number
    places: dict[int, int] = {}  # the slot whose memory a result is written to
    lives: dict[int, Life] = {}
    over: dict[int, int] = {}  # the operand that a result is written over
    for n, call in enumerate(calls):
        if call.kind != "into" or call.out in direct or not shapes[call.out][0]:
            continue
        spare = _spare(call, n, roots, last, places, shapes) if call.in_place else None
        if spare is None:
            places[call.out] = call.out
            lives[call.out] = Life(n, last.get(call.out, n))
        else:
            (root,) = roots[spare]
            places[call.out] = places[root]
            over[call.out] = spare
            first = lives[places[root]].first
            lives[places[root]] = Life(first, last.get(call.out, n))
    _allocate(calls, shapes, values, lives, over, places)
    fixed = {*tape.constants, *places}
    steps: list[tuple[Call, bool]] = []
    for call in calls:
        if call.out in places or call.out in direct:
            steps.append((call, True))
        elif call.kind == "view" and call.ins[0] in fixed:
            values[call.out] = call.function(values[call.ins[0]])
            fixed.add(call.out)
        else:
            steps.append((call, False))
    copied = [n for n in range(len(outs)) if n not in direct.values()]
    dropped = [slot for slot in range(tape.size) if slot not in fixed]
    kept = () if outs else stores  # `state` reads them afterwards
    return _Plan(steps, direct, copied, [slot for slot in dropped if slot not in kept])


def _roots(tape: Tape) -> list[set[int]]:
    """Per slot, the calls' results on whose memory its value may be."""
    roots: list[set[int]] = [set() for _ in range(tape.size)]
    for call in tape.calls:
        if call.kind == "into":
            roots[call.out] = {call.out}
        else:  # what is not said to be new may be a view of what it takes
            roots[call.out] = set().union(*(roots[slot] for slot in call.ins))
    return roots


def _spare(
    call: Call,
    n: int,
    roots: Sequence[set[int]],
    last: dict[int, int],
    places: dict[int, int],
    shapes: dict[int, tuple[tuple[int, ...], np.dtype[Any]]],
) -> int | None:
    """An operand all of whose memory is like the result, and that nothing needs after the call."""
    for slot in call.ins:
        if len(roots[slot]) != 1:
            continue
        (root,) = roots[slot]
        if root not in places or last.get(root) != n:
            continue
        alike = shapes.get(slot) == shapes[call.out] and slot == root
        if alike:
            return slot
    return None


def _allocate(
    calls: Sequence[Call],
    shapes: dict[int, tuple[tuple[int, ...], np.dtype[Any]]],
    values: list[Any],
    lives: dict[int, Life],
    over: dict[int, int],
    places: dict[int, int],
) -> None:
    """Put arrays in the thread's scratch memory into the slots that have places there."""
    sizes = {slot: prod(shapes[slot][0]) * shapes[slot][1].itemsize for slot in lives}
    arena = place(sizes, lives)
    block = _scratch.of(arena.size)
    for call in calls:
        if call.out in over:
            values[call.out] = values[over[call.out]]
        elif call.out in places:
            shape, dtype = shapes[call.out]
            first = arena.offsets[call.out]
            part = block[first : first + sizes[call.out]]
            values[call.out] = part.view(dtype).reshape(shape)
