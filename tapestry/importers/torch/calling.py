"""Functions of arrays on tensors of the CPU.

call = OnArrays(Ends(arguments=(0,), seeds=0, outputs=(Made(...),)), run)
call([torch.ones(2, 3)])        # what the graph returns

A program that is one call of compiled code (`tapestry.runtime.prepared.linking`) is told where
tensors are: to make an array of a tensor, and a tensor of an array, takes longer than small
programs do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
import torch

from tapestry.importers.torch.dtypes import as_array, as_tensor
from tapestry.importers.torch.memory import Arrays, Made, Output, Returning
from tapestry.runtime.cpu.addresses import address
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.linking import Linked
from tapestry.runtime.prepared.memory import is_large
from tapestry.runtime.prepared.script import Whole

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
        self._results = _plain_results(ends)
        self._direct: _Direct | None = None

    def __call__(self, given: Sequence[Any]) -> tuple[object, ...]:
        """What the graph returns."""
        if self._direct is not None:
            made = self._direct(given)
            if made is not None:
                return made
            if not self._direct.linked.is_possible():
                self._direct = None
        inputs = [as_array(given[position]) for position in self._positions]
        if self._seeds:
            inputs += [as_array(seed) for seed in drawn(self._seeds)]
        made = self._returned(given, inputs, self.run(inputs))
        if self._direct is None and self._results is not None:
            self._direct = self._found(given, inputs)
        return made

    def _found(self, given: Sequence[Any], inputs: Sequence[Array]) -> _Direct | None:
        """The same for tensors that lie like these; None where the program is not linked."""
        whole = getattr(self.run, "run", self.run)  # of a prepared program
        linked = whole.linked if isinstance(whole, Whole) else None
        if (
            linked is None
            or not linked.is_possible()
            or linked.lies != tuple(array.strides for array in inputs)
        ):
            return None
        tensors = [given[position] for position in self._positions]
        pairs = zip(inputs, tensors, strict=True)
        if any(address(array) != tensor.data_ptr() for array, tensor in pairs):
            return None  # a copy, which lies otherwise: of what is negated, say
        if any(is_large(prod(shape) * dtype.itemsize) for _, shape, dtype in linked.makes):
            self._results = None  # arrays are on memory that was there before
            return None
        return _Direct(linked, self._positions, given, self._results or ())


class _Direct:
    """A program that is linked, on tensors that lie as some do."""

    def __init__(
        self,
        linked: Linked,
        positions: Sequence[int],
        given: Sequence[torch.Tensor],
        results: Sequence[int],
    ) -> None:
        self.linked = linked
        self._lies = [(position, given[position].stride()) for position in positions]
        self._makes = [
            (shape, as_tensor(np.empty(0, dtype)).dtype) for _, shape, dtype in linked.makes
        ]
        self._results = results

    def __call__(self, given: Sequence[torch.Tensor]) -> tuple[object, ...] | None:
        """What the graph returns; None where tensors lie otherwise, or it is not possible."""
        if not self.linked.is_possible():
            return None
        addresses: list[int] = []
        for position, lies in self._lies:
            tensor = given[position]
            if tensor.stride() != lies or not tensor.is_cpu:
                return None
            if tensor.is_neg() or tensor.is_conj():
                return None
            where = tensor.data_ptr()
            if not where:
                return None  # zeros without memory
            addresses.append(where)
        made = [torch.empty(shape, dtype=dtype, device="cpu") for shape, dtype in self._makes]
        addresses += [tensor.data_ptr() for tensor in made]
        is_done = self.linked.run_at(addresses)
        return tuple([made[result] for result in self._results]) if is_done else None


def _plain_results(ends: Ends) -> list[int] | None:
    """Which results a graph returns, in order; None where that is more than new tensors."""
    if ends.seeds:
        return None
    found: list[int] = []
    for output in ends.outputs:
        if not isinstance(output, Made) or output.view or output.order:
            return None
        if output.device.type != "cpu" or output.result in found:
            return None
        found.append(output.result)
    return found


def drawn(count: int) -> list[torch.Tensor]:
    """Draws from PyTorch's generator, so that its seed makes runs repeatable."""
    if count == 0:
        return []
    # Whatever the default device is: that is where PyTorch draws without one.
    return list(torch.randint(-(1 << 63), (1 << 63) - 1, (count,), device="cpu").unbind())
