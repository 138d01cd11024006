"""Operations whose kernels do not run: how careful each is made again, and what is said of it.

    climbing = Climbing(module, "sm_90")
    while True:
        lowering.lower(ctx, lowered, rungs=climbing.rungs)
        ...                                             # compile; where a kernel is refused:
        if not climbing.climb(lowered, printed, ["matmul"], "it takes too much memory"):
            raise ...                                   # no rung of `rungs.py` is left

What happened is said once, on the channel `fallbacks`, which is on by default: which operation,
why, and what can be done.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from tapestry.codegen.specs import KernelSpec
from tapestry.dialects import loom, triton
from tapestry.logs import channel
from tapestry.passes.triton.loom_to_triton import NO_DEVICE
from tapestry.passes.triton.schedules.rungs import Rung
from tapestry.passes.triton.schedules.task import SCHEDULE

_log = channel("fallbacks")
_said: set[str] = set()


class Climbing:
    """Which rung each operation of a module in loom is on, by label; others are on the first.

    `model` is the device that schedules are chosen for.
    """

    def __init__(self, module: ModuleOp, model: str) -> None:
        self._module = module
        self._model = model
        self.rungs: dict[str, Rung] = {}

    def climb(
        self, lowered: ModuleOp, printed: Sequence[KernelSpec], kernels: Sequence[str], why: str
    ) -> bool:
        """Take the operations of some kernels a rung further; whether there was one.

        `printed` are the kernels of the lowered module, in its order, as they were printed.
        """
        scheduled = {
            op.label.data
            for op in self._module.walk()
            if isinstance(op, loom.OperationOp | loom.FusedOp) and SCHEDULE in op.attributes
        }
        labels = [label for kernel in kernels for label in labels_of(lowered, printed, kernel)]
        moved = False
        for label in dict.fromkeys(labels):
            before = self.rungs.get(label, Rung.GIVEN)
            if before == Rung.GIVEN and label not in scheduled and self._model == NO_DEVICE:
                before = Rung.DEFAULT  # which is what it had
            if before < Rung.APART:
                moved = True
                after = self.rungs[label] = Rung(before + 1)
                say(
                    f"@{label} does not run with {before.said}: {why}",
                    f"it is tried with {after.said}",
                    "give it a schedule that fits (attribute `schedule`); results are the same",
                )
        return moved


def labels_of(lowered: ModuleOp, printed: Sequence[KernelSpec], kernel: str) -> list[str]:
    """The operations that a kernel of a printed program computes; for a group, the group."""
    ops = [op for op in lowered.body.block.ops if isinstance(op, triton.KernelOp)]
    for op, spec in zip(ops, printed, strict=True):
        if spec.name == kernel:
            names = [origin.data for origin in op.origins]
            return [name.partition(",")[0] for name in names if not name.startswith(" ")]
    return []


def say(what: str, instead: str, hint: str) -> None:
    """Say what ran otherwise than asked, once."""
    text = f"{what}; {instead}\n  hint: {hint}"
    if text not in _said:
        _said.add(text)
        _log.warning("%s", text)
