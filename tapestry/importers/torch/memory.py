"""What a graph returns, as tensors: on memory of their own, unless PyTorch shares it too.

A program's values never change, so its results may be views of its arguments, of constants and of
each other. PyTorch's tensors may be written to. So a result is copied where it would share memory
with an argument that the graph's own output does not share memory with, or with another result;
and where PyTorch's cells lie one after another in some order and its do not in that one, because
`view` asks for that, and those who ask for channels last. What PyTorch returns as a view of an
input or of another result is made one of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import torch

from tapestry.importers.torch.dtypes import as_tensor, rows_of
from tapestry.runtime.executor import Array


@dataclass(frozen=True)
class Given:
    """An output that is the argument at this position."""

    position: int


@dataclass(frozen=True)
class Made:
    """An output that is this result of the program.

    `contiguous` says how PyTorch's lies, `view` whether it shares memory with an argument, `device`
    where it is. `order`, where it is not contiguous and somebody sees that, are the axes along
    which its cells lie one after another.
    """

    result: int
    contiguous: bool
    view: bool
    device: torch.device
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plain:
    """An output that is no tensor: a number, None."""

    value: object


@dataclass(frozen=True)
class View:
    """An output that is a view of another one, or of an argument: cells on that one's memory."""

    base: int
    """The position of that one."""
    given: bool
    """Whether that is an argument."""
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    """How many cells later than that one it begins."""

    def of(self, base: torch.Tensor) -> torch.Tensor:
        """The view."""
        return base.as_strided(self.size, self.stride, base.storage_offset() + self.offset)


Output: TypeAlias = "Given | Made | Plain | View"


class Memory(Protocol):
    """How a kind of arrays lies in memory."""

    def owner(self, array: Any) -> int:
        """What identifies the memory that an array shares."""
        ...

    def is_new(self, array: Any) -> bool:
        """Whether an array surely shares no memory with what a program takes."""
        ...

    def copied(self, array: Any) -> Any:
        """The same cells on other memory."""
        ...

    def contiguous(self, array: Any) -> Any:
        """The same cells one after another."""
        ...

    def turned(self, array: Any, order: Sequence[int]) -> Any:
        """A view with axes in another order."""
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

    def is_new(self, array: Array) -> bool:
        """Whether the memory is its own: what a program takes is on memory of tensors."""
        return array.base is None

    def copied(self, array: Array) -> Array:
        """A copy."""
        return rows_of(array)

    def contiguous(self, array: Array) -> Array:
        """A copy unless its cells lie so."""
        return array if array.flags.c_contiguous else rows_of(array)

    def turned(self, array: Array, order: Sequence[int]) -> Array:
        """A view."""
        return array.transpose(order)

    def tensor(self, array: Array, device: torch.device) -> torch.Tensor:
        """A tensor on the same memory, where the device is the CPU."""
        made = as_tensor(array)
        return made if device.type == "cpu" else made.to(device)


class Tensors:
    """PyTorch's."""

    def owner(self, array: torch.Tensor) -> int:
        """Where the storage is."""
        return array.untyped_storage().data_ptr()

    def is_new(self, array: torch.Tensor) -> bool:  # noqa: ARG002
        """Not known without a look."""
        return False

    def copied(self, array: torch.Tensor) -> torch.Tensor:
        """A copy."""
        return array.clone()

    def contiguous(self, array: torch.Tensor) -> torch.Tensor:
        """A copy unless its cells lie so."""
        return array.contiguous()

    def turned(self, array: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
        """A view."""
        return array.permute(*order)

    def tensor(self, array: torch.Tensor, device: torch.device) -> torch.Tensor:
        """The tensor on a device."""
        return array.to(device)


class Returning:
    """The outputs of a graph, from what its program returns.

    of = Returning(outputs, Arrays())
    of(given, inputs, results)      # called with `given`, from a program that took `inputs`
    """

    def __init__(self, outputs: Sequence[Output], memory: Memory) -> None:
        self._memory = memory
        self._plain = [output.value if isinstance(output, Plain) else None for output in outputs]
        self._given: list[tuple[int, int]] = []
        self._made: list[tuple[int, Made]] = []
        self._views: list[tuple[int, View]] = []
        for place, output in enumerate(outputs):
            match output:
                case Given():
                    self._given.append((place, output.position))
                case Made():
                    self._made.append((place, output))
                case View():
                    self._views.append((place, output))
                case Plain():
                    pass

    def __call__(
        self, given: Sequence[Any], inputs: Sequence[Any], results: Sequence[Any]
    ) -> tuple[object, ...]:
        """The outputs."""
        memory, found = self._memory, self._plain.copy()
        for place, position in self._given:
            found[place] = given[position]
        arguments: set[int] | None = None  # found where it is needed
        taken: set[int] = set()
        for place, output in self._made:
            array = results[output.result]
            owner = memory.owner(array)
            shared = owner in taken
            if not (shared or output.view or memory.is_new(array)):
                if arguments is None:
                    arguments = {memory.owner(one) for one in inputs}
                shared = owner in arguments
            if shared:
                array = memory.copied(array)
            if output.contiguous:
                array = memory.contiguous(array)
            elif output.order:
                along = memory.contiguous(memory.turned(array, output.order))
                array = memory.turned(along, [*map(output.order.index, range(along.ndim))])
            taken.add(owner)
            found[place] = memory.tensor(array, output.device)
        for place, view in self._views:
            base: object = given[view.base] if view.given else found[view.base]
            found[place] = view.of(cast("torch.Tensor", base))
        return tuple(found)
