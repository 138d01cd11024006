"""Many states merged at once, where the monoid allows it: see `tapestry.algebra.moved_parts`.

States of a softmax are arrays of maxima and of sums, with the states along the first axis. The
largest maximum is one NumPy reduction; every sum is moved to it, and adding them is another.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith

from tapestry.algebra.monoids import Monoid
from tapestry.algebra.moved_parts import find_moved_parts
from tapestry.algebra.reductions import find_reduction
from tapestry.runtime.arrays.scalar import evaluate
from tapestry.runtime.executor import Array


def merged_at_once(monoid: Monoid, states: Sequence[Array]) -> list[Array] | None:
    """The states along the first axis of each part's array, merged; None where they do not."""
    found = find_moved_parts(monoid)
    if found is None:
        return None
    merged: list[Array] = list(states)
    for part, primitive in found.plain.items():
        reduction = find_reduction(primitive, monoid.state[part])
        if reduction is None:
            return None
        merged[part] = reduction.fold(states[part], (0,))[None]
    for part, block in found.moved.items():
        addition = find_reduction(arith.AddfOp, monoid.state[part])
        assert addition is not None
        (moved,) = evaluate(block, [*states, *merged], _no_coordinate)
        merged[part] = addition.fold(moved, (0,))[None]
    return [part[0] for part in merged]


def _no_coordinate(dim: int) -> Array:
    raise AssertionError(f"a merge has no coordinate along dimension {dim}")
