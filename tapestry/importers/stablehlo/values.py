"""Tensors of a StableHLO program on their way: a value of weft, or something known about it.

    Value(Spec((), "i32"), known=np.array(3))          a loop counter
    Value(Spec((4, 6), "i32"), affine=Affine((0, 1), 0))   an iota along dimension 1

Counters, starts of slices and coordinates are known when a program is imported. They become tensors
only where an operation takes them.
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


@dataclass(frozen=True)
class Affine:
    """Integers that are an affine function of their coordinates: `coefficients . p + constant`."""

    coefficients: tuple[int, ...]
    constant: int

    def bounds(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """The least and the greatest of them on a shape; those of no cells are the constant."""
        steps = [c * (n - 1) for c, n in zip(self.coefficients, shape, strict=True) if n]
        low = sum(step for step in steps if step < 0)
        return self.constant + low, self.constant + sum(steps) - low


@dataclass(frozen=True, eq=False)
class Written:
    """A tensor with boxes written over it: those of `patches`, apart from one another."""

    base: Value
    patches: tuple[tuple[tuple[int, ...], Value], ...]
    """Where each box starts, and its cells."""


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor in one of four forms, which `Program.tensor` makes a tensor of weft when needed."""

    spec: Spec
    tensor: SSAValue | None = None
    """What computes it."""
    known: NDArray[Any] | None = None
    """Its cells."""
    affine: Affine | None = None
    """Its cells as a function of their coordinates."""
    written: Written | None = None
    """What was written where."""
    joined: tuple[int, tuple[Value, ...]] | None = None
    """Beside `tensor`: the parts that were joined along a dimension."""

    @property
    def splat(self) -> Any:
        """The one number that all cells are known to be, or None."""
        if self.known is None or not self.known.size or any(self.known.strides):
            return (
                self.known.reshape(-1)[0]
                if self.known is not None and self.known.size == 1
                else None
            )
        return self.known.reshape(-1)[0]
