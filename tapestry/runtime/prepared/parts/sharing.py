"""Tapes played for the parts of an index space, on several threads.

run = Mapped(tapes, (Output(...),), threads=2)
(y,) = run([x, w])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tapestry.runtime.cpu.threads import share
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.folds.halving import Merge
from tapestry.runtime.prepared.tapes.driven import Driven
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
            pairs = zip(self.outs, views, strict=True)
            into = [out.slicer.at(view, part) for out, view in pairs]
            self.tapes.frame(part).play(self.tapes.given(wholes, part), into)

        share(work, self._driven.run(wholes, views, self.threads), self.threads)
        return made

    @cached_property
    def _driven(self) -> Driven:
        return Driven(self.tapes, self.outs)


@dataclass(frozen=True, eq=False)
class Folded:
    """Parts whose states merge.

    Each of `runs` has parts that follow one another, of the cells that are `kept` under its number:
    the states of those are merged as they are made. `ends` make outputs of what is folded.
    """

    tapes: Tapes
    ends: Tapes
    outs: tuple[Output, ...]
    runs: tuple[tuple[Range, ...], ...]
    kept: tuple[Range, ...]
    merge: Merge
    threads: int

    def __call__(self, operands: Sequence[Array]) -> list[Array]:
        """The outputs."""
        wholes = self.tapes.wholes(operands)
        states: list[list[Array]] = [[] for _ in self.runs]

        def work(number: int) -> None:
            for part in self.runs[number]:
                new = self.tapes.frame(part).state(self.tapes.given(wholes, part))
                before = states[number]
                states[number] = self.merge([*before, *new]) if before else new

        share(work, range(len(self.runs)), self.threads)
        total: dict[Range, list[Array]] = {}
        for kept, state in zip(self.kept, states, strict=True):
            total[kept] = self.merge([*total[kept], *state]) if kept in total else state
        made = [out.empty() for out in self.outs]
        views = [out.cells(array) for out, array in zip(self.outs, made, strict=True)]
        wholes = self.ends.wholes(operands)
        for kept, state in total.items():
            pairs = zip(self.outs, views, strict=True)
            into = [out.slicer.at(view, kept) for out, view in pairs]
            self.ends.frame(kept).play([*state, *self.ends.given(wholes, kept)], into)
        return made
