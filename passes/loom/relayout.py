"""`loom-relayout`: what an operation reads is stored with another axis last, and read there.

    %y = loom.operation @conv over <[0, 0, 0, 0, 0] : [8, 9, 9, 64, 3]> ...
           ins(%x : (n, i, j, c, k) -> (n, c, i, j + k), %w : ...) ...

reads side by side what lies at `j + k`: at a place that is no multiple of anything, so one by one.
Under `loom-relayout{axes=1,-1}`, axis 1 of the first input comes last, and the second input stays:

    %c = loom.operation @copy over <[0, 0, 0, 0] : [8, 9, 11, 64]> [map, map, map, map]
           ins(%x : (d0, d1, d2, d3) -> (d0, d3, d1, d2)) ...
    %y = loom.operation @conv over <[0, 0, 0, 0, 0] : [8, 9, 9, 64, 3]> ...
           ins(%c : (n, i, j, c, k) -> (n, i, j + k, c), %w : ...) ...

Neighbours are read along `c` now, from multiples of its extent on. The copy costs its bytes;
`loom-to-triton` makes it where the cost model says that it pays (`triton/layouts.py`).

Options: `axes`, per input the axis that comes last, -1 to leave it (inputs beyond them stay), and
`op` (a label; all operations without it).
Input: any verified loom program. Output: the same values, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType, tensor_type
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom._bodies import in_group
from tapestry.passes.loom._rebuild import reads_of, rebuild
from tapestry.passes.loom.materialize import copy_operation
from tapestry.zspace import Projection

Axes = Sequence[int | None]
"""Per input of an operation, the axis that is to come last; None for those that stay."""


@dataclass(frozen=True)
class StoreAxisLast(RewritePattern):
    """An input is copied with one axis last, and read there through a projection permuted alike.

    Always legal: the copy holds the cells of the input, each once. Bounds are per axis, so a read
    is clipped at the same points. An input of which points select boxes stays: its body counts
    the axes of the box. So do inputs of what is in a group, which would have to be split.
    """

    chosen: Mapping[loom.OperationOp, Axes]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        axes = self.chosen.get(op)
        if axes is None or in_group(op):
            return
        ins, _ = reads_of(op)
        copies: dict[tuple[SSAValue, tuple[int, ...]], SSAValue] = {}
        stored = list(ins)
        for place, (read, axis) in enumerate(zip(ins, axes, strict=False)):
            rank = tensor_type(read.value).box.rank
            if axis is None or not may_be_last(read, axis):
                continue
            order = (*(a for a in range(rank) if a != axis), axis)
            key = (read.value, order)
            if key not in copies:
                copies[key] = _copied(op, read.value, order, rewriter)
            stored[place] = Read(copies[key], read.projection.select_outputs(order), read.fill)
        if copies:
            rebuild(op, rewriter, ins=stored)


def may_be_last(read: Read, axis: int) -> bool:
    """Whether an axis of what is read may come last, and does not yet."""
    return axis < tensor_type(read.value).box.rank - 1 and all(
        extent == 1 for extent in read.projection.shape
    )


def _copied(
    op: loom.OperationOp, value: SSAValue, order: Sequence[int], rewriter: PatternRewriter
) -> SSAValue:
    """A copy of a tensor with its axes in another order, made before an operation."""
    kind = tensor_type(value)
    box = kind.box.select(order)
    whole = Projection.identity(box.rank)
    read = Read(value, whole.select_outputs([order.index(axis) for axis in range(box.rank)]))
    copy = copy_operation(read, box, whole, TensorType.of(box, kind.element_type), op.location)
    rewriter.insert(copy)
    copy.outs[0].name_hint = value.name_hint
    return copy.outs[0]


def apply_layouts(module: ModuleOp, chosen: Mapping[loom.OperationOp, Axes]) -> None:
    """Store what operations read as is chosen for them."""
    if chosen:
        pattern = StoreAxisLast(chosen)
        PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(module)


@dataclass(frozen=True)
class LoomRelayout(ModulePass):
    """Store what operations read with another axis last."""

    name = "loom-relayout"

    axes: tuple[int, ...]
    op: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Copy the inputs of the operations that are named."""
        axes = [None if axis < 0 else axis for axis in self.axes]
        with collection_paused():
            apply_layouts(
                op,
                {
                    one: axes
                    for one in op.walk()
                    if isinstance(one, loom.OperationOp) and self.op in (None, one.label.data)
                },
            )
