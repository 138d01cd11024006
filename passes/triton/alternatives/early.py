"""Kernels that are made before the rest of their program is looked at, for a compiler to begin on.

    early = Early(make)         # `make` takes a program of one operation
    early.products(module)      # when nothing is chosen yet
    early.groups(module)        # when groups are as they stay

In: loom, which stays as it is. Choosing among schedules and other ways takes about as long as
compiling: whoever compiles would be idle meanwhile. Where another operation changes what becomes
of one, it was made in vain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.passes.triton.alternatives.alone import Scheduled, alone, canonical
from tapestry.passes.triton.alternatives.storing import choices_of, scheduled
from tapestry.passes.triton.kernels.contraction import find_contractions
from tapestry.passes.triton.kernels.mapfold import map_fold_of


@dataclass
class Early:
    """Has the kernels of some operations made as they are alone; those of equal ones once."""

    make: Callable[[ModuleOp], None]
    _known: set[str] = field(default_factory=set[str])

    def products(self, module: ModuleOp) -> None:
        """Products of factors that are there: little is to be chosen for them."""
        self._all(op for op in scheduled(module) if _is_plain_product(op))

    def groups(self, module: ModuleOp) -> None:
        """Groups of several folds: these take a compiler longest."""
        self._all(op for op in scheduled(module) if _folds(op) > 1)

    def _all(self, ops: Iterable[Scheduled]) -> None:
        for op in ops:
            program = alone(op)
            if (text := canonical(program)) not in self._known:
                self._known.add(text)
                with suppress(TapestryError):  # what is wrong is said where it is lowered
                    self.make(program)


def _is_plain_product(op: Scheduled) -> bool:
    if isinstance(op, loom.FusedOp) or choices_of(op):
        return False
    return any(find_contractions(map_fold_of(op)))


def _folds(op: Scheduled) -> int:
    members = op.members if isinstance(op, loom.FusedOp) else [op]
    return sum(bool(member.fold_dims) for member in members)
