"""What a graph returns, as tensors: on memory of their own, unless PyTorch shares it too.

A program's values never change, so its results may be views of its arguments, of constants and of
each other. PyTorch's tensors may be written to. So a result is copied where it would share memory
with an argument that the graph's own output does not share memory with, or with another result;
and where PyTorch's is contiguous and it is not, because `view` asks for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch

from tapestry.importers.torch.dtypes import as_tensor
from tapestry.runtime.executor import Array


@dataclass(frozen=True)
class Given:
    """An output that is the argument at this position."""

    position: int


@dataclass(frozen=True)
class Made:
    """An output that is this result of the program.

    `contiguous` says how PyTorch's lies, `view` whether it shares memory with an argument, `device`
    where it is.
    """

    result: int
    contiguous: bool
    view: bool
    device: torch.device


@dataclass(frozen=True)
class Plain:
    """An output that is no tensor: a number, None."""

    value: object


Output: TypeAlias = "Given | Made | Plain"


class Memory(Protocol):
    """How a kind of arrays lies in memory."""

    def owner(self, array: Any) -> int:
        """What identifies the memory that an array shares."""
        ...

    def copied(self, array: Any) -> Any:
        """The same cells on other memory."""
        ...

    def contiguous(self, array: Any) -> Any:
        """The same cells one after another."""
        ...

    def tensor(self, array: Any, device: torch.device) -> torch.Tensor:
        """An array as a tensor on a device."""
        ...


class Arrays:
    """NumPy's."""

    def owner(self, array: Array) -> int:
        """The array that owns the memory."""
        base = array.base
        while isinstance(base, np.ndarray):
            array, base = base, base.base
        return id(array)

    def copied(self, array: Array) -> Array:
        """A copy."""
        return array.copy()

    def contiguous(self, array: Array) -> Array:
        """A copy unless its cells lie so."""
        return array if array.flags.c_contiguous else array.copy()

    def tensor(self, array: Array, device: torch.device) -> torch.Tensor:
        """A tensor on the same memory, where the device is the CPU."""
        made = as_tensor(array)
        return made if device.type == "cpu" else made.to(device)


class Tensors:
    """PyTorch's."""

    def owner(self, array: torch.Tensor) -> int:
        """Where the storage is."""
        return array.untyped_storage().data_ptr()

    def copied(self, array: torch.Tensor) -> torch.Tensor:
        """A copy."""
        return array.clone()

    def contiguous(self, array: torch.Tensor) -> torch.Tensor:
        """A copy unless its cells lie so."""
        return array.contiguous()

    def tensor(self, array: torch.Tensor, device: torch.device) -> torch.Tensor:
        """The tensor on a device."""
        return array.to(device)


def returned(
    outputs: Sequence[Output],
    given: Sequence[Any],
    inputs: Sequence[Any],
    results: Sequence[Any],
    memory: Memory,
) -> tuple[object, ...]:
    """The outputs of a graph, called with `given`, from a program that took `inputs`."""
    arguments = {memory.owner(array) for array in inputs}
    taken: set[int] = set()
    found: list[object] = []
    for output in outputs:
        match output:
            case Plain():
                found.append(output.value)
            case Given():
                found.append(given[output.position])
            case Made():
                array = results[output.result]
                owner = memory.owner(array)
                if owner in taken or (owner in arguments and not output.view):
                    array = memory.copied(array)
                if output.contiguous:
                    array = memory.contiguous(array)
                taken.add(owner)
                found.append(memory.tensor(array, output.device))
    return tuple(found)
