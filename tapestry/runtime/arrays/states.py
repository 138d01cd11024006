"""States on arrays, each part as large as it varies.

The array of a part has an axis per kept dimension, of extent 1 where the part does not vary (or,
in the state of a shard, where all of the dimension has the one value). So parts broadcast against
each other, and a merge keeps their extents, because a part varies along whatever merging it reads:

    a maximum per row  (64, 1)      a weighted sum per row and column  (64, 128)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Attribute

from tapestry.algebra.monoids import Monoid
from tapestry.algebra.parts import closed, varying_axes
from tapestry.dialects import loom
from tapestry.runtime.arrays.arithmetic import cell_constant, cell_dtype
from tapestry.runtime.executor import Array
from tapestry.zspace import Range

Where = tuple[slice, ...]


@dataclass(frozen=True, eq=False)
class Layout:
    """Per part of a state, the kept dimensions (counted among themselves) that its array is over.

    With `monoid`, the parts are those of its state, which executors may hold in wider types.
    """

    axes: tuple[frozenset[int], ...]
    monoid: Monoid | None = None

    @staticmethod
    def of(op: loom.BlockSignature, monoid: Monoid | None = None) -> Layout:
        """Each part of an operation's state over the dimensions that it varies along."""
        return Layout(tuple(map(frozenset, varying_axes(op))), monoid)

    @staticmethod
    def holding(monoid: Monoid, axes: Iterable[Iterable[int]]) -> Layout:
        """A layout that holds parts over given dimensions, and what merging makes of them."""
        return Layout(tuple(closed(monoid, list(map(frozenset, axes)))), monoid)

    def along(self, dims: Iterable[int]) -> Layout:
        """The layout with every part over these dimensions, too."""
        return Layout(tuple(axes.union(dims) for axes in self.axes), self.monoid)

    def zero(self, box: Range) -> list[Array]:
        """The state of an empty fold, over a box of the kept dimensions."""
        assert self.monoid is not None
        parts = zip(self.axes, self.monoid.zero, self.monoid.state, strict=True)
        return [
            np.full(_extents(box, axes), cell_constant(zero, kind), cell_dtype(kind))
            for axes, zero, kind in parts
        ]

    def empty(self, box: Range, kinds: Sequence[Attribute]) -> list[Array]:
        """Arrays over a box of the kept dimensions for parts of these types, not set yet."""
        pairs = zip(self.axes, kinds, strict=True)
        return [np.empty(_extents(box, axes), cell_dtype(kind)) for axes, kind in pairs]

    def where(self, box: Range, whole: Range) -> list[Where]:
        """Where each part of a state over `whole` is over `box`."""
        at = box.slices(whole)
        every = slice(None)
        return [
            tuple(place if axis in axes else every for axis, place in enumerate(at))
            for axes in self.axes
        ]

    def at(self, state: Sequence[Array], box: Range, whole: Range) -> list[Array]:
        """A state over `whole`, over `box` alone; a view."""
        return [part[w] for part, w in zip(state, self.where(box, whole), strict=True)]

    def put(
        self, state: Sequence[Array], box: Range, whole: Range, values: Sequence[Array]
    ) -> None:
        """Set a state over `whole` over `box` alone; over no cells there is nothing to set."""
        if box.is_empty:
            return
        for part, where, value in zip(state, self.where(box, whole), values, strict=True):
            part[where] = value

    def narrowed(self, state: Sequence[Array]) -> list[Array]:
        """A state whose arrays may be over more dimensions; views."""
        return [
            part[tuple(slice(None) if a in axes else slice(1) for a in range(part.ndim))]
            for part, axes in zip(state, self.axes, strict=True)
        ]

    def spread(self, op: loom.BlockSignature, values: Sequence[Array], box: Range) -> list[Array]:
        """Wrapped values over a box of the index space, all along it where their parts are."""
        found: list[Array] = []
        for value, axes in zip(values, self.axes, strict=True):
            over = {*op.fold_dims, *(op.kept_dims[axis] for axis in axes)}
            found.append(np.broadcast_to(value, _extents(box, over)))
        return found


def _extents(box: Range, axes: Iterable[int]) -> tuple[int, ...]:
    """The extents of a box along some axes, 1 along the others."""
    over = frozenset(axes)
    return tuple(n if axis in over else 1 for axis, n in enumerate(box.shape))
