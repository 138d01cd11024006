"""Which computations are worth loops of their own.

    loops = Loops(least=1 << 22)
    loops.tape(tape, stores, values, times=64)      # the tape to play: with loops, or the same

To compile a loop takes some milliseconds, and LLVM once more to be imported; so it is done where
that is little beside what is computed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.threads import Team
from tapestry.runtime.prepared.loops.fusing import fuse, work
from tapestry.runtime.prepared.tapes.shapes import shapes
from tapestry.runtime.prepared.tapes.tape import Tape

ONCE = 1 << 28
"""Scalar operations from which a loop pays though it is used once: some tenths of a second."""

OFTEN = 1 << 13
"""Those of a call, some ten microseconds, from which it pays where calls are many."""


@dataclass(frozen=True)
class Loops:
    """Compiled loops for what has so many scalar operations, in all parts of a call, or more.

    A `team` are the host's threads, which share a loop over whole arrays.
    """

    least: int
    team: Team | None = None

    def pay(self, count: int) -> bool:
        """Whether so many scalar operations of a call are worth loops, and there can be some."""
        return count >= max(self.least, 1) and native.is_ready()

    def tape(self, tape: Tape, stores: Sequence[int], values: Sequence[Any], times: int) -> Tape:
        """A tape that computes what `tape` does, whose sources are in `values`, so many times."""
        if not native.is_available():
            return tape
        with _lock:
            if tape.looped is None:
                tape.looped = self._looped(tape, stores, values, times)
            return tape.looped

    def _looped(self, tape: Tape, stores: Sequence[int], values: Sequence[Any], times: int) -> Tape:
        seen = shapes(tape, values)
        if seen is None or not self.pay(times * work(tape, seen)):
            return tape
        made = fuse(tape, stores, seen)
        made.seen = seen
        return made


_lock = threading.RLock()
"""One thread writes the tape, and others wait for it."""
