"""The numpy executor: shard by shard, contractions through BLAS, memory bounded.

What is large and not split runs in parts on all threads (`tapestry.runtime.prepared.parts`). Else
each shard of an operation's partition is computed for itself; shards of a fold merge their states
through the monoid, in the order of the partition; shards of a scan carry theirs on. Work inside a
shard goes in blocks whose wrapped values stay in cache, whatever the sizes of the tensors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation, SSAValue

from tapestry.algebra.contraction import find_contractions
from tapestry.algebra.monoids import Monoid, accumulating_monoid_of
from tapestry.algebra.reductions import find_reduction
from tapestry.dialects import loom
from tapestry.dialects._loom_fused import member_part
from tapestry.dialects.loom import tensor_type
from tapestry.graph import Work, shard_count
from tapestry.runtime.arrays.arithmetic import cell_dtype, current_arithmetic
from tapestry.runtime.arrays.contracting import contract
from tapestry.runtime.arrays.groups import parts_within, run_part
from tapestry.runtime.arrays.mapfold import (
    Tensor,
    boxes_within,
    finished,
    merged,
    new_tensor,
    wrapped,
    write,
)
from tapestry.runtime.arrays.moving import merged_at_once
from tapestry.runtime.arrays.scans import across, scanned
from tapestry.runtime.arrays.states import Layout
from tapestry.runtime.arrays.walk import ArrayExecutor
from tapestry.runtime.cpu.threads import check_environment
from tapestry.runtime.executor import Array, NoWatch, Watch
from tapestry.zspace import Range, cut_dims

_CELLS = 1 << 18
"""Cells of the index space whose wrapped values are held at once (a few megabytes)."""

_PRODUCT_CELLS = 1 << 22
"""Cells of a contraction's result, and of each factor, that are held at once."""


