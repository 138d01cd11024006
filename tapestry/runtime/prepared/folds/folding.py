"""Folds of whole arrays, as `whole` finds them: functions of what wrap yields.

state = Combine((np.dtype("f4"),), 2, AtOnce(counting, plain, moved, multiply))(values)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tapestry.algebra.reducing import Reduction
from tapestry.runtime.arrays.matrices import column_sums
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.cells import spread
from tapestry.runtime.prepared.folds.halving import Halves
from tapestry.runtime.prepared.library import Multiply
from tapestry.runtime.prepared.script import Finished

Fold: TypeAlias = Callable[[Sequence[Array]], list[Array]]
"""From what wrap yields, an axis per dimension, to the state over the kept dimensions."""


@dataclass(frozen=True, eq=False)
class Counting:
    """The folded dimensions and their extents, and which points count; None when all do."""

    extents: tuple[tuple[int, int], ...]
    mask: Array | None

    @property
    def folded(self) -> tuple[int, ...]:
        """The folded dimensions."""
        return tuple(dim for dim, _ in self.extents)

    def counted(self, value: Array, zero: Array) -> Array:
        """Values, zero where points do not count."""
        return value if self.mask is None else np.where(self.mask, value, zero)


@dataclass(frozen=True, eq=False)
class Combine:
    """A fold of values in any dtype, also of single numbers."""

    dtypes: tuple[np.dtype[Any], ...]
    rank: int
    fold: Fold

    def __call__(self, values: Sequence[Array]) -> list[Array]:
        """The state."""
        pairs = zip(values, self.dtypes, strict=True)
        typed = [v if v.dtype == dtype else v.astype(dtype) for v, dtype in pairs]
        rank = self.rank
        return self.fold([v if v.ndim == rank else v.reshape((1,) * rank) for v in typed])


@dataclass(frozen=True, eq=False)
class Plain:
    """A part of a state that is folded by itself."""

    part: int
    reduction: Reduction
    zero: Array


@dataclass(frozen=True, eq=False)
class Summed:
    """A part that others move, summed.

    It is of all parts of the states that are folded, and the plain parts of the result.
    """

    counting: Counting
    body: Finished
    addition: Reduction
    zero: Array

    def __call__(self, given: Sequence[Array]) -> Array:
        """The sum."""
        (value,) = self.body(given)
        counting = self.counting
        along = spread(counting.extents, counting.counted(value, self.zero))
        return self.addition.fold(along, counting.folded)


@dataclass(frozen=True, eq=False)
class Multiplied:
    """A moved part that is a product of `factors`, of which that number `on` is masked."""

    summed: Summed
    factors: Finished
    multiply: Callable[[Array, Array], Array]
    on: int

    def __call__(self, given: Sequence[Array]) -> Array:
        """The sum."""
        sides, mask = self.factors(given), self.summed.counting.mask
        if mask is not None:
            # What does not count must be zero, whatever the other factor is there.
            if not np.isfinite(sides[1 - self.on]).all():
                return self.summed(given)
            zero = sides[self.on].dtype.type(0)
            sides[self.on] = np.where(mask, sides[self.on], zero)
        return self.multiply(*sides)


@dataclass(frozen=True, eq=False)
class AtOnce:
    """Plain parts, each by itself, and then those that are moved, by their number."""

    counting: Counting
    plain: tuple[Plain, ...]
    moved: tuple[tuple[int, Summed | Multiplied], ...]
    multiply: Multiply

    def __call__(self, values: Sequence[Array]) -> list[Array]:
        """The state."""
        counting, folded = self.counting, self.counting.folded
        own = list(values)
        for one in self.plain:
            own[one.part] = counting.counted(own[one.part], one.zero)
        result, merged = list(own), list(own)
        for one in self.plain:
            along = spread(counting.extents, own[one.part])
            summed = column_sums(one.reduction, along, folded, self.multiply)
            made = np.asarray(one.reduction.fold(along, folded) if summed is None else summed)
            kept = tuple(None if d in folded else slice(None) for d in range(along.ndim))
            result[one.part], merged[one.part] = made, made[kept]
        for part, move in self.moved:
            result[part] = move([*own, *merged])
        return result


@dataclass(frozen=True, eq=False)
class ByHalves:
    """States merged with their neighbours until there is one."""

    counting: Counting
    zeros: tuple[Array, ...]
    merge: Halves

    def __call__(self, values: Sequence[Array]) -> list[Array]:
        """The state."""
        counting = self.counting
        pairs = zip(values, self.zeros, strict=True)
        whole = [spread(counting.extents, counting.counted(*pair)) for pair in pairs]
        return [part.squeeze(counting.folded) for part in self.merge(*whole)]
