"""States merged with their neighbours until there is one.

fold = Halves(merge, (1,))
maxima, places = fold(values, coordinates)       # (64, 10) and (1, 10) to (64, 1) and (64, 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.script import Finished


@dataclass(frozen=True, eq=False)
class Merge:
    """The merge of two states, the parts of the one and then those of the other."""

    body: Finished

    @cached_property
    def _bodies(self) -> dict[tuple[tuple[int, ...], ...], Finished]:
        """By shapes: a body is for arrays of those that it is first called with."""
        return {}

    def __call__(self, states: Sequence[Array]) -> list[Array]:
        """The state."""
        shapes = tuple(part.shape for part in states)
        body = self._bodies.get(shapes)
        if body is None:
            body = self._bodies[shapes] = self.body.again()
        return body(states)


@dataclass(frozen=True, eq=False)
class Halves:
    """Folds the parts of a state along some axes, which keep an extent of 1.

    Along those axes all parts have the same extents. The order of what is merged is kept.
    """

    merge: Merge
    axes: tuple[int, ...]

    def __call__(self, *parts: Array) -> list[Array]:
        """The parts of the folded state."""
        rank = parts[0].ndim
        kept = [axis for axis in range(rank) if axis not in self.axes]
        state = [_lined(part, self.axes, kept) for part in parts]
        while len(state[0]) > 1:
            pairs = len(state[0]) // 2
            odd = [value[2 * pairs :] for value in state]
            left = [value[: 2 * pairs : 2] for value in state]
            right = [value[1 : 2 * pairs : 2] for value in state]
            both = self.merge([*left, *right])
            state = both if not len(odd[0]) else _joined(both, odd)
        back = tuple(None if axis in self.axes else slice(None) for axis in range(rank))
        return [value[0][back] for value in state]


def _lined(part: Array, axes: Sequence[int], kept: Sequence[int]) -> Array:
    """The folded axes as one, which is the first."""
    turned = part.transpose(*axes, *kept)
    return turned.reshape(prod(turned.shape[: len(axes)]), *turned.shape[len(axes) :])


def _joined(first: Sequence[Array], second: Sequence[Array]) -> list[Array]:
    """Arrays one after another; what one of them is broadcast along, the other may not be."""
    found: list[Array] = []
    for one, other in zip(first, second, strict=True):
        shape = np.broadcast_shapes(one.shape[1:], other.shape[1:])
        whole = [np.broadcast_to(part, (len(part), *shape)) for part in (one, other)]
        found.append(np.concatenate(whole))
    return found
