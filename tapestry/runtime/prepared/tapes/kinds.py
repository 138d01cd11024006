"""A computation over an index space as tapes, one for each kind of its parts.

    tapes = Tapes((Recorded(tape, sources, stores),), {part: 0, other: 0}, loops)
    wholes = tapes.wholes([x, w])
    tapes.frame(part).play(tapes.given(wholes, part), outs)

Where parts are does not matter to a tape, only how long they are, and whether all of their points
count; so there are few. Every thread has frames of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tapestry.runtime.cpu.steps import Step
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.linking import in_turn
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.memory import empty
from tapestry.runtime.prepared.tapes.frames import Frame
from tapestry.runtime.prepared.tapes.places import frames_playing
from tapestry.runtime.prepared.tapes.sources import Slicer, Source, slicer
from tapestry.runtime.prepared.tapes.tape import Tape
from tapestry.runtime.prepared.views import View, reader
from tapestry.zspace import Projection, Range


class _Frames(threading.local):
    """The frames of a thread, by the kind of the part."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], Frame] = {}
        """By what they play, and how many others play meanwhile."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """A tape, what it reads, and the slots of what it writes, in the order of the outputs."""

    tape: Tape
    sources: tuple[Source, ...]
    stores: tuple[int, ...]


@dataclass(eq=False)
class Tapes:
    """Tapes for parts: which one each has, and what those are."""

    recorded: tuple[Recorded, ...]
    kinds: dict[Range, int]
    loops: Loops | None

    def __post_init__(self) -> None:
        self._frames = _Frames()

    def wholes(self, operands: Sequence[Array]) -> list[list[Any]]:
        """What parts of each kind are taken of, once per call."""
        return [[source.whole(operands) for source in one.sources] for one in self.recorded]

    def traced_wholes(
        self, operands: Sequence[Array]
    ) -> tuple[list[list[Any]], list[Step], list[Array]] | None:
        """The same, what is called to make some of it, and the new arrays that this writes to.

        None where that is more than compiled functions.
        """
        wholes, steps, held = list[list[Any]](), list[Step](), list[Array]()
        for one in self.recorded:
            traced = in_turn(source.traced(operands) for source in one.sources)
            if traced is None:
                return None
            wholes.append(list(traced.made))
            steps += traced.steps
            held += traced.held
        return wholes, steps, held

    def given(self, wholes: Sequence[Sequence[Any]], part: Range) -> list[Any]:
        """What a part reads."""
        kind = self.kinds[part]
        sources = zip(self.recorded[kind].sources, wholes[kind], strict=True)
        return [source.at(whole, part) for source, whole in sources]

    def looped(self, part: Range, operands: Sequence[Array]) -> Tape | None:
        """The tape of a part with its loops; None where there are none."""
        if self.loops is None:
            return None
        one = self.recorded[self.kinds[part]]
        values: list[Any] = [None] * one.tape.size
        for slot, constant in one.tape.constants.items():
            values[slot] = constant
        given = self.given(self.wholes(operands), part)
        for slot, value in zip(one.tape.sources, given, strict=True):
            values[slot] = value
        return self.loops.tape(one.tape, one.stores, values, len(self.kinds))

    def frame(self, part: Range) -> Frame:
        """This thread's frame for a part, which does not play."""
        kind = self.kinds[part]
        known, key = self._frames.known, (kind, frames_playing())
        if key not in known:
            one = self.recorded[kind]
            known[key] = Frame(one.tape, one.stores, self.loops, len(self.kinds))
        return known[key]


@dataclass(frozen=True)
class Output:
    """An output that the points of an index space write to."""

    box: Range
    dtype: np.dtype[Any]
    projection: Projection
    index: Range

    def empty(self) -> Array:
        """Its array, not written yet."""
        return empty(self.box.shape, self.dtype)

    def cells(self, array: Array) -> Array:
        """A view with an axis per dimension of the index space."""
        return self._read(array)

    @cached_property
    def _read(self) -> View:
        return reader(self.projection, self.box, self.index)

    @cached_property
    def slicer(self) -> Slicer:
        """What a part writes, of that view."""
        moving = frozenset(dim for terms in self.projection.map.terms for _, dim in terms)
        return slicer(moving, self.index)
