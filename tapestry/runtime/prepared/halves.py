"""Folds by any monoid: states merged with their neighbours until there is one.

fold = merged_halves(monoid, (1,))
maxima, places = fold(values, coordinates)       # (64, 10) and (1, 10) to (64, 1) and (64, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from tapestry.algebra.monoids import Monoid
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.bodies import Body, prepared_body
from tapestry.zspace import Range

_NOWHERE = Range((), ())

Merge = Callable[[Sequence[Array]], list[Array]]


def merge_of(monoid: Monoid) -> Merge:
    """The merge of two states, the parts of the one and then those of the other."""
    # A prepared body is for arrays of the shapes that it is first called with.
    bodies: dict[tuple[tuple[int, ...], ...], Body] = {}

    def merge(states: Sequence[Array]) -> list[Array]:
        shapes = tuple(part.shape for part in states)
        if shapes not in bodies:
            body = prepared_body(monoid.merge, _NOWHERE, ())
            assert body is not None
            bodies[shapes] = body
        return bodies[shapes](states)

    return merge


def merged_halves(monoid: Monoid, axes: Sequence[int]) -> Callable[..., list[Array]]:
    """What folds the parts of a state along some axes, which keep an extent of 1.

    Along those axes all parts have the same extents. The order of what is merged is kept.
    """
    merge = merge_of(monoid)

    def fold(*parts: Array) -> list[Array]:
        rank = parts[0].ndim
        kept = [axis for axis in range(rank) if axis not in axes]
        state = [_lined(part, axes, kept) for part in parts]
        while len(state[0]) > 1:
            pairs = len(state[0]) // 2
            odd = [value[2 * pairs :] for value in state]
            left = [value[: 2 * pairs : 2] for value in state]
            right = [value[1 : 2 * pairs : 2] for value in state]
            both = merge([*left, *right])
            state = both if not len(odd[0]) else _joined(both, odd)
        back = tuple(None if axis in axes else slice(None) for axis in range(rank))
        return [value[0][back] for value in state]

    return fold


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
