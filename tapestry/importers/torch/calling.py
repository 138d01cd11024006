"""Functions of arrays on tensors of the CPU.

call = OnArrays(Ends(arguments=(0,), seeds=0, outputs=(Made(...),)), run)
call([torch.ones(2, 3)])        # what the graph returns
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from tapestry.importers.torch.dtypes import as_array
from tapestry.importers.torch.memory import Arrays, Output, Returning
from tapestry.runtime.executor import Array

Runner: TypeAlias = Callable[[Sequence[Any]], tuple[object, ...]]
"""From what a graph's placeholders hold to what the graph returns."""


@dataclass(frozen=True)
class Ends:
    """What a program takes and returns of a graph's, as `Program` says."""

    arguments: tuple[int, ...]
    seeds: int
    outputs: tuple[Output, ...]


class OnArrays:
    """A function of arrays, `run`, which shares the memory of tensors."""

    def __init__(self, ends: Ends, run: Callable[[Sequence[Array]], Sequence[Array]]) -> None:
        self.run = run
        self._positions, self._seeds = ends.arguments, ends.seeds
        self._returned = Returning(ends.outputs, Arrays())

    def __call__(self, given: Sequence[Any]) -> tuple[object, ...]:
        """What the graph returns."""
        inputs = [as_array(given[position]) for position in self._positions]
        if self._seeds:
            inputs += [as_array(seed) for seed in drawn(self._seeds)]
        return self._returned(given, inputs, self.run(inputs))


def drawn(count: int) -> list[torch.Tensor]:
    """Draws from PyTorch's generator, so that its seed makes runs repeatable."""
    if count == 0:
        return []
    # Whatever the default device is: that is where PyTorch draws without one.
    return list(torch.randint(-(1 << 63), (1 << 63) - 1, (count,), device="cpu").unbind())
