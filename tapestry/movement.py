"""What moves between the shards of operations, when shards stay where they are.

    >>> from tapestry.frontend import parse_text
    >>> module = parse_text('''
    ... !x = !loom.tensor<[0, 0] : [4, 6], f32>
    ... !y = !loom.tensor<[0] : [4], f32>
    ... func.func @main(%x: !x) -> !y {
    ...   %e = loom.operation @exp over <[0, 0] : [4, 6]> [map, map]
    ...          ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
    ...          shards <grid [[0, 4], [0, 3, 6]]>
    ...          wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 } : (!x) -> !x
    ...   %s = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add
    ...          ins(%e : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
    ...          shards <grid [[0, 2, 4], [0, 6]]>
    ...          wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
    ...   func.return %s : !y
    ... }''')
    >>> exp, sum_ = (op for op in module.walk() if isinstance(op, Splittable))
    >>> (edge,) = edges(sum_)
    >>> edge.producer is exp, moved_bytes(edge)       # each shard has half of what it reads
    (True, 48)

A shard of a reader sits where most of what it reads was written; the rest of what it reads moves,
once for each shard that reads it. Where shards split a fold, the states of all but one of them move
to be merged. Arguments and constants are taken to be where they are needed. Every answer is range
arithmetic: exact, and no cell or (in a grid) shard is visited.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from math import prod
from typing import TypeAlias

from xdsl.ir import Operation, OpResult, SSAValue

from tapestry.algebra.dtypes import byte_size
from tapestry.dialects import loom
from tapestry.dialects.loom import selected, tensor_type
from tapestry.graph import selections, states_merged
from tapestry.zspace import Interval, Partition, Projection, Range, bounding
from tapestry.zspace.counting import independent_rows, selected_cells

Splittable: TypeAlias = loom.OperationOp | loom.ExternalOp | loom.FusedOp
"""What has an index space of its own to split; a group is split as one."""

Reader: TypeAlias = Splittable | loom.ApplicationOp | loom.MergeOp
"""What reads tensors through projections."""


@dataclass(frozen=True)
class Edge:
    """A tensor that `producer` writes and `reader` reads, perhaps as a view.

    `written` and `read` project the index space of either onto the tensor; a `clipped` read may
    leave the tensor.
    """

    tensor: SSAValue
    producer: Splittable
    reader: Splittable
    written: Projection
    read: Projection
    clipped: bool = False

    @property
    def box(self) -> Range:
        """The range of the tensor between them."""
        return tensor_type(self.tensor).box


def edges(reader: Splittable) -> tuple[Edge, ...]:
    """What `reader` reads of what other operations write, each read by itself."""
    found: list[Edge] = []
    for value, projection, clipped in reads(reader):
        while isinstance(value.owner, loom.ViewOp):
            projection = projection.then(value.owner.projection.data)
            value = value.owner.source
        producer = value.owner
        if isinstance(producer, Splittable):
            assert isinstance(value, OpResult)
            written = writes(producer)[value.index]
            found.append(Edge(value, producer, reader, written, projection, clipped))
    return tuple(found)


def writes(op: Splittable) -> tuple[Projection, ...]:
    """Per output, its projection from the whole index space."""
    if isinstance(op, loom.OperationOp):
        return tuple(projection.insert_inputs(op.fold_dims) for projection in op.out_maps)
    return op.out_maps


def reads(op: Splittable) -> Iterable[tuple[SSAValue, Projection, bool]]:
    """What is read, projected from the whole index space, and whether it may be past the edges."""
    if isinstance(op, loom.ExternalOp):
        return [(*pair, False) for pair in zip(op.ins, op.in_maps, strict=True)]
    if isinstance(op, loom.FusedOp):
        return [(read.value, read.projection, read.fill is not None) for read in op.reads]
    extras = (
        (read.value, read.projection.insert_inputs(op.fold_dims), read.fill is not None)
        for read in op.extra_reads
    )
    return [*((r.value, r.projection, r.fill is not None) for r in op.in_reads), *extras]


def read_bytes(edge: Edge, partition: Partition | None = None) -> int:
    """What the reader's shards read of the tensor, each for itself."""
    within = edge.box if edge.clipped else None
    return selected_cells(edge.read, _parts(edge.reader, partition), within) * _cell_bytes(edge)


