"""Folds whose points count at one place each, as the gradient of a table of rows has them.

    place[i] = ids[i]            result[v, n] = sum over i of (values[i, n] if place[i] == v else 0)

Points are sorted by their place, and what is at one is reduced at once, so that the work is that of
the points, whatever the number of places. Where places vary along kept dimensions too, those are
part of the place; of what are no rows then, each point is folded by itself.
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
        mixed = tuple(d for d in self.others if places.ndim and places.shape[d] > 1)
        others = tuple(d for d in self.others if d not in mixed)
        along = (*mixed, *self.folded)
        points, lanes = (prod(self.shape[d] for d in dims) for dims in (along, mixed))
        count = self.shape[self.dim]
        full = tuple(1 if d == self.dim else n for d, n in enumerate(self.shape))
        rows = np.broadcast_to(values, full).transpose(*along, self.dim, *others)
        rows = rows.reshape(points, -1).astype(self.zero.dtype, copy=False)
        varying = tuple(n if d in along else 1 for d, n in enumerate(self.shape))
        at = np.broadcast_to(places, varying).transpose(*along, self.dim, *others).reshape(-1)
        if self.low:
            at = at - self.low
        # What is negative is a large number without a sign.
        inside = at.view(np.uint64) < count
        if mixed:
            at = (at.reshape(lanes, -1) + count * np.arange(lanes)[:, None]).reshape(-1)
        if not inside.all():
            at, rows = at[inside], rows[inside]
        room = count * lanes, rows.shape[1]
        # The system hands out cells whose bits are 0: most of a large table is never written.
        nothing = not any(self.zero.tobytes())
        made = np.zeros(room, self.zero.dtype) if nothing else np.full(room, self.zero)
        if rows.shape[1] == 1:
            self.ufunc.at(made[:, 0], at, rows[:, 0])
        elif len(at):
            order = np.argsort(at, kind="stable")
            here = at[order]
            first = np.flatnonzero(np.concatenate([[True], here[1:] != here[:-1]]))
            made[here[first]] = self.ufunc.reduceat(rows[order], first, axis=0)
        dims = (*mixed, self.dim, *others)
        made = made.reshape([self.shape[d] for d in dims])
        return made.transpose(np.argsort(dims))