class NumpyExecutor(ArrayExecutor):
    """Shards one after another on NumPy arrays."""

    def __init__(self) -> None:
        check_environment()

    @property
    def name(self) -> str:
        return "numpy"

    def steps(self, op: Operation) -> int:
        if isinstance(op, loom.FusedOp):
            return 1 if op.partition is None else op.partition.count
        return shard_count(op) if isinstance(op, Work) else 0

    def dispatch(self, op: Operation, operands: list[Tensor], watch: Watch) -> list[Tensor]:
        """Run one operation; what is large and has no shards runs in parts of its own."""
        if isinstance(op, loom.FusedOp | loom.OperationOp) and current_arithmetic() is None:
            from tapestry.runtime.prepared.parts.preparing import (
                in_parts,  # which needs this module
            )

            run = in_parts(op)
            if run is not None:
                made = run([operand.data for operand in operands])
                watch.step(op.label.data)
                kinds = map(tensor_type, op.outs)
                return [Tensor(kind.box, data) for kind, data in zip(kinds, made, strict=True)]
        return super().dispatch(op, operands, watch)

    def operation(
        self, op: loom.OperationOp, ins: Sequence[Tensor], extras: Sequence[Tensor], watch: Watch
    ) -> list[Tensor]:
        outs = [new_tensor(tensor_type(result)) for result in op.outs]
        shards = (op.index,) if op.partition is None else op.partition.ranges()
        if op.scan_dim is not None:
            self._scan(op, shards, ins, extras, outs, watch)
            return outs
        whole_fold = op.fold_range(op.index)
        if all(op.fold_range(shard) == whole_fold for shard in shards):
            for shard in shards:
                self._shard(op, shard, ins, extras, outs)
                watch.step(op.label.data)
            return outs
        kept_box = op.kept_range(op.index)
        layout, total = self._total(op, shards)
        for shard in shards:
            self._merge_into(layout, total, op, shard, ins)
            watch.step(op.label.data)
        write(op, kept_box, finished(op, kept_box, total, extras), outs)
        return outs

    def group(self, op: loom.FusedOp, operands: list[Tensor], watch: Watch) -> list[Tensor]:
        """Each shard runs all members part by part; inner tensors are as large as the part.

        What shards fold of one member is merged, and finished after the last.
        """
        outs = [new_tensor(tensor_type(result)) for result in op.outs]
        shards = (op.index,) if op.partition is None else op.partition.ranges()
        merging = {m: self._total(m, [member_part(at, s) for s in shards]) for m, at in op.merging}

        def run(
            member: loom.OperationOp, box: Range, given: Sequence[Tensor], parts: Sequence[Tensor]
        ) -> None:
            if member in merging:
                self._merge_into(*merging[member], member, box, given[: len(member.ins)])
            else:
                self._member(member, box, given, parts)

        for shard in shards:
            for part in parts_within(op, shard, _CELLS):
                for out, made in zip(outs, run_part(op, part, operands, run), strict=True):
                    out.data[made.box.slices(out.box)] = made.data
            watch.step(op.label.data)
        known: dict[SSAValue, Tensor] = dict(zip(op.body.block.args, operands, strict=True))
        known |= zip(op.yielded, outs, strict=True)
        for member, (_, total) in merging.items():
            kept_box, extras = member.kept_range(member.index), [known[v] for v in member.extras]
            state = finished(member, kept_box, total, extras)
            write(member, kept_box, state, [known[out] for out in member.outs])
        return outs

    def _total(self, op: loom.OperationOp, shards: Sequence[Range]) -> tuple[Layout, list[Array]]:
        """Where shards merge what they fold: the zero, and how it lies.

        Along a dimension that shards cut, a part is what some of them folded, not all.
        """
        kept_box = op.kept_range(op.index)
        layout = Layout.of(op, accumulating_monoid_of(op))
        layout = layout.along(cut_dims(kept_box, map(op.kept_range, shards)))
        return layout, layout.zero(kept_box)

    def _merge_into(
        self,
        layout: Layout,
        total: list[Array],
        op: loom.OperationOp,
        shard: Range,
        ins: Sequence[Tensor],
    ) -> None:
        kept_box, part = op.kept_range(op.index), op.kept_range(shard)
        monoid = layout.monoid
        assert monoid is not None
        before = layout.at(total, part, kept_box)
        layout.put(total, part, kept_box, merged(monoid, before, self.fold(op, shard, ins)))

    def _member(
        self, op: loom.OperationOp, box: Range, given: Sequence[Tensor], outs: Sequence[Tensor]
    ) -> None:
        ins, extras = given[: len(op.ins)], given[len(op.ins) :]
        if op.scan_dim is None:
            self._shard(op, box, ins, extras, outs)
        else:
            self._scan(op, [box], ins, extras, outs, NoWatch())

    def _scan(
        self,
        op: loom.OperationOp,
        shards: Sequence[Range],
        ins: Sequence[Tensor],
        extras: Sequence[Tensor],
        outs: Sequence[Tensor],
        watch: Watch,
    ) -> None:
        """Shards in order, each going on from the states that those before it left."""
        monoid, axis = accumulating_monoid_of(op), op.scan_dim
        assert monoid is not None
        assert axis is not None
        # Shards go on from what was before them on their own part, whatever others carry on.
        layout = Layout.of(op, monoid).along(cut_dims(op.index, shards))
        front = across(op.index, axis)
        carried = layout.zero(front)
        for shard in shards:
            lane = across(shard, axis, op.index.start[axis])
            own = layout.at(carried, lane, front)
            for part, states in scanned(op, layout, shard, ins, own, _CELLS):
                write(op, part, finished(op, part, states, extras), outs)
            watch.step(op.label.data)

    def _shard(
        self,
        op: loom.OperationOp,
        shard: Range,
        ins: Sequence[Tensor],
        extras: Sequence[Tensor],
        outs: Sequence[Tensor],
    ) -> None:
        kept_box, fold_box = op.kept_range(shard), op.fold_range(shard)
        for part in boxes_within(kept_box, _PRODUCT_CELLS):
            state = self.fold(op, op.whole_range(part, fold_box), ins)
            write(op, part, finished(op, part, state, extras), outs)

    def fold(self, op: loom.BlockSignature, box: Range, ins: Sequence[Tensor]) -> list[Array]:
        monoid = accumulating_monoid_of(op)
        kept_box, fold_box = op.kept_range(box), op.fold_range(box)
        layout = Layout.of(op, monoid)
        if monoid is not None and box.is_empty:
            return layout.zero(kept_box)
        if monoid is not None and op.scan_dim is not None:
            whole = layout.zero(box)
            carried = layout.zero(across(box, op.scan_dim))
            for part, states in scanned(op, layout, box, ins, carried, _CELLS):
                layout.put(whole, part, box, states)
            return whole
        if monoid is not None and op.inside is not None:
            bounds = op.inside.bounds(box)
            if bounds is None:
                return layout.zero(kept_box)
            seen = op.kept_range(bounds)
            if seen != kept_box:
                # Rows of which nothing counts are skipped, too.
                state = layout.zero(kept_box)
                layout.put(state, seen, kept_box, self.fold(op, bounds, ins))
                return state
            fold_box = op.fold_range(bounds)
            box = op.whole_range(kept_box, fold_box)
        products = [
            contract(op, contraction, box, ins, _PRODUCT_CELLS)
            for contraction in find_contractions(op, monoid) or ()
        ]
        made = [product for product in products if product is not None]
        if products and len(made) == len(products):
            return layout.narrowed(made)
        state = layout.empty(kept_box, op.state_types if monoid is None else monoid.state)
        if box.is_empty:
            return state
        fold_cells = max(1, min(fold_box.size, _CELLS))
        for part in boxes_within(kept_box, max(1, _CELLS // fold_cells)):
            values = self._block(op, layout, part, fold_box, ins)
            layout.put(state, part, kept_box, values)
        return state

    def _block(
        self,
        op: loom.BlockSignature,
        layout: Layout,
        kept_box: Range,
        fold_box: Range,
        ins: Sequence[Tensor],
    ) -> list[Array]:
        """The folded state over a block of the map dimensions, block by block of the fold."""
        monoid = layout.monoid
        if monoid is None:
            return wrapped(op, kept_box, ins)
        state: list[Array] | None = None
        for part in boxes_within(fold_box, max(1, _CELLS // max(1, kept_box.size))):
            within = op.whole_range(kept_box, part)
            if op.inside is not None and op.inside.misses(within):
                continue
            values = layout.spread(op, wrapped(op, within, ins), within)
            folded = _reduce(monoid, values, op.fold_dims, op.kept_dims)
            state = folded if state is None else merged(monoid, state, folded)
        return layout.zero(kept_box) if state is None else state


def _reduce(
    monoid: Monoid, values: Sequence[Array], fold_dims: Sequence[int], kept_dims: Sequence[int]
) -> list[Array]:
    """Fold axes away: by NumPy reductions where they do it, else merging neighbours pairwise."""
    reduction = find_reduction(monoid.primitive, monoid.state[0])
    if reduction is not None:
        wide = cell_dtype(monoid.state[0])
        return [reduction.fold(values[0].astype(wide, copy=False), fold_dims)]
    state = [value.transpose(*fold_dims, *kept_dims) for value in values]
    state = [value.reshape(-1, *value.shape[len(fold_dims) :]) for value in state]
    together = merged_at_once(monoid, state)
    if together is not None:
        return together
    while state[0].shape[0] > 1:
        pairs = state[0].shape[0] // 2
        odd = [value[2 * pairs :] for value in state]
        first = [value[: 2 * pairs : 2] for value in state]
        second = [value[1 : 2 * pairs : 2] for value in state]
        both = merged(monoid, first, second)
        state = [np.concatenate(parts) for parts in zip(both, odd, strict=True)]
    return [value[0] for value in state]