def moved_bytes(
    edge: Edge, *, reader: Partition | None = None, producer: Partition | None = None
) -> int:
    """What the reader's shards read that was not written where they sit.

    The partitions are the operations' own unless given. Linear in the cuts of grids whose tensor
    dimensions are independent; shards times shards otherwise.
    """
    reading = _parts(edge.reader, reader)
    writing = _parts(edge.producer, producer)
    return read_bytes(edge, reading) - _kept_cells(edge, reading, writing) * _cell_bytes(edge)


def merged_bytes(op: Splittable | loom.MergeOp) -> int:
    """The states that move to be merged, where the shards of `op` split a fold or a scan.

    Of a fold, all but one of those that meet; of a scan, the last state of each shard but the last,
    which the next goes on from. A shard that is not spelled out yet is taken to store each part of
    its state over all that it keeps; spelled out it may be less.
    """
    if isinstance(op, loom.MergeOp):
        return _merging_bytes(op)
    if not isinstance(op, loom.OperationOp):
        return 0
    state = sum(byte_size(part) for part in op.state_types)
    if op.scan_dim is not None and op.partition is not None:
        line = [dim for dim in range(op.index.rank) if dim != op.scan_dim]
        lines = Projection.identity(op.index.rank).select_outputs(line)
        return (selected_cells(lines, op.partition) - op.index.select(line).size) * state
    merged = states_merged(op)
    return (merged - op.kept_range(op.index).size) * state if merged else 0


def _merging_bytes(op: loom.MergeOp) -> int:
    kernel = loom.find_kernel(op, op.kernel_name)
    assert kernel is not None, "a verified merge has a kernel"
    kinds = [tensor_type(part) for part in op.states]
    parts = len(kernel.state_types)
    carried = [kind.byte_size for kind in kinds]
    if kernel.scan_dim is not None:
        along = kernel.kept_dims.index(kernel.scan_dim)
        carried = [
            size // (kind.box.shape[along] or 1) for size, kind in zip(carried, kinds, strict=True)
        ]
    states = [sum(carried[at : at + parts]) for at in range(0, len(carried), parts)]
    return sum(states) - max(states, default=0)


def boxes_read(op: Reader) -> dict[int, Range]:
    """Per operand that is read through projections, the box of all its cells that are read."""
    if isinstance(op, loom.FusedOp):
        places = {value: place for place, value in enumerate(op.ins)}
        found: dict[int, Range] = {}
        for value, projection, fill in op.reads:
            place = places[value]
            box = selected(projection, op.index, tensor_type(value).box, fill)
            found[place] = bounding([found[place], box]) if place in found else box
        return found
    chosen = enumerate(selections(op))
    return {place: one.range for place, one in chosen if one.role != "state"}


def assembled_from(value: SSAValue, box: Range) -> list[tuple[SSAValue, Range]]:
    """The parts of an assembly that hold cells of `box`, and which; none where it is no assembly.

    Parts that a placement puts elsewhere than they stand are no parts of shards.
    """
    owner = value.owner
    if not isinstance(owner, loom.AssembleOp) or owner.placements is not None:
        return []
    common = ((part, tensor_type(part).box.intersection(box)) for part in owner.parts)
    return [(part, piece) for part, piece in common if piece is not None and not piece.is_empty]


def assembled_bytes(op: Reader) -> int:
    """What one shard reads of parts that others wrote, where shards are spelled out.

    It holds the largest part of what is assembled for it. Over the shards of an operation it is
    what `moved_bytes` says before they are spelled out.
    """
    moved = 0
    for place, box in boxes_read(op).items():
        value = op.operands[place]
        while isinstance(value.owner, loom.ViewOp):
            box = value.owner.projection.data.apply_range(box)
            value = value.owner.source
        sizes = [piece.size for _, piece in assembled_from(value, box)]
        moved += (sum(sizes) - max(sizes, default=0)) * byte_size(tensor_type(value).element_type)
    return moved


