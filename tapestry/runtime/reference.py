"""The reference executor: every operation whole, in order, its fold left to right.

It is the naive schedule that every other one must agree with: shards are ignored, and each fold
starts at the monoid's zero and merges one point of the fold space after another, in row-major
order; a scan keeps each state on its way. Cells of the map space are computed side by side; they
do not influence each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation

from tapestry.algebra.monoids import Monoid, accumulating_monoid_of
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.graph import Work
from tapestry.runtime.arrays.mapfold import (
    Tensor,
    boxes_within,
    finished,
    merged,
    new_tensor,
    wrapped,
    write,
    zero_state,
)
from tapestry.runtime.arrays.walk import ArrayExecutor
from tapestry.runtime.executor import Array, Watch
from tapestry.zspace import Range

_CELLS = 1 << 20
"""Cells of the index space whose wrapped values are held at once."""


class ReferenceExecutor(ArrayExecutor):
    """The naive schedule on NumPy arrays."""

    @property
    def name(self) -> str:
        return "reference"

    def steps(self, op: Operation) -> int:
        if isinstance(op, loom.FusedOp):
            return len(op.members)
        return int(isinstance(op, Work))

    def operation(
        self, op: loom.OperationOp, ins: Sequence[Tensor], extras: Sequence[Tensor], watch: Watch
    ) -> list[Tensor]:
        outs = [new_tensor(tensor_type(result)) for result in op.outs]
        kept_box = op.kept_range(op.index)
        write(op, kept_box, finished(op, kept_box, self.fold(op, op.index, ins), extras), outs)
        watch.step(op.label.data)
        return outs

    def fold(self, op: loom.BlockSignature, box: Range, ins: Sequence[Tensor]) -> list[Array]:
        monoid = accumulating_monoid_of(op)
        if monoid is None:
            return [np.broadcast_to(value, box.shape) for value in wrapped(op, box, ins)]
        if op.scan_dim is not None:
            return _scan(op, monoid, box, op.scan_dim, ins)
        kept_box, fold_box = op.kept_range(box), op.fold_range(box)
        state = zero_state(monoid, kept_box.shape)
        if fold_box.is_empty or kept_box.is_empty:
            return state
        order = (*op.fold_dims, *op.kept_dims)
        for part in boxes_within(fold_box, max(1, _CELLS // kept_box.size)):
            within = op.whole_range(kept_box, part)
            values = [
                np.broadcast_to(value, within.shape).transpose(order)
                for value in wrapped(op, within, ins)
            ]
            state = self.fold_values(monoid, state, values, part.shape)
        return state

    def fold_values(
        self,
        monoid: Monoid,
        state: Sequence[Array],
        values: Sequence[Array],
        points: tuple[int, ...],
    ) -> list[Array]:
        """A state and the values that come after it, whose first axes are the points to fold."""
        state = list(state)
        for point in np.ndindex(points):
            state = merged(monoid, state, [value[point] for value in values])
        return state


def _scan(
    op: loom.BlockSignature, monoid: Monoid, box: Range, axis: int, ins: Sequence[Tensor]
) -> list[Array]:
    """Every state of a fold along one dimension of a box, point after point."""
    states = zero_state(monoid, box.shape)
    if box.is_empty:
        return states
    ahead = [np.moveaxis(state, axis, 0) for state in states]
    state = zero_state(monoid, ahead[0].shape[1:])
    place = 0
    for part in box.split(axis, max(1, _CELLS // max(1, ahead[0][0].size))):
        values = [
            np.moveaxis(np.broadcast_to(value, part.shape), axis, 0)
            for value in wrapped(op, part, ins)
        ]
        for point in range(part.shape[axis]):
            state = merged(monoid, state, [value[point] for value in values])
            for whole, value in zip(ahead, state, strict=True):
                whole[place] = value
            place += 1
    return states
