"""What a graph returns, as tensors: on memory of their own, unless PyTorch shares it too.

A program's values never change, so its results may be views of its arguments, of constants and of
each other. PyTorch's tensors may be written to. So a result is copied where it would share memory
with an argument that the graph's own output does not share memory with, or with another result;
and where PyTorch's is contiguous and it is not, because `view` asks for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tapestry.importers.torch.dtypes import as_tensor
from tapestry.runtime.executor import Array


@dataclass(frozen=True)
class Given:
    """An output that is the argument at this position."""

    position: int


@dataclass(frozen=True)
class Made:
    """An output that is this result of the program.

    `contiguous` says how PyTorch's lies, `view` whether it shares memory with an argument.
    """

    result: int
    contiguous: bool
    view: bool


@dataclass(frozen=True)
class Plain:
    """An output that is no tensor: a number, None."""

    value: object


Output: TypeAlias = "Given | Made | Plain"


def returned(
    outputs: Sequence[Output],
    given: Sequence[Any],
    inputs: Sequence[Array],
    results: Sequence[Array],
) -> tuple[object, ...]:
    """The outputs of a graph, called with `given`, from a program that took `inputs`."""
    arguments = {_owner(array) for array in inputs}
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
                owner = _owner(array)
                if owner in taken or (owner in arguments and not output.view):
                    array = array.copy()
                elif output.contiguous and not array.flags.c_contiguous:
                    array = np.ascontiguousarray(array).reshape(array.shape)
                taken.add(owner)
                found.append(as_tensor(array))
    return tuple(found)


def _owner(array: Array) -> int:
    """What identifies the array that owns an array's memory."""
    base = array.base
    while isinstance(base, np.ndarray):
        array, base = base, base.base
    return id(array)
