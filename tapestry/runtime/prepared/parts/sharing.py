"""Tapes played for the parts of an index space, on several threads.

run = Mapped(tapes, (Output(...),), threads=2)
(y,) = run([x, w])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import Any

import numpy as np

from tapestry.runtime.cpu.threads import share
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.folds.halving import Merge
from tapestry.runtime.prepared.linking import Traced
from tapestry.runtime.prepared.memory import reserved
from tapestry.runtime.prepared.tapes.driven import Driven, traced_frame
from tapestry.runtime.prepared.tapes.kinds import Output, Tapes
from tapestry.zspace import Range


@dataclass(frozen=True, eq=False)
class Mapped:
    """Parts that have nothing to do with each other."""

    tapes: Tapes
    outs: tuple[Output, ...]
    threads: int

    def __call__(self, operands: Sequence[Array]) -> list[Array]:
        """The outputs."""
        made = [out.empty() for out in self.outs]
        views = [out.cells(array) for out, array in zip(self.outs, made, strict=True)]
        wholes = self.tapes.wholes(operands)

        def work(part: Range) -> None:
            self.tapes.frame(part).play(self.tapes.given(wholes, part), self._into(views, part))

        left = self._driven.run(wholes, views, self.threads)
        if left:
            share(work, left, self.threads)
        return made

    def traced(self, given: Sequence[Array]) -> Traced | None:
        """The compiled functions that it calls."""
        made = [reserved(out.box.shape, out.dtype) for out in self.outs]
        views = [out.cells(array) for out, array in zip(self.outs, made, strict=True)]
        found = self.tapes.traced_wholes(given)
        if found is None:
            return None
        wholes, steps, held = found
        traced = self._driven.traced(wholes, views, made)
        if traced is None:
            return None
        return Traced([*steps, *traced.steps], made, [*held, *traced.held])

    def _into(self, views: Sequence[Array], part: Range) -> list[Array]:
        pairs = zip(self.outs, views, strict=True)
        return [out.slicer.at(view, part) for out, view in pairs]

    @cached_property
    def _driven(self) -> Driven:
        return Driven(self.tapes, self._into)


@dataclass(frozen=True, eq=False)
class Folded:
    """Parts whose states merge.

    Each of `runs` has parts that follow one another, of the cells that are `kept` under its number.
    Where states are `few`, and take little, all are there before they are merged; elsewhere those
    of a run are merged as they are made, and then those of the runs. `ends` merge states that lie
    along an `axis`, and make outputs of what is folded.
    """

    tapes: Tapes
    ends: Tapes
    outs: tuple[Output, ...]
    runs: tuple[tuple[Range, ...], ...]
    kept: tuple[Range, ...]
    merge: Merge
    axis: int
    threads: int
    few: bool

    def __call__(self, operands: Sequence[Array]) -> list[Array]:
        """The outputs."""
        wholes = self.tapes.wholes(operands)
        total = self._driven_states(wholes)
        if total is None:
            total = self._states(wholes)
        made = [out.empty() for out in self.outs]
        views = [out.cells(array) for out, array in zip(self.outs, made, strict=True)]
        wholes = self.ends.wholes(operands)
        for kept, state in total.items():
            pairs = zip(self.outs, views, strict=True)
            into = [out.slicer.at(view, kept) for out, view in pairs]
            self.ends.frame(kept).play([*state, *self.ends.given(wholes, kept)], into)
        return made

    def traced(self, given: Sequence[Array]) -> Traced | None:
        """The compiled functions that it calls, where the states of all parts are there at once."""
        found, lasting = self.tapes.traced_wholes(given), self.ends.traced_wholes(given)
        memory = self._places.memory() if self.few else None
        if found is None or lasting is None or memory is None:
            return None
        wholes, steps, held = found
        states = self._driven.traced(wholes, memory, memory)
        if states is None:
            return None
        last, more, kept_too = lasting
        steps += [*states.steps, *more]
        held += [*states.held, *kept_too]
        made = [reserved(out.box.shape, out.dtype) for out in self.outs]
        views = [out.cells(array) for out, array in zip(self.outs, made, strict=True)]
        for kept, parts in self._parts.items():
            state = self._places.together(memory, kept, parts, self.axis)
            if state is None:
                return None
            into = [out.slicer.at(v, kept) for out, v in zip(self.outs, views, strict=True)]
            own = [*state, *self.ends.given(last, kept)]
            end = traced_frame(self.ends.frame(kept), own, into)
            if end is None:
                return None
            steps += end.steps
            held += end.held
        return Traced(steps, made, [*held, *made])

    def _states(self, wholes: Sequence[Sequence[Any]]) -> dict[Range, list[Array]]:
        """What all parts fold to, by the cells that are kept: along the axis."""
        states: list[list[Sequence[Array]]] = [[] for _ in self.runs]

        def work(number: int) -> None:
            own = states[number]
            for part in self.runs[number]:
                own.append(self.tapes.frame(part).state(self.tapes.given(wholes, part)))
                self._places.note(part, own[-1])
                if not self.few and len(own) > 1:
                    own[:] = [self._merged(*own)]

        share(work, range(len(self.runs)), self.threads)
        total: dict[Range, list[Sequence[Array]]] = {}
        for kept, own in zip(self.kept, states, strict=True):
            total.setdefault(kept, []).extend(own)
        if not self.few:
            total = {kept: [reduce(self._merged, own)] for kept, own in total.items()}
        return {kept: self._lined(own) for kept, own in total.items()}

    def _merged(self, before: Sequence[Array], new: Sequence[Array]) -> list[Array]:
        return self.merge([*before, *new])

    def _driven_states(self, wholes: Sequence[Sequence[Any]]) -> dict[Range, list[Array]] | None:
        """The same, where compiled functions alone compute it, and states take little."""
        memory = self._places.memory() if self.few else None
        if memory is None or self._driven.run(wholes, memory, self.threads):
            return None
        together, into = self._places.together, self._places.into
        total: dict[Range, list[Array]] = {}
        for kept, parts in self._parts.items():
            own = together(memory, kept, parts, self.axis)
            total[kept] = own or self._lined([into(memory, part) for part in parts])
        return total

    def _lined(self, states: Sequence[Sequence[Array]]) -> list[Array]:
        """States along the axis, in order; they may lack different dimensions."""
        components: list[Array] = []
        ones = (1,) * self.kept[0].rank
        for own in zip(*states, strict=True):
            shape = np.broadcast_shapes(ones, *(one.shape for one in own))
            whole = [np.broadcast_to(one, shape) for one in own]
            components.append(np.concatenate(whole, self.axis))
        return components

    @cached_property
    def _parts(self) -> dict[Range, list[Range]]:
        """The parts of the same kept cells, in order."""
        found: dict[Range, list[Range]] = {}
        for kept, run in zip(self.kept, self.runs, strict=True):
            found.setdefault(kept, []).extend(run)
        return found

    @cached_property
    def _places(self) -> StatePlaces:
        return StatePlaces(self.tapes.kinds)

    @cached_property
    def _driven(self) -> Driven:
        # Frames that give states as arrays of their own are not those that write them somewhere.
        own = Tapes(self.tapes.recorded, self.tapes.kinds, self.tapes.loops)
        return Driven(own, self._places.into)


_Lies = tuple[tuple[int, ...], np.dtype[Any]]

_View = tuple[slice, tuple[int, ...], tuple[int, ...]]


class StatePlaces:
    """Where the states of parts are, one after another, for each component of a state.

    How large a state is, the first one of its kind shows.
    """

    def __init__(self, kinds: Mapping[Range, int]) -> None:
        self._kinds = kinds
        self._lies: dict[int, tuple[_Lies, ...]] = {}
        self._views: dict[Range, list[_View] | None] = {}
        self._known = False

    def note(self, part: Range, state: Sequence[Array]) -> None:
        """Know what the states of parts of such a kind are like."""
        if self._kinds[part] not in self._lies:
            lies = tuple((component.shape, component.dtype) for component in state)
            self._lies[self._kinds[part]] = lies

    def memory(self) -> list[Array] | None:
        """Memory for all states, an array for each component; None until all kinds are known."""
        if not self._known:
            self._known = set(self._kinds.values()) <= self._lies.keys()
        if not self._known:
            return None
        return [np.empty(cells, dtype) for cells, dtype in self._cells]

    def into(self, memory: Sequence[Array], part: Range) -> list[Array]:
        """Where the state of a part is."""
        places = zip(memory, self._first[part], self._lies[self._kinds[part]], strict=True)
        return [
            array[first : first + prod(shape)].reshape(shape) for array, first, (shape, _) in places
        ]

    def together(
        self, memory: Sequence[Array], kept: Range, parts: Sequence[Range], axis: int
    ) -> list[Array] | None:
        """The states of all parts of some `kept` cells, along an axis of extent 1.

        None where they have several shapes.
        """
        if kept not in self._views:
            self._views[kept] = self._view(parts, axis)
        views = self._views[kept]
        if views is None:
            return None
        return [
            array[cells].reshape(shape).transpose(order)
            for array, (cells, shape, order) in zip(memory, views, strict=True)
        ]

    def _view(self, parts: Sequence[Range], axis: int) -> list[_View] | None:
        """The same as slices, shapes and orders of axes: states follow one another."""
        kinds = {self._lies[self._kinds[part]] for part in parts}
        if len(kinds) > 1 or any(len(shape) <= axis for lies in kinds for shape, _ in lies):
            return None
        found: list[_View] = []
        for first, (shape, _) in zip(self._first[parts[0]], *kinds, strict=True):
            cells = slice(first, first + len(parts) * prod(shape))
            whole = (len(parts), *shape[:axis], *shape[axis + 1 :])
            order = (*range(1, axis + 1), 0, *range(axis + 1, len(shape)))
            found.append((cells, whole, order))
        return found

    @cached_property
    def _cells(self) -> list[tuple[int, np.dtype[Any]]]:
        """The cells of each component, and their types."""
        *_, last = self._kinds
        pairs = zip(self._first[last], self._lies[self._kinds[last]], strict=True)
        return [(first + prod(shape), dtype) for first, (shape, dtype) in pairs]

    @cached_property
    def _first(self) -> dict[Range, list[int]]:
        """The first cell of each part's state, for each component."""
        found: dict[Range, list[int]] = {}
        at = [0] * len(next(iter(self._lies.values())))
        for part, kind in self._kinds.items():
            found[part] = list(at)
            at = [a + prod(shape) for a, (shape, _) in zip(at, self._lies[kind], strict=True)]
        return found
