"""The states that a scan comes to at each place along an axis, of whole arrays.

states = States(merge, None, (zero,), 1)
(sums,) = states(values)                # (64, 10) to (64, 10)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tapestry.algebra.reducing import Reduction
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.folds.halving import Merge


@dataclass(frozen=True, eq=False)
class States:
    """Folds the parts of states along an axis, and keeps what that comes to at each place.

    It is one accumulation of NumPy's, in order, where there is a `reduction`; else log2(n) merges
    of all states, each with the one `step` before it, which keeps the order of what is merged.
    """

    merge: Merge
    reduction: Reduction | None
    zeros: tuple[Array, ...]
    axis: int

    def __call__(self, *parts: Array) -> list[Array]:
        """The parts of the states, of one shape."""
        axis, shape = self.axis, np.broadcast_shapes(*(part.shape for part in parts))
        first = tuple(1 if d == axis else extent for d, extent in enumerate(shape))
        states = [
            np.concatenate([np.broadcast_to(zero, first), np.broadcast_to(part, shape)], axis)
            for zero, part in zip(self.zeros, parts, strict=True)
        ]
        if self.reduction is not None:
            states = [self.reduction.running(states[0], axis)]
        else:
            step = 1
            while step <= shape[axis]:
                merged = self.merge(
                    [
                        *(self._cut(state, None, -step) for state in states),
                        *(self._cut(state, step, None) for state in states),
                    ]
                )
                ahead = [self._cut(state, None, step) for state in states]
                pairs = zip(ahead, merged, strict=True)
                states = [np.concatenate(pair, axis) for pair in pairs]
                step *= 2
        return [self._cut(state, 1, None) for state in states]

    def _cut(self, state: Array, start: int | None, stop: int | None) -> Array:
        return state[(slice(None),) * self.axis + (slice(start, stop),)]
