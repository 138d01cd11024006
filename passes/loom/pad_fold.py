"""`loom-pad-fold`: what a product folds is stored with zeros after it, side by side.

    %y = loom.operation @conv over <[0, 0, 0, 0, 0] : [8, 9, 9, 3, 7]> ... fold (c, k) by @add
           ins(%x : (n, m, i, c, k) -> (n, c, i + k), %w : (n, m, i, c, k) -> (m, c, k)) ...

reads side by side what lies at `i + k`, one by one. Its three channels are too few to be read
whole: where they come last, they begin at multiples of three. Under `loom-pad-fold{dim=3 extent=4}`
a fourth one is folded, which holds zeros:

    %x4 = loom.operation @copy over <[0, 0, 0] : [8, 15, 4]> [map, map, map]
            ins(%x : (d0, d1, d2) -> (d0, d2, d1) clip 0.0) ...
    %w4 = loom.operation @copy over <[0, 0, 0] : [9, 7, 4]> [map, map, map]
            ins(%w : (d0, d1, d2) -> (d0, d2, d1) clip 0.0) ...
    %y = loom.operation @conv over <[0, 0, 0, 0, 0] : [8, 9, 9, 4, 7]> ... fold (c, k) by @add
           ins(%x4 : (n, m, i, c, k) -> (n, i + k, c), %w4 : (n, m, i, c, k) -> (m, k, c)) ...

Four channels are read at once now, and masked alike. The copies cost their bytes, the zeros are
multiplied: `loom-to-triton` makes them where the cost model says that it pays
(`triton/alternatives/padding.py`).

Options: `dim` (the dimension that is folded, without it each that may be longer), `extent` (of how
many points it has then; without it the least power of two) and `op` (a label; without it all
operations). What may not be padded stays.
Input: any verified loom program. Output: the same values; of zeros, the sign may differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.algebra.dtypes import body_type
from tapestry.algebra.literals import number_attr, number_in
from tapestry.algebra.monoids import monoid_of
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType, tensor_type
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.materialize import copy_operation
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.rebuilding.operations import rebuild
from tapestry.zspace import AffineMap, Projection

Padding: TypeAlias = "tuple[int, int]"
"""A dimension that is folded, and of how many points it is to be."""


@dataclass(frozen=True)
class PadFold(RewritePattern):
    """A dimension of a sum of products is longer, over copies of the factors that end in zeros.

    Legal where `padded_axes` finds the axis that each factor has along it: every point that is
    added multiplies a zero by a zero. So nothing else is added to the sum, whatever the cells hold
    that are there.
    Operations that want the same copy share it.
    """

    chosen: Mapping[loom.OperationOp, Padding]
    _copies: dict[tuple[SSAValue, int, int], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, int, int], SSAValue]
    )

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        dim, extent = self.chosen.get(op, (0, 0))
        axes = padded_axes(op, dim) if extent > _side(op, dim) else None
        if axes is None:
            return
        ins: list[Read] = []
        for read, axis in zip(op.in_reads, axes, strict=True):
            key = (read.value, axis, extent)
            if key not in self._copies:
                self._copies[key] = _copied(op, read.value, axis, extent, rewriter)
            ins.append(_read_there(op, read, self._copies[key], axis, dim))
        start = op.index.start[dim]
        rebuild(op, rewriter, ins=ins, index=op.index.with_sides({dim: (start, start + extent)}))


def padded_axes(op: loom.OperationOp, dim: int) -> tuple[int, ...] | None:
    """The axis of each factor along a dimension of a sum of products, if that may be longer.

    That is where the body multiplies two reads, perhaps widened, and nothing else, so that zeros
    give a zero; where each reads the whole of an axis along the dimension, cell by cell, which no
    other dimension moves along; and where neither shards nor a domain say which points there are.
    """
    if in_group(op) or op.partition is not None or op.inside is not None or op.index.is_empty:
        return None
    if dim not in op.fold_dims or not _sums_products(op):
        return None
    found = [_whole_axis(op, read, dim) for read in op.in_reads]
    axes = [axis for axis in found if axis is not None]
    return tuple(axes) if len(axes) == len(found) else None


def _side(op: loom.OperationOp, dim: int) -> int:
    """The points of a dimension, 0 where there is none."""
    return op.index.shape[dim] if dim < op.index.rank else 0


def _sums_products(op: loom.OperationOp) -> bool:
    """Whether an operation sums products of two floats that it reads, zero outside tensors."""
    monoid, values = monoid_of(op), loom.yielded(op.wrap_block)
    if monoid is None or len(values) != 1 or len(op.in_reads) != 2:
        return False
    if monoid.primitive is not arith.AddfOp or monoid.zero != (0.0,):
        return False
    product = values[0].owner
    if not isinstance(product, arith.MulfOp):
        return False
    factors = {_unwidened(product.lhs), _unwidened(product.rhs)}
    fills = [number_in(read.fill) for read in op.in_reads if read.fill is not None]
    return factors == {*op.wrap_block.args} and all(fill == 0 for fill in fills)


def _unwidened(value: SSAValue) -> SSAValue:
    """What is read of a value that is that, perhaps widened."""
    while not isinstance(value, BlockArgument) and isinstance(value.owner, arith.ExtFOp):
        value = value.owner.input
    return value


def _whole_axis(op: loom.OperationOp, read: Read, dim: int) -> int | None:
    """The axis that a read moves along as a dimension does, from its first cell to its last one."""
    kind, rows, index = tensor_type(read.value), read.projection.map.matrix, op.index
    found = [axis for axis, row in enumerate(rows) if row[dim]]
    if (
        len(found) != 1
        or not read.projection.is_unit
        or not isinstance(kind.element_type, AnyFloat)
    ):
        return None
    (axis,) = found
    moving = [d for d, step in enumerate(rows[axis]) if step and index.shape[d] > 1]
    first = read.projection.map.apply(index.start)[axis]
    whole = (first, index.shape[dim]) == (kind.box.start[axis], kind.box.shape[axis])
    return axis if rows[axis][dim] == 1 and moving in ([dim], []) and whole else None


def _read_there(op: loom.OperationOp, read: Read, copy: SSAValue, axis: int, dim: int) -> Read:
    """A read of what is copied with an axis last, along which one dimension moves alone."""
    mapping, rank = read.projection.map, tensor_type(copy).box.rank
    order = [*(a for a in range(rank) if a != axis), axis]
    matrix, offset = [mapping.matrix[a] for a in order], [mapping.offset[a] for a in order]
    matrix[-1] = tuple(int(d == dim) for d in range(op.index.rank))
    offset[-1] = tensor_type(copy).box.start[-1] - op.index.start[dim]
    return Read(copy, Projection.cells(AffineMap.of(matrix, offset)), read.fill)


def _copied(
    op: loom.OperationOp, value: SSAValue, axis: int, extent: int, rewriter: PatternRewriter
) -> SSAValue:
    """A copy of a tensor with an axis last, which goes on with zeros."""
    kind = tensor_type(value)
    rank, start = kind.box.rank, kind.box.start[axis]
    order = [*(a for a in range(rank) if a != axis), axis]
    box = kind.box.select(order).with_sides({rank - 1: (start, start + extent)})
    whole = Projection.identity(rank)
    there = whole.select_outputs([order.index(a) for a in range(rank)])
    read = Read(value, there, number_attr(0, body_type(kind.element_type)))
    copy = copy_operation(read, box, whole, TensorType.of(box, kind.element_type), op.location)
    owner = value.owner
    where = InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(owner)
    rewriter.insert(copy, where)
    copy.outs[0].name_hint = value.name_hint
    return copy.outs[0]


def apply_paddings(module: ModuleOp, chosen: Mapping[loom.OperationOp, Padding]) -> None:
    """Fold more points where that is chosen."""
    if chosen:
        PatternRewriteWalker(PadFold(chosen), apply_recursively=False).rewrite_module(module)


@dataclass(frozen=True)
class LoomPadFold(ModulePass):
    """Fold zeros after what products fold."""

    name = "loom-pad-fold"

    dim: int | None = None
    extent: int | None = None
    op: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Pad dimensions of the operations that are named, one after another."""
        with collection_paused():
            while chosen := self._chosen(op):
                apply_paddings(op, chosen)

    def _chosen(self, module: ModuleOp) -> dict[loom.OperationOp, Padding]:
        """What may still be padded, with the first dimension of each."""
        found: dict[loom.OperationOp, Padding] = {}
        for op in module.walk():
            if isinstance(op, loom.OperationOp) and self.op in (None, op.label.data):
                for dim in op.fold_dims if self.dim is None else (self.dim,):
                    side = _side(op, dim)
                    extent = self.extent or 1 << max(0, side - 1).bit_length()
                    if extent > side and padded_axes(op, dim) is not None:
                        found.setdefault(op, (dim, extent))
        return found
