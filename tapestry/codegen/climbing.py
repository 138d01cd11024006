"""Operations whose kernels do not run: how careful each is made again, and what is said of it.

    climbing = Climbing(module, "sm_90")
    while True:
        lowering.lower(ctx, lowered, rungs=climbing.rungs)
        ...                                             # compile; where a kernel is refused:
        if not climbing.climb(lowered, printed, {"matmul": "takes too much memory"}):
            raise ...(climbing.spent(...))              # no rung of `rungs.py` is left
    climbing.tell()

What operations run with in the end is said once, on the channel `fallbacks`, which is on by
default: which operation, with which schedule it did not run, why, and what can be done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.dialects.builtin import ModuleOp

from tapestry.codegen.specs import KernelSpec
from tapestry.dialects import loom, triton
from tapestry.logs import channel
from tapestry.passes.triton.host.comments import APART_FROM
from tapestry.passes.triton.loom_to_triton import NO_DEVICE
from tapestry.passes.triton.schedules.rungs import Rung
from tapestry.passes.triton.schedules.task import SCHEDULE

_log = channel("fallbacks")
_said: set[str] = set()


HINT: Final = "give it a schedule that fits (attribute `schedule`), or split it (loom-shard)"
"""What can be done for an operation whose kernel does not run."""

_NAMED = 3
"""How many operations a message names."""


@dataclass(frozen=True)
class _Refused:
    """An operation whose kernel was refused: where it is from, its schedule, and why."""

    label: str
    place: str
    schedule: str
    why: str

    def __str__(self) -> str:
        return f"@{self.label}{self.place and f' ({self.place})'} with {self.schedule}"


class Climbing:
    """Which rung each operation of a module in loom is on, by label; others are on the first.

    `model` is the device that schedules are chosen for.
    """

    def __init__(self, module: ModuleOp, model: str) -> None:
        self._module = module
        self._model = model
        self.rungs: dict[str, Rung] = {}
        self._first: dict[str, _Refused] = {}

    def climb(
        self, lowered: ModuleOp, printed: Sequence[KernelSpec], refused: Mapping[str, str]
    ) -> bool:
        """Take the operations of refused kernels a rung further; whether there was one.

        `printed` are the kernels of the lowered module, in its order, as they were printed;
        `refused` says of some of them why they do not run.
        """
        scheduled = {
            op.label.data
            for op in self._module.walk()
            if isinstance(op, loom.OperationOp | loom.FusedOp) and SCHEDULE in op.attributes
        }
        found = _operations(lowered, printed, refused)
        moved = False
        for label, one in found.items():
            before = self.rungs.get(label, Rung.GIVEN)
            if before == Rung.GIVEN and label not in scheduled and self._model == NO_DEVICE:
                before = Rung.DEFAULT  # which is what it had
            if before < Rung.APART:
                moved = True
                self.rungs[label] = Rung(before + 1)
                self._first.setdefault(label, one)
        return moved

    def spent(
        self, lowered: ModuleOp, printed: Sequence[KernelSpec], refused: Mapping[str, str]
    ) -> str:
        """What is wrong where `climb` found no rung that is left."""
        label, last = next(iter(_operations(lowered, printed, refused).items()))
        first = self._first.get(label, last)
        return f"{first}: {first.why}, nor does it run with {Rung.APART.said}"

    def tell(self) -> None:
        """Say which operations run otherwise than they were to, and why."""
        alike: dict[tuple[str, Rung], list[_Refused]] = {}
        for label, one in self._first.items():
            alike.setdefault((one.why, self.rungs[label]), []).append(one)
        for (why, rung), ones in alike.items():
            names = [*map(str, ones[:_NAMED])]
            names += [f"{len(ones) - _NAMED} more"] if len(ones) > _NAMED else []
            each = "" if len(ones) == 1 else "each "
            say(f"{'; '.join(names)}: {each}{why}", f"it runs with {rung.said}", HINT)


def _operations(
    lowered: ModuleOp, printed: Sequence[KernelSpec], refused: Mapping[str, str]
) -> dict[str, _Refused]:
    """The operations that refused kernels compute, by label; for a group, the group."""
    ops = [op for op in lowered.body.block.ops if isinstance(op, triton.KernelOp)]
    found: dict[str, _Refused] = {}
    for op, spec in zip(ops, printed, strict=True):
        if spec.name not in refused:
            continue
        for origin in op.origins:
            # Members of a group are indented, and notes say why it is apart.
            if not origin.data.startswith((" ", APART_FROM)):
                label, _, place = origin.data.partition(", ")
                schedule = str(op.schedule.data)
                found.setdefault(label, _Refused(label, place, schedule, refused[spec.name]))
    return found


def say(what: str, instead: str, hint: str | None) -> None:
    """Say what ran otherwise than asked, once."""
    text = f"{what}; {instead}" + (f"\n  hint: {hint}" if hint else "")
    if text not in _said:
        _said.add(text)
        _log.warning("%s", text)
