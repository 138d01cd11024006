"""Tensors of a StableHLO program on their way: a value of weft, or cells that are known.

    Value(Spec((), "i32"), known=np.array(3))       a loop counter, until something computes with it

Counters, trip counts and starts of slices are known when a program is imported, and become
constants only where an operation takes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from tapestry.algebra.dtypes import numpy_dtype, type_named


@dataclass(frozen=True)
class Spec:
    """The shape and the element type (`f32`, `i1`, ...) of a tensor."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"tensor<{''.join(f'{n}x' for n in self.shape)}{self.dtype}>"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return prod(self.shape)

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith(("f", "bf"))

    @property
    def is_complex(self) -> bool:
        return self.dtype.startswith("complex")

    @property
    def is_integer(self) -> bool:
        """Whether cells are integers; truth values (i1) are none."""
        return self.dtype.startswith(("i", "ui")) and self.dtype != "i1"

    @property
    def is_unsigned(self) -> bool:
        return self.dtype.startswith("ui")

    @property
    def width(self) -> int:
        """Bits of a cell."""
        return 1 if self.dtype == "i1" else 8 * self.numpy.itemsize

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype of cells."""
        element = type_named(self.dtype)
        assert element is not None
        return numpy_dtype(element)

    def of(self, *, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Spec:
        """The same with another shape or element type."""
        return Spec(self.shape if shape is None else shape, self.dtype if dtype is None else dtype)


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor: `tensor` is what computes it, `known` its cells; one of the two is there."""

    spec: Spec
    tensor: SSAValue | None = None
    known: NDArray[Any] | None = None
