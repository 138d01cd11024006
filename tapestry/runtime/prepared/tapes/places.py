"""Where the results of a tape's calls are written, once their shapes are known.

    plan = planned(tape, stores, seen, values, outs)

A result goes into an output's own memory; over an operand that nothing needs after the call, cell
by cell; or into a place in the thread's scratch memory, which is that of others whose lives it does
not meet. All frames of a thread use the same scratch memory, as only one plays at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tapestry.arena import ALIGNMENT, Life, place
from tapestry.codegen.loops.vectors import LONG
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.tapes.tape import Call, Tape


@dataclass(frozen=True)
class Seen:
    """What a call made: how an array lies in memory."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...]
    extents: tuple[int, ...] = ()
    """Those of a box whose first cell this is."""

    @staticmethod
    def of(array: Array) -> Seen:
        """An array as it is."""
        return Seen(array.shape, array.dtype, array.strides)

    @property
    def long(self) -> list[tuple[int, int]]:
        """Extents and strides of the axes that have more than one cell."""
        return [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if n != 1]

    @property
    def apart(self) -> bool:
        """Whether each cell is memory of its own: axes step over all that is within smaller steps.

        So what is written to one cell is not read as another, as it is in windows that overlap.
        """
        within = self.dtype.itemsize
        for extent, step in sorted(self.long, key=lambda axis: abs(axis[1])):
            if abs(step) < within:
                return False
            within += abs(step) * (extent - 1)
        return True

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Direct:
    """A result in the memory of an output, perhaps without some of its axes of extent 1."""

    number: int
    shape: tuple[int, ...]

    def of(self, outs: Sequence[Array]) -> Array:
        """The array, of those of the outputs."""
        out = outs[self.number]
        if out.shape == self.shape:
            return out
        return out.squeeze()[tuple(None if n == 1 else slice(None) for n in self.shape)]


@dataclass(frozen=True)
class Plan:
    """How a tape is played once shapes are known.

    `steps` are the calls that are made, with whether the result's slot holds what it is written
    into; `direct` the slots that are an output's memory, and their shapes; `copied` the other
    outputs; `dropped` what is let go of at the end. `scratch` is the thread's memory, of which so
    many bytes are `used`.
    """

    steps: list[tuple[Call, bool]]
    direct: dict[int, Direct]
    copied: list[int]
    dropped: list[int]
    scratch: Array
    used: int


def planned(
    tape: Tape,
    stores: Sequence[int],
    seen: Mapping[int, Seen],
    values: list[Any],
    outs: Sequence[Array],
    passing: frozenset[int] = frozenset(),
) -> Plan:
    """The plan, and in `values` the memory of what is written into scratch.

    What outputs whose numbers are `passing` are computed over is not in their memory, which is read
    when caches have it no more.
    """
    roots = _roots(tape)
    direct: dict[int, Direct] = {}
    for number, (slot, out) in enumerate(zip(stores, outs, strict=False)):
        root = _viewed(tape, slot)
        own = roots[slot] == {root} and sum(root in roots[one] for one in stores) == 1
        fits = own and (seen[slot].shape, seen[slot].dtype) == (out.shape, out.dtype)
        if fits and seen[root].long == seen[slot].long and seen[root].dtype == out.dtype:
            direct[root] = Direct(number, seen[root].shape)
    found = _places(tape, stores, seen, roots, direct, passing)
    sizes = {slot: seen[slot].bytes for slot in found.lives}
    arena = place(sizes, found.lives)
    block = scratch(arena.size, playing=True)
    own = _of_loops(tape)
    fixed = set(tape.constants)
    steps: list[tuple[Call, bool]] = []
    for call in tape.calls:
        for slot in call.outs:
            if slot in found.over:
                values[slot] = values[found.over[slot]]
            elif slot in found.lives:
                first, kind = arena.offsets[slot], seen[slot]
                part = block[first : first + sizes[slot]].view(kind.dtype)
                values[slot] = _laid(part, kind.shape) if slot in own else part.reshape(kind.shape)
            else:
                continue
            fixed.add(slot)
        if call.kind == "loop" or call.out in fixed:
            steps.append((call, True))
        elif call.kind == "view" and call.ins[0] in fixed:
            values[call.out] = call.function(values[call.ins[0]])
            fixed.add(call.out)
        else:
            steps.append((call, call.out in direct))
    written = {one.number for one in direct.values()}
    copied = [number for number in range(len(outs)) if number not in written]
    dropped = [slot for slot in range(tape.size) if slot not in fixed]
    return Plan(steps, direct, copied, dropped, block, arena.size)


def _viewed(tape: Tape, slot: int) -> int:
    """What a value is a view of; itself if it is none."""
    views = {call.out: call.ins[0] for call in tape.calls if call.kind == "view"}
    while slot in views:
        slot = views[slot]
    return slot


def _of_loops(tape: Tape) -> set[int]:
    """The slots that loops alone write and read: how these lie is theirs."""
    made = {slot for call in tape.calls if call.kind == "loop" for slot in call.outs}
    return made.difference(*(call.ins for call in tape.calls if call.kind != "loop"))


