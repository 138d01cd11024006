"""Calls on arrays, written down once and played for each part of a large computation.

    tape = Tape()
    x = tape.source()                              # another array for each part
    y = tape.call(np.multiply, (x, tape.constant(two)), key="x * 2")
    assert tape.call(np.multiply, (x, two), key="x * 2") == y        # the same is not done again

What is called is a NumPy function of the arrays in earlier slots. Its result is on memory of its
own, or it is a view, which computes nothing. `Frame` (in `frames`) plays a tape.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tapestry.algebra.functions import takes_out
from tapestry.runtime.prepared.tapes.meanings import Meaning, Product

if TYPE_CHECKING:
    from tapestry.runtime.prepared.tapes.places import Seen

Kind = Literal["into", "new", "view", "loop"]
"""What a function makes: what can be written into an array that is given, or not; or a view.

A loop is a function of a list of arrays, which writes into those of another, or into new ones.
"""

Function = Callable[..., Any]


@dataclass(frozen=True)
class Call:
    """A function of the values in some slots, whose result fills another, or several.

    `meaning` says what it computes, where that is known. Of the results of a loop, the first
    `mapped` are written cell by cell; the others are folded.
    """

    function: Function
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    kind: Kind
    meaning: Meaning | None = None
    mapped: int = 0

    @property
    def out(self) -> int:
        """The slot of the only result."""
        (slot,) = self.outs
        return slot

    def in_place(self, out: int) -> bool:
        """Whether a result may be written over an operand: cell by cell, each from its own."""
        if self.kind == "loop":
            return out in self.outs[: self.mapped]
        plain = getattr(self.function, "signature", None) is None
        return self.kind == "into" and plain and not isinstance(self.meaning, Product)


@dataclass(eq=False)
class Tape:
    """Slots, and the calls that fill them; equal calls fill one."""

    size: int = 0
    sources: list[int] = field(default_factory=list[int])
    constants: dict[int, Any] = field(default_factory=dict[int, Any])
    calls: list[Call] = field(default_factory=list[Call])

    def __post_init__(self) -> None:
        self.looped: Tape | None = None
        """The tape that is played instead, once that is found."""
        self.seen: Mapping[int, Seen] | None = None
        """How values lie, where that is known before they are computed."""
        self._known: dict[Hashable, int] = {}

    def source(self) -> int:
        """A slot that is filled from outside, in the order of these calls."""
        slot = self._slot()
        self.sources.append(slot)
        return slot

    def constant(self, value: Any) -> int:
        """A slot that holds an array for good."""
        slot = self._slot()
        self.constants[slot] = value
        return slot

    def call(
        self,
        function: Function,
        ins: Sequence[int],
        key: Hashable = None,
        meaning: Meaning | None = None,
    ) -> int:
        """The slot of a function's result; `key` says what it computes, if that may be shared."""
        into = takes_out(function) or isinstance(meaning, Product)
        kind: Kind = "into" if into else "new"
        return self._call(function, tuple(ins), kind, key, meaning)

    def view(
        self, function: Function, of: int, key: Hashable = None, meaning: Meaning | None = None
    ) -> int:
        """The slot of a view of a value; the function may also give back what it takes."""
        return self._call(function, (of,), "view", key, meaning)

    def _call(
        self,
        function: Function,
        ins: tuple[int, ...],
        kind: Kind,
        key: Hashable,
        meaning: Meaning | None,
    ) -> int:
        known = None if key is None else self._known.get((key, ins))
        if known is not None:
            return known
        if all(slot in self.constants for slot in ins):
            with np.errstate(all="ignore"):
                made = function(*(self.constants[slot] for slot in ins))
            slot = self.constant(made if isinstance(made, list) else np.asarray(made))
        else:
            slot = self._slot()
            self.calls.append(Call(function, ins, (slot,), kind, meaning))
        if key is not None:
            self._known[key, ins] = slot
        return slot

    def _slot(self) -> int:
        self.size += 1
        return self.size - 1
