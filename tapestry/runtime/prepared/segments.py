"""A script some of whose functions are more than compiled code: what is between them is linked.

    script = in_segments(script, [x, w], script.seen)       # None where there is nothing to gain

Of functions one after another that are compiled code alone (`tracing`), each run becomes a program
of its own, which is one call once it was called. What is between, as it is sorted, say, stays as it
is. Views that are no copies call nothing: a program makes those that it reads, and others are made
beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.linking import LARGE, like, traced_call
from tapestry.runtime.prepared.script import Finished, Line, Whole, needed_lines
from tapestry.runtime.prepared.tapes.places import Seen
from tapestry.runtime.prepared.tracing import viewed

_LEAST = 2
"""Functions of which one call takes less than a call of each."""

_Kind: TypeAlias = Literal["view", "compiled", "other"]


def in_segments(script: Finished, given: Sequence[Array], seen: dict[int, Seen]) -> Finished | None:
    """The script for arrays that lie as some do, which have no cells that anybody reads.

    `seen` says how arrays lie that are in its slots.
    """
    kinds = _kinds(script, given, seen)
    if kinds is None or "other" not in kinds:
        return None
    segments = _Segments(script, len(given), kinds)
    lines, run = list[Line](), list[Line]()
    for line, kind in zip(script.lines, kinds, strict=True):
        if kind == "other":
            lines += [*segments.of(run), line]
            run = []
        else:
            run.append(line)
    lines += segments.of(run)
    return segments.script(lines) if segments.moved else None


@dataclass(frozen=True, eq=False)
class Segment:
    """Some lines as a program of their own."""

    whole: Whole

    def __call__(self, given: Sequence[Any]) -> Sequence[Array]:
        """What the lines make that others need."""
        return self.whole(given)


class _Segments:
    """Makes lines of runs of lines of a script, whose results are in slots of their own.

    `moved` has those for the slots that they were in.
    """

    def __init__(self, script: Finished, arguments: int, kinds: Sequence[_Kind]) -> None:
        self.moved: dict[int, int] = {}
        self._script, self._arguments = script, arguments
        pairs = list(zip(script.lines, kinds, strict=True))
        self._views = {line.outs[0]: line for line, kind in pairs if kind == "view"}
        self._made = {slot for line in script.lines for slot in line.outs}

    def of(self, run: Sequence[Line]) -> list[Line]:
        """One line for several, and their views; or these where they are too few."""
        own = [line for line in run if line.outs[0] not in self._views]
        if len(own) < _LEAST:
            return list(run)
        made = {slot for line in own for slot in line.outs}
        exports = sorted(made & self._read_beside(own))
        views = self._views_of(own)
        inside = made | {line.outs[0] for line in views}
        needed = dict.fromkeys(slot for line in (*own, *views) for slot in line.ins)
        outer = [slot for slot in needed if slot not in inside]
        ins = [slot for slot in outer if slot < self._arguments or slot in self._made]
        constants = [slot for slot in outer if slot not in ins]
        order = {slot: n for n, slot in enumerate([*ins, *constants, *sorted(inside)])}
        room = [self._script.room[slot - self._arguments] for slot in constants]
        lines = [
            replace(
                line,
                ins=tuple(order[slot] for slot in line.ins),
                outs=tuple(order[slot] for slot in line.outs),
            )
            for line in self._script.lines
            if line.outs[0] in inside
        ]
        results = tuple(order[slot] for slot in exports)
        finished = Finished([*room, *(None for _ in inside)], tuple(lines), results, frozenset())
        segment = Segment(Whole(finished, called=True))
        beside = [line for line in run if line.outs[0] in self._views]
        first = self._arguments + len(self._script.room) + len(self.moved)
        outs = range(first, first + len(exports))
        self.moved |= zip(exports, outs, strict=True)
        return [Line(segment, tuple(ins), tuple(outs), "any", listed=True), *beside]

    def script(self, lines: Sequence[Line]) -> Finished:
        """One of such lines, without views that only segments read."""
        moved = self.moved
        results = tuple(moved.get(n, n) for n in self._script.results)
        own = [replace(line, ins=tuple(moved.get(n, n) for n in line.ins)) for line in lines]
        room = [*self._script.room, *(None for _ in moved)]
        needed = needed_lines(own, results)
        return replace(self._script, room=room, lines=tuple(needed), results=results)

    def _read_beside(self, own: Sequence[Line]) -> set[int]:
        """What other lines read, or views of it, and what the script gives."""
        inside = {line.outs[0] for line in own}
        lines = (line for line in self._script.lines if line.outs[0] not in inside)
        read = [slot for line in lines if line.outs[0] not in self._views for slot in line.ins]
        return {self._root(slot) for slot in (*read, *self._script.results)}

    def _views_of(self, own: Sequence[Line]) -> list[Line]:
        """The views that lines read, and what these are views of in turn."""
        found = dict[int, Line]()
        for line in own:
            for slot in line.ins:
                while slot in self._views:
                    found[slot] = self._views[slot]
                    (slot,) = self._views[slot].ins
        return list(found.values())

    def _root(self, slot: int) -> int:
        """What a value is a view of; itself if it is none."""
        while slot in self._views:
            (slot,) = self._views[slot].ins
        return slot


def _kinds(script: Finished, given: Sequence[Array], seen: dict[int, Seen]) -> list[_Kind] | None:
    """What each line is; None where all of it is large."""
    values: list[Any] = [*given, *script.room]
    kinds, held = list[_Kind](), 0
    for line in script.lines:
        ins = [values[slot] for slot in line.ins]
        traced = None
        if all(value is not None for value in ins):
            is_view = line.memory == "view"
            traced = viewed(line.function, *ins) if is_view else traced_call(line.function, ins)
        if traced is not None:
            free = line.memory == "view" and not traced.steps
            kinds.append("view" if free else "compiled")
            made = list(traced.made)
            held += sum(one.nbytes for one in traced.held)
        else:
            kinds.append("other")
            made = [like(_outline(seen[slot])) if slot in seen else None for slot in line.outs]
            held += sum(one.nbytes for one in made if one is not None)
        if held > LARGE:
            return None
        for slot, value in zip(line.outs, made, strict=True):
            values[slot] = value
    return kinds


def _outline(seen: Seen) -> Array:
    """An array that lies so, without memory."""
    cell = np.empty(1, f"V{seen.dtype.itemsize}")
    return np.lib.stride_tricks.as_strided(cell, seen.shape, seen.strides).view(seen.dtype)
