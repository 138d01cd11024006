"""Functions of arrays, one after another, whose first call shows how the others are made.

    script = Script()
    x, y = script.argument(), script.argument()
    run = script.finish([script.call(np.multiply, (script.view(np.transpose, x), y))])
    (product,) = run([a, b])

Arrays have the same shapes and dtypes at every call. So at the first one it is found what may be
written over, what views come to, and which function is right for so many cells (`Settled`); then a
call is a list of functions and slots, with little left to do between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tapestry.algebra.functions import makes_new
from tapestry.arena import dropped_after
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.linking import Linked, Traced, link, linkable, owner_of
from tapestry.runtime.prepared.loops.copying import COPIED, traced_copy
from tapestry.runtime.prepared.memory import is_large
from tapestry.runtime.prepared.tapes.places import Seen
from tapestry.runtime.prepared.tracing import traced_in_turn

Run: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]
"""Results from arrays, or blocks."""

ALONE, PAIR, ANY, OVER, LISTED, DROPPED = range(6)
"""How a step is called: on one value, on two, on any, with `out`, on a list; or values go."""

Step: TypeAlias = tuple[int, Callable[..., Any], tuple[int, ...], int, int]
"""How, the function, the slots of what it takes, the slot of what it makes, that of `out`."""


@dataclass(frozen=True)
class Line:
    """A function of the values in some slots, whose results fill others.

    `memory` says what a result lies on: its own; perhaps that of operands; or it is a view of the
    operand, or a copy. If `listed`, the function takes a list, and makes one.
    """

    function: Callable[..., Any]
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    memory: Literal["new", "any", "view"]
    listed: bool = False


class Script:
    """Slots, and the lines that fill them."""

    def __init__(self) -> None:
        self._arguments = 0
        self._room: list[Any] = []
        self._constants: set[int] = set()
        self._lines: list[Line] = []

    def argument(self) -> int:
        """The slot of the next argument; they come before all else."""
        self._arguments += 1
        return self._slot(None)

    def constant(self, value: object) -> int:
        """A slot that holds a value for good."""
        slot = self._slot(value)
        self._constants.add(slot)
        return slot

    def call(
        self, function: Callable[..., Any], ins: Sequence[int], *, new: bool | None = None
    ) -> int:
        """The slot of a result; `new` says that it lies on memory that nothing else is on."""
        if self._constants.issuperset(ins):
            with np.errstate(all="ignore"):  # what IEEE 754 defines is no news
                return self.constant(function(*(self._room[slot] for slot in ins)))
        own = makes_new(function) if new is None else new
        return self._line(function, ins, 1, "new" if own else "any")[0]

    def view(self, function: Callable[[Array], Any], of: int) -> int:
        """The slot of a view of a value; the function may also copy it, or give it back.

        It may be boxes of it, too.
        """
        return self._line(function, (of,), 1, "view")[0]

    def calls(
        self, function: Run, ins: Sequence[int], count: int, *, new: bool = False
    ) -> list[int]:
        """The slots of the results of a function of a list; `new` as of `call`."""
        return self._line(function, ins, count, "new" if new else "any", listed=True)

    def include(self, run: Run, ins: Sequence[int], count: int) -> list[int]:
        """The slots of the results of a function of a list, by its own lines if it has such."""
        if not isinstance(run, Finished):
            return self.calls(run, ins, count)
        slots = [*ins, *(self._slot(value) for value in run.room)]
        for line in run.lines:
            given, outs = (tuple(slots[slot] for slot in some) for some in (line.ins, line.outs))
            self._lines.append(replace(line, ins=given, outs=outs))
        return [slots[slot] for slot in run.results]

    def line_of(self, slot: int) -> Line | None:
        """The function of a list that makes a slot's value alone; None if there is none."""
        return next((line for line in self._lines if line.outs == (slot,) and line.listed), None)

    def drop(self, line: Line) -> None:
        """Do without a line, whose results nothing reads."""
        self._lines.remove(line)

    def finish(self, results: Sequence[int], spare: Sequence[int] = ()) -> Finished:
        """A function of the arguments that gives some values.

        It may write to the arguments in `spare`, which are arrays on memory of their own. Results
        that may lie on what is there for all calls cannot be written to. What nobody reads is not
        computed, not even to find that it cannot be.
        """
        roots = roots_of(self._lines)
        for root in frozenset[int]().union(*(roots.get(slot, {slot}) for slot in results)):
            value = self._room[root]
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        room = self._room[self._arguments :]
        lines = needed_lines(self._lines, results)
        return Finished(room, tuple(lines), tuple(results), frozenset(spare))

    def _line(
        self,
        function: Callable[..., Any],
        ins: Sequence[int],
        count: int,
        memory: Literal["new", "any", "view"],
        *,
        listed: bool = False,
    ) -> list[int]:
        slots = [self._slot(None) for _ in range(count)]
        self._lines.append(Line(function, tuple(ins), tuple(slots), memory, listed))
        return slots

    def _slot(self, value: object) -> int:
        self._room.append(value)
        return len(self._room) - 1