def part_bytes(op: Splittable, part: Range) -> int:
    """What a part of an operation's index space reads and writes at most, read by read.

    It depends on the part's extents alone: a read past the edge of a tensor counts as one inside.
    """
    if part.is_empty:
        return 0
    touched = [(value, projection) for value, projection, _ in reads(op)]
    touched += zip(op.outs, writes(op), strict=True)
    return sum(
        prod(map(min, projection.apply_range(part).shape, tensor_type(value).box.shape))
        * byte_size(tensor_type(value).element_type)
        for value, projection in touched
    )


def _cell_bytes(edge: Edge) -> int:
    return byte_size(tensor_type(edge.tensor).element_type)


def _parts(op: Splittable, partition: Partition | None) -> Partition:
    return partition or op.partition or whole(op)


def whole(op: Splittable) -> Partition:
    """The partition of one part."""
    return Partition.grid(op.index.sides)


def _kept_cells(edge: Edge, reading: Partition, writing: Partition) -> int:
    """Cells that shards of the reader read from the shard of the producer that has most of them."""
    sides = _written_sides(edge.written, writing)
    if reading.cuts is None or sides is None:
        return _kept_one_by_one(edge, reading, writing)
    if any(low == high for cuts in reading.cuts for low, high in pairwise(cuts)):
        return 0

    @cache
    def best(row: int, read: Interval) -> int:
        return max(max(0, min(read[1], b) - max(read[0], a)) for a, b in sides[row])

    total = 1
    seen = set[int]()
    for rows, dims in independent_rows(edge.read):
        seen.update(dims)
        part = edge.read.select_outputs(rows).select_inputs(dims)
        intervals = [tuple(pairwise(reading.cuts[dim])) for dim in dims]
        boxes = (part.apply_range(Range.of_sides(sides)) for sides in product(*intervals))
        total *= sum(
            prod(best(row, side) for row, side in zip(rows, box.sides, strict=True))
            for box in boxes
        )
    return total * prod(len(c) - 1 for dim, c in enumerate(reading.cuts) if dim not in seen)


def _written_sides(written: Projection, writing: Partition) -> list[list[Interval]] | None:
    """Per tensor dimension, the intervals that shards write, where every combination occurs."""
    if writing.cuts is None:
        return None
    split = [dim for dim, cuts in enumerate(writing.cuts) if len(cuts) > 2]
    rows = written.map.terms
    if any(sum(dim == d for row in rows for _, d in row) > 1 for dim in split):
        return None
    sides: list[list[Interval]] = []
    for row, terms in enumerate(rows):
        own = [dim for _, dim in terms]
        if sum(dim in split for dim in own) > 1:
            return None
        part = written.select_outputs([row]).select_inputs(own)
        ends = product(*(tuple(pairwise(writing.cuts[dim])) for dim in own))
        sides.append([part.apply_range(Range.of_sides(end)).sides[0] for end in ends])
    return sides


def _kept_one_by_one(edge: Edge, reading: Partition, writing: Partition) -> int:
    # A fold over nothing still writes: what counts is the part of the dimensions that are kept.
    moving = sorted({dim for terms in edge.written.map.terms for _, dim in terms})
    kept = edge.written.select_inputs(moving)
    written = {kept.apply_range(part.select(moving)) for part in writing.ranges()}
    reads = Counter(edge.read.apply_range(part) for part in reading.ranges() if not part.is_empty)
    total = 0
    for box, times in reads.items():
        common = (box.intersection(other) for other in written)
        total += times * max((c.size for c in common if c is not None), default=0)
    return total


def splittables(top: Operation) -> tuple[Splittable, ...]:
    """The operations of a program that may be split, in order; members of groups are not."""
    return tuple(
        op
        for op in top.walk()
        if isinstance(op, Splittable) and not isinstance(op.parent_op(), loom.FusedOp)
    )
