"""A single part, which is all there is: what its tape calls, as a script.

    run = Alone(Mapped(tapes, outs, threads=1))
    (y,) = run([x])

To play a part takes some tens of microseconds beside what it computes: slices of what is read, and
of what is written, and memory for what is between calls. Where a tape is one loop, or what it makes
is small, none of that is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.memory import is_large
from tapestry.runtime.prepared.parts.sharing import Mapped
from tapestry.runtime.prepared.script import Finished, Run, Script
from tapestry.runtime.prepared.tapes.places import laid
from tapestry.runtime.prepared.tapes.tape import Call, Tape
from tapestry.runtime.prepared.views import writer


@dataclass(eq=False)
class Alone:
    """A part that is all of an index space; `mapped` computes it where no script does."""

    mapped: Mapped

    def __post_init__(self) -> None:
        self.run: Callable[[Sequence[Array]], Sequence[Array]] | None = None
        """What computes it, once there were operands: a script, or `mapped`."""

    def __call__(self, operands: Sequence[Array]) -> Sequence[Array]:
        """The outputs."""
        if self.run is None:
            self.run = self._script(operands) or self.mapped
        return self.run(operands)

    def _script(self, operands: Sequence[Array]) -> Finished | None:
        """The tape's loops as lines; None where it calls other functions, or makes much between."""
        tapes = self.mapped.tapes
        (recorded,) = tapes.recorded
        (part,) = tapes.kinds
        tape = tapes.looped(part, operands)
        if tape is None or not _is_light(tape):
            return None
        script = Script()
        given = [script.argument() for _ in operands]
        slots = {slot: script.constant(value) for slot, value in tape.constants.items()}
        sources = zip(tape.sources, recorded.sources, strict=True)
        slots |= {slot: source.record(script, given, part) for slot, source in sources}
        for call in tape.calls:
            ins = [slots[slot] for slot in call.ins]
            if call.kind == "view":
                slots[call.out] = script.view(call.function, ins[0])
            else:
                run = _run(call, tape, recorded.stores)
                slots |= zip(call.outs, script.calls(run, ins, len(call.outs)), strict=True)
        stores = zip(recorded.stores, self.mapped.outs, strict=True)
        writers = [
            (writer(out.projection, out.box, out.index), slots[slot]) for slot, out in stores
        ]
        return script.finish([script.view(write, slot) for write, slot in writers])


def _is_light(tape: Tape) -> bool:
    """Whether a tape is loops, and views, that make nothing large for each other."""
    if tape.seen is None or any(call.kind not in ("loop", "view") for call in tape.calls):
        return False
    loops = [call for call in tape.calls if call.kind == "loop"]
    made = (tape.seen[slot] for call in loops[:-1] for slot in call.outs)
    return bool(loops) and not any(is_large(one.bytes) for one in made)


def _run(call: Call, tape: Tape, stores: Sequence[int]) -> Run:
    """A loop: what others read lies as it suits loops, what is stored row by row."""
    assert tape.seen is not None
    if all(slot in stores for slot in call.outs):
        return call.function
    lies = [(tape.seen[slot], slot in stores) for slot in call.outs]

    def run(given: Sequence[Any]) -> Sequence[Array]:
        outs = [
            np.empty(one.shape, one.dtype)
            if is_stored
            else laid(np.empty(prod(one.shape), one.dtype), one.shape)
            for one, is_stored in lies
        ]
        return call.function(given, outs)

    return run
