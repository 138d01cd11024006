"""The steps of a script, from what its first call showed.

    settled = Settled(lines, results, spare, values)    # with all slots filled
    settled.steps()                                     # how they are filled from now on

Views of views are one, and none where they only give back what they take. A result is written over
an operand of its shape and dtype that nothing needs any more, cell by cell; else, if it is large,
into memory of the pool. What is large is let go of after the last step that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from tapestry.algebra.functions import takes_out
from tapestry.arena import dropped_after
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.cells import in_turn
from tapestry.runtime.prepared.library import Function, Sized
from tapestry.runtime.prepared.memory import empty, is_large
from tapestry.runtime.prepared.script import (
    ALONE,
    ANY,
    DROPPED,
    LISTED,
    OVER,
    PAIR,
    Line,
    Step,
    needed_lines,
    roots_of,
)
from tapestry.runtime.prepared.tapes.places import Seen
from tapestry.runtime.prepared.views import View, plain_view


class Settled:
    """Lines whose slots are filled."""

    def __init__(
        self,
        lines: Sequence[Line],
        results: Sequence[int],
        spare: frozenset[int],
        values: Sequence[Any],
    ) -> None:
        self._values = values
        self._same: dict[int, int] = {}
        """The slot that has the same array as another."""
        self._views: dict[int, tuple[int, tuple[View, ...]]] = {}
        """Of a view, what it is of, and by which functions, one after another."""
        settled = [self._settled(line) for line in lines]
        self.results = [self._same.get(slot, slot) for slot in results]
        """The slots of what a script gives."""
        self._lines = self._needed(settled)
        self._new = spare.union(*(line.outs for line in lines if line.memory == "new"))
        self._roots = roots_of(self._lines)
        self._last = self._find_last()

    def steps(self) -> list[Step]:
        """How the slots are filled from now on."""
        found: list[Step] = []
        made: set[int] = set()
        dropped = dropped_after([(line.ins, line.outs) for line in self._lines], self.results)
        for n, (line, slots) in enumerate(zip(self._lines, dropped, strict=True)):
            found.append(self._step(line, n))
            made.update(line.outs)
            gone = tuple(slot for slot in slots if slot in made and self._keeps_memory(slot))
            if gone:
                found.append((DROPPED, _nothing, gone, 0, 0))
        return found

    def _settled(self, line: Line) -> Line:
        """A line that reads what is there; a view is of what is no view."""
        ins = tuple(self._same.get(slot, slot) for slot in line.ins)
        if line.memory != "view":
            return replace(line, ins=ins)
        (slot,), (out,) = ins, line.outs
        of, before = self._views.get(slot, (slot, ()))
        functions = (*before, line.function)
        array = _array(self._values[of])
        plain = None if array is None else plain_view(partial(in_turn, functions), array)
        if plain is None:
            return replace(line, ins=ins)
        self._views[out] = of, functions
        if not plain:
            self._same[out] = of
        view = plain[0] if len(plain) == 1 else partial(in_turn, plain)
        return replace(line, function=view, ins=(of,))

    def _needed(self, lines: Sequence[Line]) -> list[Line]:
        """The lines whose results are read."""
        return needed_lines(
            [line for line in lines if line.outs[0] not in self._same], self.results
        )

    def _find_last(self) -> dict[int, int]:
        """Per root, the last line that reads or makes what may be on its memory."""
        last: dict[int, int] = {}
        for n, line in enumerate(self._lines):
            for slot in (*line.ins, *line.outs):
                last |= dict.fromkeys(self._roots[slot], n)
        for slot in self.results:
            last |= dict.fromkeys(self._roots.get(slot, ()), len(self._lines))
        return last

    def _is_own(self, slot: int, n: int) -> bool:
        """Whether a value is on memory of a script's own that nothing needs after a line."""
        roots = self._roots[slot]
        return roots <= self._new and all(self._last[root] == n for root in roots)

    def _keeps_memory(self, slot: int) -> bool:
        """Whether something large goes when a value does."""
        value = self._values[slot]
        array = _array(value)
        while array is not None and not is_large(array.nbytes):
            value, array = array.base, _array(array.base)
        return array is not None or not isinstance(value, np.ndarray | np.generic | None)

    def _step(self, line: Line, n: int) -> Step:
        function, ins, out = line.function, line.ins, line.outs[0]
        if line.listed:
            return LISTED, function, ins, out, 0
        made = _array(self._values[out])
        if made is not None and made.ndim and takes_out(function):
            apt: Function = function.of(made.size) if isinstance(function, Sized) else function
            over = next((slot for slot in ins if self._is_spare(slot, line, n)), None)
            if over is not None:
                return OVER, apt, ins, out, over
            if is_large(made.nbytes) or isinstance(apt, Sized):
                into = partial(_into_new, apt, made.shape, made.dtype)
                return ANY, into, ins, out, 0
            function = apt
        return {1: ALONE, 2: PAIR}.get(len(ins), ANY), function, ins, out, 0

    def _is_spare(self, slot: int, line: Line, n: int) -> bool:
        """Whether a line may write its result over an operand."""
        have, made = (_array(self._values[one]) for one in (slot, line.outs[0]))
        if have is None or made is None or not self._is_own(slot, n):
            return False
        others = (self._roots[other] for other in {*line.ins} - {slot})
        return (
            (have.shape, have.dtype) == (made.shape, made.dtype)
            and have.flags.writeable
            and Seen.of(have).apart
            and all(self._roots[slot].isdisjoint(roots) for roots in others)
        )


def _array(value: object) -> Array | None:
    return cast("Array", value) if isinstance(value, np.ndarray) else None


def _into_new(
    function: Callable[..., Array], shape: tuple[int, ...], dtype: np.dtype[Any], *operands: Any
) -> Array:
    return function(*operands, out=empty(shape, dtype))


def _nothing() -> None:
    """What is called where slots are emptied, which is no call."""