def needed_lines(lines: Sequence[Line], results: Sequence[int]) -> list[Line]:
    """Those whose results are read, by others or as what a script gives."""
    needed, kept = set(results), list[Line]()
    for line in reversed(lines):
        if not needed.isdisjoint(line.outs):
            kept.append(line)
            needed.update(line.ins)
    return kept[::-1]


def roots_of(lines: Sequence[Line]) -> dict[int, frozenset[int]]:
    """Per slot, the arguments, constants and results on whose memory its value may be."""
    roots: dict[int, frozenset[int]] = {}
    for line in lines:
        for slot in line.ins:
            roots.setdefault(slot, frozenset({slot}))
        of = frozenset[int]().union(*(roots[slot] for slot in line.ins))
        for slot in line.outs:
            own = frozenset({slot})
            roots[slot] = {"new": own, "any": of | own, "view": of}[line.memory]
    return roots


@dataclass(eq=False)
class Finished:
    """A script, as a function of its arguments: `room` has the values of the other slots.

    It may write to the arguments in `spare`.
    """

    room: list[Any]
    lines: tuple[Line, ...]
    results: tuple[int, ...]
    spare: frozenset[int]

    def __post_init__(self) -> None:
        self._ready: tuple[list[Step], list[int]] | None = None
        self.seen: dict[int, Seen] = {}
        """How arrays lie that lines made at the first call."""

    def again(self) -> Finished:
        """The same, for arrays of other shapes."""
        return replace(self)

    def __call__(self, given: Sequence[Any]) -> list[Any]:
        values: list[Any] = [*given, *self.room]
        if self._ready is None:
            return self._first(values)
        steps, results = self._ready
        for how, function, ins, out, over in steps:
            if how == ALONE:
                values[out] = function(values[ins[0]])
            elif how == PAIR:
                first, second = ins
                values[out] = function(values[first], values[second])
            elif how == OVER:
                values[out] = function(*[values[slot] for slot in ins], out=values[over])
            elif how == ANY:
                values[out] = function(*[values[slot] for slot in ins])
            elif how == LISTED:
                made = function([values[slot] for slot in ins])
                values[out : out + len(made)] = made
            else:
                for slot in ins:
                    values[slot] = None
        return [values[slot] for slot in results]

    def traced(self, given: Sequence[Array]) -> Traced | None:
        """The compiled functions that it calls, where it calls nothing else."""
        return traced_in_turn(self.lines, [*given, *self.room], self.results)

    def _first(self, values: list[Any]) -> list[Any]:
        """Fill all slots, and find the steps of calls from now on."""
        from tapestry.runtime.prepared.settling import Settled  # which is made of what is here

        lines = self.lines
        dropped = dropped_after([(line.ins, line.outs) for line in lines], self.results)
        for line, slots in zip(lines, dropped, strict=True):
            given = [values[slot] for slot in line.ins]
            made = line.function(given) if line.listed else [line.function(*given)]
            for slot, value in zip(line.outs, made, strict=True):
                values[slot] = value
                if isinstance(value, np.ndarray):
                    self.seen[slot] = Seen.of(cast("Array", value))
            del given, made
            for slot in slots:
                values[slot] = _outline(values[slot])
        settled = Settled(lines, self.results, self.spare, values)
        self._ready = settled.steps(), settled.results
        return [values[slot] for slot in self.results]


