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
`loom-to-triton` makes it where the cost model says that it pays (`triton/layouts.py`). With
`writers=true` nothing is copied that an operation computes: it writes what the copy would.

Options: `axes`, per input the axis that comes last, -1 to leave it (inputs beyond them stay), `op`
(a label; all operations without it) and `writers`.
Input: any verified loom program. Output: the same values, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType, tensor_type
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.materialize import copy_operation
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.rebuilding.operations import reads_of, rebuild, writes_of
from tapestry.zspace import Projection

Axes = Sequence[int | None]
"""Per input of an operation, the axis that is to come last; None for those that stay."""


Reader = tuple[loom.OperationOp, SSAValue]
"""An operation, and what it knows a tensor as that it reads: inside of a group, an argument."""

Worth = Callable[[SSAValue, Sequence[Reader], int], bool]
"""Whether a tensor is better written in the order of a copy, given who else reads it, and which
axis comes last."""


Follows = Callable[[loom.OperationOp], bool]
"""Whether an operation that writes its result in another order is better with its inputs so too."""


def always(_: SSAValue, __: Sequence[Reader], ___: int) -> bool:
    """It is, whoever writes and reads it."""
    return True


def never(_: loom.OperationOp) -> bool:
    """Its inputs stay as they are, whatever it does."""
    return False


@dataclass(frozen=True)
class StoreAxisLast(RewritePattern):
    """An input is copied with one axis last, and read there through a projection permuted alike.

    Always legal: the copy holds the cells of the input, each once. Bounds are per axis, so a read
    is clipped at the same points. An input of which points select boxes stays: its body counts
    the axes of the box. So do inputs of what is in a group, which would have to be split.
    Operations that want the same copy share it.
    """

    chosen: Mapping[loom.OperationOp, Axes]
    _copies: dict[tuple[SSAValue, tuple[int, ...]], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, "tuple[int, ...]"], SSAValue]
    )

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        axes = self.chosen.get(op)
        if axes is not None and not in_group(op):
            store_axes_last(op, axes, rewriter, self._copies)


Copies = dict[tuple[SSAValue, tuple[int, ...]], SSAValue]
"""Copies of tensors, by the order of their axes."""


def store_axes_last(
    op: loom.OperationOp, axes: Axes, rewriter: PatternRewriter, copies: Copies
) -> loom.OperationOp:
    """The operation that reads copies of its inputs instead, these with some axes last."""
    ins, _ = reads_of(op)
    stored = list(ins)
    for place, (read, axis) in enumerate(zip(ins, axes, strict=False)):
        rank = tensor_type(read.value).box.rank
        if axis is None or not may_be_last(read, axis):
            continue
        order = (*(a for a in range(rank) if a != axis), axis)
        key = (read.value, order)
        if key not in copies:
            copies[key] = _copied(op, read.value, order, rewriter)
        there = copies[key]
        stored[place] = Read(there, read.projection.select_outputs(order), read.fill)
    return op if stored == ins else rebuild(op, rewriter, ins=stored)


@dataclass(frozen=True)
class WriteAsCopied(RewritePattern):
    """What is copied with its axes in another order is written so, and read so by its readers.

    Legal where an operation outside of groups computes it, as a whole, and where all that read it
    are such operations, of which each point selects a cell: the cells are the same, projections
    of whoever writes or reads them are permuted alike. What `follows` then reads copies of its
    inputs with the same dimension last, which are written so by the same rule.
    """

    pays: Worth = always
    follows: Follows = never

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        order = order_of_copy(op)
        if order is None:
            return
        (source,) = op.ins
        writer, readers = source.owner, readers_of(source)
        if readers is None:
            return
        readers.remove((op, source))
        if not self.pays(source, readers, order[-1]):
            return
        assert isinstance(writer, loom.OperationOp)
        writes = writes_of(writer)
        place = [out is source for out in writer.outs].index(True)
        writes[place] = (writer.out_maps[place].select_outputs(order), tensor_type(op.outs[0]))
        axes = axes_along(writer, place, order[-1]) if self.follows(writer) else None
        writer, copies = rebuild(writer, rewriter, outs=writes), Copies()
        if axes is not None:
            writer = store_axes_last(writer, axes, rewriter, copies)
        written = writer.outs[place]
        for reader, _ in readers:
            ins, extras = (
                [
                    Read(read.value, read.projection.select_outputs(order), read.fill)
                    if read.value is written
                    else read
                    for read in reads
                ]
                for reads in reads_of(reader)
            )
            rebuild(reader, rewriter, ins=ins, extras=extras)
        rewriter.replace(op, [], [written])
        for copy in copies.values():
            assert isinstance(copy.owner, loom.OperationOp)
            self.match_and_rewrite(copy.owner, rewriter)


