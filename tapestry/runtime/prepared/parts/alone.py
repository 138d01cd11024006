"""A single part, which is all there is: what its tape calls, as a script.

    run = Alone(Mapped(tapes, outs, threads=1))
    (y,) = run([x])

To play a part takes some tens of microseconds beside what it computes: slices of what is read, and
of what is written, and memory for what is between calls. Where a tape is one loop, none of that is
needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.cells import of_bits
from tapestry.runtime.prepared.linking import Traceable, Traced
from tapestry.runtime.prepared.parts.sharing import Mapped
from tapestry.runtime.prepared.script import Finished, Script
from tapestry.runtime.prepared.tapes.tape import Tape
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

    def traced(self, given: Sequence[Array]) -> Traced | None:
        """The compiled functions that it calls."""
        return self.run.traced(given) if isinstance(self.run, Traceable) else None

    def _script(self, operands: Sequence[Array]) -> Finished | None:
        """The tape's only loop, and its views, as lines; None where it is more than that."""
        tapes = self.mapped.tapes
        (recorded,) = tapes.recorded
        (part,) = tapes.kinds
        tape = tapes.looped(part, operands)
        if tape is None or not _is_one_loop(tape):
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
                made = script.calls(call.function, ins, len(call.outs))
                slots |= zip(call.outs, made, strict=True)
        results: list[int] = []
        for slot, out in zip(recorded.stores, self.mapped.outs, strict=True):
            typed = script.view(partial(of_bits, out.dtype), slots[slot])
            results.append(script.view(writer(out.projection, out.box, out.index), typed))
        return script.finish(results)


def _is_one_loop(tape: Tape) -> bool:
    """Whether all that a tape computes is one loop; views compute nothing."""
    return [call.kind for call in tape.calls if call.kind != "view"] == ["loop"]
