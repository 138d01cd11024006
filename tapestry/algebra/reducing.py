"""Arrays folded by a function of NumPy's.

>>> add = Reduction(np.add, None)
>>> add.fold(np.array([[1, 2], [3, 4]], np.float32), (1,)).tolist()
[3.0, 7.0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Reduction:
    """A fold, or the running states of one, in the dtype of what is folded."""

    ufunc: np.ufunc
    signs: np.ufunc | None

    def fold(self, values: Array, axes: Sequence[int]) -> Array:
        """Some axes folded away."""
        folded = np.asarray(self.ufunc.reduce(values, axis=tuple(axes), dtype=values.dtype))
        return self._signed(folded, lambda signs, by: by.reduce(signs, axis=tuple(axes)), values)

    def running(self, values: Array, axis: int) -> Array:
        """What is folded so far at each place along an axis."""
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
