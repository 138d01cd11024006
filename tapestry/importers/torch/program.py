"""A graph of core ATen as a program, and what it takes and returns of the graph's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tapestry.importers.torch.calling import Ends
from tapestry.importers.torch.memory import Output
from tapestry.importers.torch.uses import Coverage

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tapestry.importers.torch.effects import Aftermath


@dataclass(frozen=True)
class Program:
    """A graph as a program.

    It takes the placeholders at the positions `arguments`, and then `seeds` random numbers (i64).
    After the outputs of the graph come what its effects take, if it has some (`aftermath`).
    """

    module: ModuleOp
    arguments: tuple[int, ...]
    seeds: int
    outputs: tuple[Output, ...]
    coverage: Coverage
    aftermath: Aftermath | None = None

    @property
    def ends(self) -> Ends:
        """What it takes and returns."""
        return Ends(self.arguments, self.seeds, self.outputs)
