"""Playing a tape on parts of one shape, in memory that is found once.

    frame = Frame(tape, stores=[y])
    frame.play([part_of_x], [part_of_y])        # the first time, memory is found
    frame.play([next_of_x], [next_of_y])        # from then on, it is the same

What a call computes goes into the output's own memory, over an operand that nothing needs any more,
or into a place in the thread's scratch memory; those whose lives do not meet share bytes. All
frames of a thread use the same scratch memory, as one plays after another; but for those that play
within another, where a signal's handler runs a program. Where a tape does not know how its values
lie, the first time shows it: each is made on memory of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.tapes.places import PLAYING, Plan, Seen, planned
from tapestry.runtime.prepared.tapes.tape import Tape


@dataclass(frozen=True)
class Settled:
    """A tape that is played as planned: what is in its slots, or will be once it is played.

    `stores` are those of the outputs, in order.
    """

    tape: Tape
    stores: list[int]
    plan: Plan
    values: list[Any]


class Frame:
    """A tape on parts whose arrays have one shape each; for one thread."""

    def __init__(
        self, tape: Tape, stores: Sequence[int], loops: Loops | None = None, times: int = 1
    ) -> None:
        """`stores` are the slots of what is written out, in the order of the outputs.

        With `loops`, calls are computed by loops where that pays for so many `times`.
        """
        self._tape = tape
        self._loops = loops
        self._times = times
        self._stores = list(stores)
        self._values: list[Any] = [None] * tape.size
        for slot, constant in tape.constants.items():
            self._values[slot] = constant
        self._plan: Plan | None = None

    def play(self, sources: Sequence[Any], outs: Sequence[Array]) -> None:
        """Compute from the values of the sources into the outputs."""
        with PLAYING:
            self._compute(sources, outs)

    def _compute(self, sources: Sequence[Any], outs: Sequence[Array]) -> None:
        values = self._values
        for slot, value in zip(self._tape.sources, sources, strict=True):
            values[slot] = value
        self._find_plan(outs)
        if self._plan is None:
            seen = self._shapes()
            for slot, out in zip(self._stores, outs, strict=True):
                store(values[slot], out)
            self._plan = planned(self._tape, self._stores, seen, values, outs)
        else:
            self._play(self._plan, outs)
            for number in self._plan.copied:
                store(values[self._stores[number]], outs[number])
        for slot in self._plan.dropped:
            values[slot] = None

    def state(self, sources: Sequence[Any]) -> list[Array]:
        """What the stores are for a part, as arrays of their own."""
        with PLAYING:
            return self._copied(sources)

    def _copied(self, sources: Sequence[Any]) -> list[Array]:
        values = self._values
        for slot, value in zip(self._tape.sources, sources, strict=True):
            values[slot] = value
        self._find_plan(())
        if self._plan is None:
            seen = self._shapes()
            made = [np.array(values[slot]) for slot in self._stores]
            self._plan = planned(self._tape, self._stores, seen, values, ())
        else:
            self._play(self._plan, ())
            made = [np.array(values[slot]) for slot in self._stores]
        for slot in self._plan.dropped:
            values[slot] = None
        return made

    def settle(
        self, sources: Sequence[Any], outs: Sequence[Array], passing: frozenset[int] = frozenset()
    ) -> Settled | None:
        """Where all values lie, without computing them; None where that is not known yet.

        Nothing but outputs is in the memory of those whose numbers are `passing`, if they are known
        to be before the first time.
        """
        with PLAYING:
            return self._settled(sources, outs, passing)

    def _settled(
        self, sources: Sequence[Any], outs: Sequence[Array], passing: frozenset[int]
    ) -> Settled | None:
        values = self._values
        for slot, value in zip(self._tape.sources, sources, strict=True):
            values[slot] = value
        self._find_plan(outs, passing)
        if self._plan is None:
            return None
        for slot, place in self._plan.direct.items():
            values[slot] = place.of(outs)
        settled = Settled(self._tape, self._stores, self._plan, list(values))
        for slot in self._plan.dropped:
            values[slot] = None
        return settled

    def _find_plan(self, outs: Sequence[Array], passing: frozenset[int] = frozenset()) -> None:
        """From now on, the tape is the one with loops; its plan, if values need not be seen."""
        if self._plan is not None or self._loops is None:
            return
        self._tape = self._loops.tape(self._tape, self._stores, self._values, self._times)
        if self._tape.seen is not None:
            seen, values = self._tape.seen, self._values
            self._plan = planned(self._tape, self._stores, seen, values, outs, passing)

    def _shapes(self) -> dict[int, Seen]:
        """What calls make, which are made for the first time; only what is stored is kept."""
        values, calls, seen = self._values, self._tape.calls, dict[int, Seen]()
        last = {slot: n for n, call in enumerate(calls) for slot in (*call.ins, *call.outs)}
        for n, call in enumerate(calls):
            given = [values[slot] for slot in call.ins]
            results = call.function(given) if call.kind == "loop" else [call.function(*given)]
            for slot, made in zip(call.outs, results, strict=True):
                values[slot] = made
                if not isinstance(made, list):
                    seen[slot] = Seen.of(np.asarray(made))
            for slot in {*call.ins, *call.outs}:
                if (
                    last[slot] == n
                    and slot not in self._stores
                    and slot not in self._tape.constants
                ):
                    values[slot] = None
        return seen

    def _play(self, plan: Plan, outs: Sequence[Array]) -> None:
        values = self._values
        for slot, place in plan.direct.items():
            values[slot] = place.of(outs)
        for call, into in plan.steps:
            given = [values[slot] for slot in call.ins]
            if call.kind == "loop":
                call.function(given, [values[slot] for slot in call.outs])
                continue
            if not into:
                values[call.out] = call.function(*given)
                continue
            out = values[call.out]
            made = call.function(*given, out=out)
            if made is not out:
                out[...] = made


def store(value: Array, out: Array) -> None:
    """Write a value to an output, which may lack dimensions that the value varies along not."""
    out[...] = stored(value, out)


def stored(value: Array, out: Array) -> Array:
    """The cells of a value that an output is for, which broadcast to it.

    The output has extent 1 where the value varies not: the first of its cells, which are the same.
    """
    if np.ndim(value) == out.ndim:
        value = value[
            tuple(
                slice(1) if n > m == 1 else slice(None)
                for n, m in zip(value.shape, out.shape, strict=True)
            )
        ]
    return value
