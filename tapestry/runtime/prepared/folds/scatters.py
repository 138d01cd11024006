"""Folds whose points count at one place each, as the gradient of a table of rows has them.

    place[i] = ids[i]            result[v, n] = sum over i of (values[i, n] if place[i] == v else 0)

The work is that of the points, whatever the number of places. Rows are folded one by one, by a
compiled loop; without one, points are sorted by their place, and what is at one is reduced at once.
Where places vary along kept dimensions too, those are part of the place.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tapestry.codegen.loops import kind_of
from tapestry.codegen.loops.graphs import FOLDS
from tapestry.codegen.loops.scattering import scatter_text
from tapestry.codegen.loops.vectors import HALVES
from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.native import Compiled
from tapestry.runtime.executor import Array


@dataclass(frozen=True, eq=False)
class Scatter:
    """Folds by `ufunc`, which `primitive` names, what is at one place along `dim`.

    The others have `zero`.
    """

    dim: int
    folded: tuple[int, ...]
    others: tuple[int, ...]
    ufunc: np.ufunc
    primitive: str
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
        elif (run := self._loop()) is not None:
            rows, at = np.ascontiguousarray(rows), np.ascontiguousarray(at)
            apart = rows.strides[0]
            arrays = [array.ctypes.data for array in (at, rows, made)]
            arguments = np.array([len(at), rows.shape[1], *arrays, apart], np.int64)
            run(arguments.ctypes.data)
        elif len(at):
            order = np.argsort(at, kind="stable")
            here = at[order]
            first = np.flatnonzero(np.concatenate([[True], here[1:] != here[:-1]]))
            made[here[first]] = self.ufunc.reduceat(rows[order], first, axis=0)
        dims = (*mixed, self.dim, *others)
        made = made.reshape([self.shape[d] for d in dims])
        return made.transpose(np.argsort(dims))

    def _loop(self) -> Compiled | None:
        """The loop that folds rows where they go, None where there is none."""
        kind = kind_of(self.zero.dtype)
        if kind is None or kind in HALVES or self.primitive not in FOLDS or not native.is_ready():
            return None
        return native.compiled(scatter_text(self.primitive, kind), f"of {self.primitive} at places")
