"""Folds whose points count at one place each, as the gradient of a table of rows has them.

    place[i] = ids[i]            result[v, n] = sum over i of (values[i, n] if place[i] == v else 0)

Points are sorted by their place, and what is at one is reduced at once, so that the work is that of
the points, whatever the number of places.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tapestry.runtime.executor import Array


@dataclass(frozen=True, eq=False)
class Scatter:
    """Folds by `ufunc` what is at one place along `dim`; the others have `zero`."""

    dim: int
    folded: tuple[int, ...]
    others: tuple[int, ...]
    ufunc: np.ufunc
    zero: Array
    low: int
    shape: tuple[int, ...]

    def __call__(self, values: Array, places: Array) -> Array:
        """The state over the kept dimensions; both have extent 1 along `dim`."""
        folded, others = self.folded, self.others
        points = prod(self.shape[d] for d in folded)
        full = tuple(1 if d == self.dim else n for d, n in enumerate(self.shape))
        rows = np.broadcast_to(values, full).transpose(*folded, self.dim, *others)
        rows = rows.reshape(points, -1).astype(self.zero.dtype, copy=False)
        along = tuple(n if d in folded else 1 for d, n in enumerate(self.shape))
        at = np.broadcast_to(places, along).transpose(*folded, self.dim, *others).reshape(-1)
        at = at - self.low
        inside = np.flatnonzero((at >= 0) & (at < self.shape[self.dim]))
        order = inside[np.argsort(at[inside], kind="stable")]
        room = self.shape[self.dim], rows.shape[1]
        # The system hands out cells whose bits are 0: most of a large table is never written.
        nothing = not any(self.zero.tobytes())
        made = np.zeros(room, self.zero.dtype) if nothing else np.full(room, self.zero)
        if len(order):
            here = at[order]
            first = np.flatnonzero(np.concatenate([[True], here[1:] != here[:-1]]))
            made[here[first]] = self.ufunc.reduceat(rows[order], first, axis=0)
        made = made.reshape(self.shape[self.dim], *(self.shape[d] for d in others))
        return np.moveaxis(made, 0, sorted((self.dim, *others)).index(self.dim))
