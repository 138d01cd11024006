"""What a process computes large arrays by: products of matrices, and functions of cells.

    PreparedProgram(module, Library(multiply=torch_product))

That is the host's to say. A process that has threads of its own for it, as one that runs PyTorch,
should not have those of another library beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tapestry.runtime.executor import Array

Function: TypeAlias = Callable[..., Array]

Multiply: TypeAlias = Callable[[Array, Array], Array]
"""A matrix product, or one of each pair of two stacks of matrices."""


@dataclass(frozen=True)
class Library:
    """`functions` has what takes the place of some functions of `tapestry.algebra`."""

    multiply: Multiply = np.matmul
    functions: Mapping[Function, Function] = field(default_factory=dict[Any, Any])

    @property
    def is_numpy(self) -> bool:
        """Whether products are NumPy's."""
        return self.multiply is np.matmul
