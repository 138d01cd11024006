"""What a process computes large arrays by: products of matrices, and functions of cells.

    PreparedProgram(module, Library(multiply=torch_product))

That is the host's to say. A process that has threads of its own for it, as one that runs PyTorch,
should not have those of another library beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from tapestry.algebra.computing import widened
from tapestry.runtime.cpu.threads import Team
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops.looping import OFTEN, Loops
from tapestry.runtime.prepared.views import View

Function: TypeAlias = Callable[..., Array]

Multiply: TypeAlias = Callable[[Array, Array], Array]
"""A matrix product, or one of each pair of two stacks of matrices."""


@runtime_checkable
class Sized(Protocol):
    """A function of cells that takes the place of another where there are many."""

    def of(self, cells: int) -> Function:
        """What to call for so many: itself, or the other one."""
        ...

    def __call__(self, *operands: Array, out: Array | None = None) -> Array: ...


@dataclass(frozen=True)
class Slide:
    """How a kernel slides along an axis of a signal.

    Cell `i` of the result sums products of each cell `k` of the kernel and cell
    `step * i + reach * k + start` of the signal, which is zero where it has none (and zero times
    infinity is not a number); `step` and `reach` are positive.
    """

    cells: int
    """Of the result."""
    step: int
    reach: int
    start: int


Slid: TypeAlias = Callable[[Array, Array, Sequence[Slide]], Array]
"""Sums of products of a signal (batch, rows, inner, *axes) and a kernel (batch, columns, inner,
*axes), with one slide per axis: of shape (batch, rows, columns, *cells). The factors have one
dtype, and any strides.
"""


@dataclass(frozen=True, eq=False)
class SlidState:
    """The state of one part, an axis per kept dimension, from the arrays of the inputs.

    `signal` and `kernel` are the numbers of inputs, and views of these.
    """

    signal: tuple[int, View]
    kernel: tuple[int, View]
    multiply: Slid
    slides: tuple[Slide, ...]
    arranged: View

    def __call__(self, operands: Sequence[Array]) -> list[Array]:
        """The sums."""
        left, right = (view(operands[number]) for number, view in (self.signal, self.kernel))
        return [self.arranged(self.multiply(widened(left), widened(right), self.slides))]


@dataclass(frozen=True)
class Library:
    """`functions` has what takes the place of some functions of `tapestry.algebra`.

    `loops` are compiled for many scalar operations. Without `slide`, sums over windows are products
    of matrices.
    """

    multiply: Multiply = np.matmul
    functions: Mapping[Function, Function] = field(default_factory=dict[Any, Any])
    slide: Slid | None = None
    loops: Loops | None = field(default_factory=partial(Loops, OFTEN))

    @property
    def team(self) -> Team | None:
        """The threads that share loops."""
        return None if self.loops is None else self.loops.team

    @property
    def is_numpy(self) -> bool:
        """Whether products are NumPy's."""
        return self.multiply is np.matmul