@dataclass(eq=False)
class Whole:
    """A program: from arrays to arrays.

    If it is part of another one, what the script calls was `called` before, and all of it is linked
    or nothing.
    """

    script: Finished
    called: bool = False

    def __post_init__(self) -> None:
        self._linked: Linked | None = None
        self._others: dict[int, Linked | None] = {}
        """The same for other numbers of threads, after a call with so many."""
        self._seen: set[int] = set()
        self._called = self.called
        self._tried = False

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs."""
        made = self.at_once(inputs)
        return self.in_turn(inputs) if made is None else made

    def in_turn(self, inputs: Sequence[Array]) -> list[Array]:
        """The same by the script, function by function."""
        with np.errstate(all="ignore"):  # what IEEE 754 defines is no news
            made = list(map(np.asarray, self.script(inputs)))
        self._called = True
        return made

    def traced(self, given: Sequence[Array]) -> Traced | None:
        """The compiled functions that the script calls, and what copies to results of their own."""
        traced = self.script.traced(given)
        if traced is None:
            return None
        steps, held, made = list(traced.steps), list(traced.held), list[Array]()
        taken: list[Array] = []
        for one in traced.made:
            owner, result = owner_of(one, held), one
            if owner is None or any(owner is other for other in taken):
                owner = result = np.empty(one.shape, one.dtype)
                copied = traced_copy(result, one) if one.nbytes <= COPIED else None
                if copied is None:
                    return None
                steps += copied.steps
                held.append(result)
            taken.append(owner)
            made.append(result)
        return Traced(steps, made, held)

    @property
    def linked(self) -> Linked | None:
        """What a call is; None if it is more than compiled code, or was not called twice."""
        first = self._linked
        if first is None or first.threads is None:
            return first
        return self._others.get(first.threads[1](), first)

    def of_alike(self, inputs: Sequence[object]) -> list[Array] | None:
        """The outputs, on memory of their own, if inputs are arrays like those of a call before.

        None where it is not known what a call is then.
        """
        linked = self.linked
        return None if linked is None else linked.of_alike(inputs)

    def at_once(self, inputs: Sequence[Array]) -> list[Array] | None:
        """The outputs, on memory of their own, by one call of compiled code.

        None if it is more, or the first call: that shows what there is to link.
        """
        if self._linked is None:
            if self._tried or not self._called:
                return None
            self._tried = True
            self._linked = link(self, inputs)
            if self._linked is None:
                self._link_some(inputs)
        made = None if self._linked is None else self._linked(inputs)
        if made is None and self._linked is not None and self._linked.threads is not None:
            made = self._on_others(*self._linked.threads, inputs)
        return made

    def _link_some(self, inputs: Sequence[Array]) -> None:
        """Have one call of compiled code for what is between functions that are more."""
        from tapestry.runtime.prepared.segments import in_segments  # which are made of this

        given = None if self.called or not native.is_ready() else linkable(inputs)
        if given is None:
            return
        try:
            with np.errstate(all="ignore"):  # cells that are copied are anything
                self.script = in_segments(self.script, given, self.script.seen) or self.script
        except (MemoryError, OSError):  # the system has no room for all at once
            return

    def _on_others(
        self, threads: int, ask: Callable[[], int], inputs: Sequence[Array]
    ) -> list[Array] | None:
        """The same where there are not as many threads as there were."""
        count = ask()
        if count == threads or count not in self._seen:
            self._seen.add(count)
            return None
        if count not in self._others:
            self._others[count] = link(self, inputs)
        linked = self._others[count]
        return None if linked is None else linked(inputs)


@dataclass(frozen=True, eq=False)
class InTurn:
    """Scripts that each make some cells of the same new arrays."""

    scripts: tuple[tuple[tuple[slice, ...], Finished], ...]
    shape: tuple[int, ...]
    dtypes: tuple[np.dtype[Any], ...]

    def __call__(self, ins: Sequence[Any]) -> list[Array]:
        """The arrays."""
        whole = [np.empty(self.shape, dtype) for dtype in self.dtypes]
        for at, script in self.scripts:
            for out, value in zip(whole, script(ins), strict=True):
                out[at] = value
        return whole


def _outline(value: object) -> object:
    """A large array without its memory: there is nothing to read."""
    if not isinstance(value, np.ndarray):
        return value
    array = cast("Array", value)
    if not is_large(array.nbytes):
        return array
    # As bytes, because NumPy cannot name every type of ml_dtypes.
    cell, writeable = np.empty(1, f"V{array.itemsize}"), array.flags.writeable
    return as_strided(cell, array.shape, array.strides, writeable=writeable).view(array.dtype)
