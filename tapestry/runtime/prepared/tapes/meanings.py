"""What calls of a tape compute, for those who compute it otherwise than by the call.

tape.call(np.multiply, (x, y), key, meaning=mulf)           # a scalar operation
tape.call(reduced, (x,), key, meaning=Reduced("arith.addf", 0.0, (1,)))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tapestry.algebra.named import Scalar
from tapestry.runtime.prepared.loops.merging import Merging


@dataclass(frozen=True)
class Cast:
    """Numbers in another dtype; `bounded` ones are between the least and the most of 32 bits."""

    dtype: np.dtype[Any]
    bounded: bool = False


@dataclass(frozen=True)
class Masked:
    """The second operand where the first one holds, and elsewhere a number."""

    zero: float


@dataclass(frozen=True)
class Placed:
    """The cell of a block, the first operand, at places that so many operands say.

    After those comes what is outside the block, or which points are `counted`, or nothing.
    """

    rank: int
    counted: bool


@dataclass(frozen=True)
class Spread:
    """The operand, as a view that has some extents along some dimensions."""

    extents: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Copied:
    """The operand, where it is written to."""


@dataclass(frozen=True)
class Reduced:
    """The operand, folded along some axes, which keep an extent of 1."""

    primitive: str
    zero: float
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Merged:
    """The operands, which are the parts of states, as a list: states merged along some axes."""

    merging: Merging
    zeros: tuple[float, ...]
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Running:
    """The operands, which are the parts of states, as a list: those come to along an axis."""

    merging: Merging
    zeros: tuple[float, ...]
    axis: int

    @property
    def axes(self) -> tuple[int, ...]:
        return (self.axis,)


@dataclass(frozen=True)
class Part:
    """One of a list."""

    number: int


@dataclass(frozen=True)
class Product:
    """The first two operands multiplied as stacks of matrices.

    Where zeros of the one stand for points that do not count, the other one is `finite`: it is
    looked at whether it is, and if not, the call does something else.
    """

    finite: int | None = None


@dataclass(frozen=True)
class Arranged:
    """The operand's cells in another order, as a view where they lie so."""


Meaning: TypeAlias = (
    Scalar
    | Cast
    | Masked
    | Placed
    | Spread
    | Copied
    | Reduced
    | Merged
    | Running
    | Part
    | Product
    | Arranged
)