def axes_along(op: loom.OperationOp, place: int, axis: int) -> Axes | None:
    """Per input the axis that comes last where one does of what an operation writes at a place.

    It is the one along which the same dimension lies, cell by cell, and no other one beside it;
    None for inputs that do not move along it, or have it last. None of all where some has no such.
    """
    along = _moving(op.out_maps[place], axis)
    if len(along) != 1 or op.kinds[along[0]] != "map":
        return None
    found: list[int | None] = []
    for read in op.in_reads:
        rows = read.projection.map.matrix
        axes = [a for a, row in enumerate(rows) if row[along[0]]]
        if len(axes) > 1 or any(_moving(read.projection, a) != along for a in axes):
            return None
        if any(rows[a][along[0]] != 1 for a in axes):
            return None
        found.append(axes[0] if axes and axes[0] < len(rows) - 1 else None)
    return found


def _moving(projection: Projection, axis: int) -> list[int]:
    """The dimensions along which an axis of what a projection selects moves."""
    return [dim for dim, step in enumerate(projection.map.matrix[axis]) if step]


def readers_of(value: SSAValue, cut: loom.FusedOp | None = None) -> list[Reader] | None:
    """The operations that read a tensor, where these and its writer may order its axes anew.

    None where some may not. The members of a group that is to be `cut` are seen as what it becomes.
    """
    writer = value.owner
    if not isinstance(writer, loom.OperationOp) or in_group(writer) or writer.partition is not None:
        return None
    found: list[Reader] = []
    for user in dict.fromkeys(use.operation for use in value.uses):
        if isinstance(user, loom.OperationOp):
            found.append((user, value))
        elif isinstance(user, loom.FusedOp) and user is cut:
            pairs = zip(user.operands, user.body.block.args, strict=True)
            for inner in (inner for operand, inner in pairs if operand is value):
                users = dict.fromkeys(use.operation for use in inner.uses)
                found += [(one, inner) for one in users if isinstance(one, loom.OperationOp)]
        else:
            return None
    return found if all(_may_follow(*reader) for reader in found) else None


def _may_follow(op: loom.OperationOp, value: SSAValue) -> bool:
    """Whether an operation that reads a tensor may read it with its axes in another order."""
    reads = [read for reads in reads_of(op) for read in reads if read.value is value]
    return op.partition is None and all(read.projection.is_unit for read in reads)


def order_of_copy(op: loom.OperationOp) -> tuple[int, ...] | None:
    """In which order an operation copies the axes of a whole tensor; None where it does not."""
    if set(op.kinds) != {"map"} or op.partition is not None or op.inside is not None:
        return None
    (*others, end) = op.wrap_block.ops
    yields = list(end.operands) == list(op.wrap_block.args)
    if others or not yields or len(op.in_reads) != 1 or op.extras or len(op.outs) != 1:
        return None
    (read,), (written,) = op.in_reads, op.out_maps
    rank = op.index.rank
    rows = [[int(d == axis) for d in range(rank)] for axis in range(rank)]
    matrix = [list(row) for row in read.projection.map.matrix]
    if sorted(matrix) != sorted(rows) or written != Projection.identity(rank):
        return None
    order = tuple(matrix.index(row) for row in rows)
    kind, box = tensor_type(op.outs[0]), tensor_type(read.value).box
    plain = not any(read.projection.map.offset) and read.projection.is_unit
    same = kind.element_type == tensor_type(read.value).element_type
    return order if plain and same and kind.box == op.index == box.select(order) else None


def may_be_last(read: Read, axis: int) -> bool:
    """Whether an axis of what is read may come last, and does not yet."""
    return axis < tensor_type(read.value).box.rank - 1 and all(
        extent == 1 for extent in read.projection.shape
    )


def _copied(
    op: loom.OperationOp, value: SSAValue, order: Sequence[int], rewriter: PatternRewriter
) -> SSAValue:
    """A copy of a tensor with its axes in another order, for an operation and those after it."""
    kind = tensor_type(value)
    box = kind.box.select(order)
    whole = Projection.identity(box.rank)
    read = Read(value, whole.select_outputs([order.index(axis) for axis in range(box.rank)]))
    copy = copy_operation(read, box, whole, TensorType.of(box, kind.element_type), op.location)
    owner = value.owner
    where = InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(owner)
    rewriter.insert(copy, where)
    copy.outs[0].name_hint = value.name_hint
    return copy.outs[0]


def apply_layouts(
    module: ModuleOp,
    chosen: Mapping[loom.OperationOp, Axes],
    pays: Worth | None = None,
    follows: Follows = never,
) -> None:
    """Store what operations read as is chosen for them; by their writers, where that `pays`.

    What `follows` of these reads its inputs in the order in which it writes.
    """
    patterns: list[RewritePattern] = [StoreAxisLast(chosen)]
    patterns += [] if pays is None else [WriteAsCopied(pays, follows)]
    for pattern in patterns if chosen else []:
        PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(module)


@dataclass(frozen=True)
class LoomRelayout(ModulePass):
    """Store what operations read with another axis last."""

    name = "loom-relayout"

    axes: tuple[int, ...]
    op: str | None = None
    writers: bool = False

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
                always if self.writers else None,
            )
