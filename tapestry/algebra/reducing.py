"""Arrays folded by a function of NumPy's.

>>> add = Reduction(np.add, None)
>>> add.fold(np.array([[1, 2], [3, 4]], np.float32), (1,)).tolist()
[3.0, 7.0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_SHORT = 16
"""Cells that are folded into one, up to which it takes less to fold slice by slice."""

_MANY = 1 << 12
"""Cells of an array from which that pays."""

_RUN = 64
"""Cells that are summed one after another, at most twice as many: longer runs are cut in parts."""


@dataclass(frozen=True)
class Reduction:
    """A fold, or the running states of one, in the dtype of what is folded."""

    ufunc: np.ufunc
    signs: np.ufunc | None

    def fold(self, values: Array, axes: Sequence[int]) -> Array:
        """Some axes folded away."""
        if _is_short(values, axes):
            folded = _by_slices(self.ufunc, values, axes)
        else:
            folded = np.asarray(self.ufunc.reduce(values, axis=tuple(axes), dtype=values.dtype))
        return self._signed(folded, lambda signs, by: by.reduce(signs, axis=tuple(axes)), values)

    def running(self, values: Array, axis: int) -> Array:
        """What is folded so far at each place along an axis."""
        if self.ufunc is np.add and values.dtype.kind in "fc":
            states = np.moveaxis(_running_sums(np.moveaxis(values, axis, -1)), -1, axis)
        else:
            states = np.asarray(self.ufunc.accumulate(values, axis=axis, dtype=values.dtype))
        return self._signed(states, lambda signs, by: by.accumulate(signs, axis=axis), values)

    def _signed(
        self, result: Array, combined: Callable[[Array, np.ufunc], Array], values: Array
    ) -> Array:
        if self.signs is None:
            return result
        zero = result == 0
        if not np.any(zero):
            return result
        negative = combined(np.signbit(values), self.signs)
        signed = np.where(negative, -0.0, 0.0).astype(values.dtype)
        return np.where(zero, signed, result)


def _running_sums(values: Array) -> Array:
    """Sums of floats so far, along the last axis: of parts, and what is before each part added.

    So errors grow with the logarithm of how many cells there are, as those of one sum do.
    """
    count = values.shape[-1]
    if count <= 2 * _RUN:
        return np.asarray(np.add.accumulate(values, axis=-1, dtype=values.dtype))
    whole = count // _RUN * _RUN
    shape = (*values.shape[:-1], whole // _RUN, _RUN)
    parts = np.add.accumulate(values[..., :whole].reshape(shape), axis=-1, dtype=values.dtype)
    ahead = _running_sums(parts[..., -1])
    parts[..., 1:, :] += ahead[..., :-1, None]
    states = parts.reshape(*values.shape[:-1], whole)
    if whole == count:
        return states
    rest = np.add.accumulate(values[..., whole:], axis=-1, dtype=values.dtype)
    return np.concatenate([states, rest + ahead[..., -1:]], axis=-1)


def _is_short(values: Array, axes: Sequence[int]) -> bool:
    """Whether what is folded into one cell are a few neighbours, for each of many cells.

    NumPy goes through them by a call of its inner loop for each; and sums 16-bit floats in 32 bits.
    """
    if values.size < _MANY or values.dtype.kind not in "iuf" or values.itemsize < 4:
        return False
    long = [axis for axis, extent in enumerate(values.shape) if extent > 1]
    return long[-1] in axes and prod(values.shape[axis] for axis in axes) <= _SHORT


def _by_slices(ufunc: np.ufunc, values: Array, axes: Sequence[int]) -> Array:
    """A fold along axes of at least two cells, in order."""
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    moved = values.transpose(*sorted(axes), *kept)
    first, second, *others = (
        moved[place] for place in np.ndindex(*(values.shape[axis] for axis in sorted(axes)))
    )
    folded = np.asarray(ufunc(first, second))
    for part in others:
        ufunc(folded, part, out=folded)
    return folded