def _laid(memory: Array, shape: tuple[int, ...]) -> Array:
    """An array whose cells are neighbours along axes that fill vectors, rather than short ones."""
    order = sorted(range(len(shape)), key=lambda axis: shape[axis] >= LONG)
    return memory.reshape([shape[axis] for axis in order]).transpose(np.argsort(order))


@dataclass(frozen=True)
class _Places:
    """How long results need the place that they have; the operands that others are written over."""

    lives: dict[int, Life]
    over: dict[int, int]


def _places(
    tape: Tape,
    stores: Sequence[int],
    seen: Mapping[int, Seen],
    roots: Sequence[set[int]],
    direct: dict[int, Direct],
    passing: frozenset[int],
) -> _Places:
    """The places of results, but for those in `direct`, to which some are added.

    What an output is computed over, step by step, may be in the output's memory from the start,
    unless that is `passing`.
    """
    calls = tape.calls
    last = {root: n for n, c in enumerate(calls) for slot in c.ins for root in roots[slot]}
    last |= {root: len(calls) for slot in stores for root in roots[slot]}
    lives: dict[int, Life] = {}
    over: dict[int, int] = {}
    owner: dict[int, int] = {}  # of each result and its views, the one whose place it is in

    taken: set[int] = set()  # places that operands of a call had, and results of it have

    def spare(call: Call, out: int, n: int) -> int | None:
        """An operand that is all of a place like the result, and that nothing needs any more.

        No other operand, and no other result, lies there.
        """
        for slot in call.ins:
            if slot not in owner or not seen[slot].apart:
                continue
            (root,) = roots[slot]
            others = {*call.ins, *call.outs} - {slot, out}
            if owner[slot] in taken or any(owner.get(o) == owner[slot] for o in others):
                continue
            kind = seen[slot]
            alike = (kind.shape, kind.dtype) == (seen[out].shape, seen[out].dtype)
            if alike and last[root] == n and kind.bytes == seen[root].bytes:
                return slot
        return None

    def move(own: int, slot: int, to: Direct) -> None:
        """What is in the place of `own` goes where an output is, if it lies like it."""
        inside = [one for one in (own, *over) if owner[one] == own]
        if seen[own].long != seen[slot].long or not {seen[one].shape for one in inside} <= {
            seen[own].shape,
            to.shape,
        }:
            return
        del lives[own]
        for one in inside:
            over.pop(one, None)
            direct[one] = Direct(to.number, seen[one].shape)

    def settle(call: Call, out: int, n: int) -> None:
        """Find a result's place."""
        slot = spare(call, out, n) if call.in_place(out) else None
        if slot is not None:
            taken.add(owner[slot])
        if out in direct:
            if slot is not None and direct[out].number not in passing:
                move(owner[slot], slot, direct[out])
            return
        until = last.get(out, n)
        if slot is None:
            owner[out] = out
            lives[out] = Life(n, until)
        else:
            own = owner[out] = owner[slot]
            over[out] = slot
            lives[own] = Life(lives[own].first, until)

    for n, call in enumerate(calls):
        if call.kind == "view" and call.ins[0] in owner:
            owner[call.out] = owner[call.ins[0]]
        if call.kind not in ("into", "loop"):
            continue
        taken.clear()
        for out in call.outs:
            if seen[out].shape:
                settle(call, out, n)
    return _Places(lives, over)


def _roots(tape: Tape) -> list[set[int]]:
    """Per slot, the calls' results on whose memory its value may be."""
    roots: list[set[int]] = [set() for _ in range(tape.size)]
    for call in tape.calls:
        if call.kind in ("into", "loop"):
            for slot in call.outs:
                roots[slot] = {slot}
        else:  # what is not said to be new may be a view of what it takes
            roots[call.out] = set[int]().union(*(roots[slot] for slot in call.ins))
    return roots


class _Scratch(threading.local):
    """Memory of a thread, and of others that work for it."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[int, int], Array] = {}
        self.playing = 0
        """How many frames play: one within another where a signal's handler runs a program, or the
        collector does.
        """


_scratch = _Scratch()


class _Playing:
    """A frame plays, inside: what begins meanwhile has other memory."""

    def __enter__(self) -> None:
        _scratch.playing += 1

    def __exit__(self, *_: object) -> None:
        _scratch.playing -= 1


PLAYING = _Playing()


def frames_playing() -> int:
    """How many frames of this thread play."""
    return _scratch.playing


def scratch(size: int, number: int = 0, *, playing: bool = False) -> Array:
    """Memory of this thread, at least so many bytes; that of another `number` is elsewhere.

    It is that of the frame that is `playing`, which has it until it is done, or else what nobody
    has: for one call. It is as large as any frame needs; those that had less keep what they had.
    """
    key = max(0, _scratch.playing - playing), number
    block = _scratch.blocks.get(key)
    if block is None or block.size < size:
        before = 0 if block is None else block.size
        made = np.empty(max(size, 2 * before) + ALIGNMENT, np.uint8)
        block = _scratch.blocks[key] = made[-made.ctypes.data % ALIGNMENT :]
    return block
