"""Questions about a program: what feeds what, which cells a shard reads, what it costs.

    >>> from tapestry.frontend import parse_text
    >>> module = parse_text('''
    ... !x = !loom.tensor<[0, 0] : [4, 6], f32>
    ... !y = !loom.tensor<[0] : [4], f32>
    ... func.func @main(%x: !x) -> !y {
    ...   %e = loom.operation @exp over <[0, 0] : [4, 6]> [map, map]
    ...          ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
    ...          wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 } : (!x) -> !x
    ...   %s = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add
    ...          ins(%e : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
    ...          shards <grid [[0, 2, 4], [0, 6]]>
    ...          wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
    ...   func.return %s : !y
    ... }''')
    >>> exp, sum_ = operations(module)
    >>> producers(sum_) == (exp,) and consumers(exp) == (sum_,)
    True
    >>> [str(s.range) for shard in shards(sum_) for s in selections(sum_, shard)]
    ['[0, 0] : [2, 6]', '[2, 0] : [4, 6]']
    >>> scalar_operations(exp), scalar_operations(sum_)
    (Counter({'math.exp': 24}), Counter({'arith.addf': 24}))
    >>> traffic(sum_), peak_live_bytes(module)
    (Traffic(read=96, written=16), 208)

Every answer is read off index spaces, projections, partitions and bodies: exact Python integers at
any size, and no cell is visited.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from xdsl.dialects import arith, func
from xdsl.dialects import complex as complex_dialect
from xdsl.dialects.builtin import AnyFloat, ComplexType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.dtypes import byte_size
from tapestry.algebra.monoids import monoid_of
from tapestry.diagnostics import UsageError
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType, selected, tensor_type
from tapestry.zspace import Partition, Projection, Range
from tapestry.zspace.counting import selected_cells
from tapestry.zspace.inside import points_inside

Work: TypeAlias = loom.OperationOp | loom.ApplicationOp | loom.MergeOp | loom.ExternalOp
"""What computes: a map-fold, a shard of one, the merge of folded states, or an external kernel."""

_Folding: TypeAlias = loom.OperationOp | loom.ApplicationOp | loom.MergeOp

Role: TypeAlias = Literal["in", "extra", "state"]

_NO_WORK = (loom.YieldOp, loom.IndexOp, arith.ConstantOp, complex_dialect.ConstantOp)
"""Scalar operations of a body that compute nothing."""

_MOVES: tuple[type[Operation], ...] = (
    arith.SelectOp,
    arith.BitcastOp,
    arith.ExtFOp,
    arith.TruncFOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    complex_dialect.BitcastOp,
    complex_dialect.CreateOp,
    complex_dialect.ImOp,
    complex_dialect.ReOp,
)
"""Scalar operations with a float result that choose or convert a value."""


@dataclass(frozen=True)
class Selection:
    """The cells of one operand that a part of an index space reads: `range` of tensor `value`."""

    role: Role
    value: SSAValue
    range: Range

    @property
    def bytes(self) -> int:
        """What those cells take."""
        return self.range.size * byte_size(tensor_type(self.value).element_type)


@dataclass(frozen=True)
class Traffic:
    """Bytes that an operation reads and writes."""

    read: int
    written: int


def operations(top: Operation) -> tuple[Work, ...]:
    """Everything inside `top` that computes, in order."""
    return tuple(op for op in top.walk() if isinstance(op, Work))


def producers(op: Operation) -> tuple[Operation, ...]:
    """The operations whose results `op` reads, each once, in the order of its operands."""
    owners = (operand.owner for operand in op.operands)
    return tuple(dict.fromkeys(owner for owner in owners if isinstance(owner, Operation)))


def consumers(op: Operation) -> tuple[Operation, ...]:
    """The operations that read a result of `op`, each once, in the order of its results."""
    return tuple(dict.fromkeys(use.operation for result in op.results for use in result.uses))


def shards(op: Work) -> tuple[Range, ...]:
    """The parts of the index space that run apart; the whole where nothing splits it."""
    partition = _partition(op)
    return (op.index,) if partition is None else partition.ranges()


def shard_count(op: Work) -> int:
    """How many `shards` there are, without making them."""
    partition = _partition(op)
    return 1 if partition is None else partition.count


def selections(op: Work, shard: Range | None = None) -> tuple[Selection, ...]:
    """What `op` reads of each operand, on a part of its index space or on the whole.

    A merge reads its states whole; the index space of a merge is its kept dimensions.
    """
    box = op.index if shard is None else shard
    if isinstance(op, loom.MergeOp):
        states = tuple(Selection("state", value, tensor_type(value).box) for value in op.states)
        kernel = _signature(op)
        reads = map(Read, op.extras, kernel.extra_maps, kernel.extra_fills)
        return (*states, *(_selection("extra", read, box) for read in reads))
    if isinstance(op, loom.ExternalOp):
        pairs = zip(op.ins, op.in_maps, strict=True)
        return tuple(Selection("in", value, p.apply_range(box)) for value, p in pairs)
    signature = _signature(op)
    kept = signature.kept_range(box)
    return tuple(
        _selection(role, read, box if role == "in" else kept)
        for role, read in _reads(op, signature)
    )


def _selection(role: Role, read: Read, box: Range) -> Selection:
    tensor = tensor_type(read.value).box
    return Selection(role, read.value, selected(read.projection, box, tensor, read.fill))


def traffic(op: Operation) -> Traffic:
    """Bytes that `op` reads and writes: each shard reads what it selects, for itself.

    Views and reshapes move nothing. Any other operation reads its operands and writes its results.
    """
    written = sum(kind.byte_size for kind in _tensors(op.results))
    if isinstance(op, loom.ViewOp | loom.ReshapeOp):
        return Traffic(0, 0)
    if isinstance(op, loom.OperationOp):
        reads = [
            read
            if role == "in"
            else read._replace(projection=read.projection.insert_inputs(op.fold_dims))
            for role, read in _reads(op, op)
        ]
        return Traffic(_read_bytes(reads, op.index, op.partition), written)
    if isinstance(op, loom.ExternalOp):
        parts = (selections(op, shard) for shard in shards(op))
        return Traffic(sum(s.bytes for selected in parts for s in selected), written)
    if isinstance(op, loom.FusedOp):
        return Traffic(_read_bytes(op.reads, op.index, op.partition), written)
    if isinstance(op, loom.ApplicationOp | loom.MergeOp):
        return Traffic(sum(selection.bytes for selection in selections(op)), written)
    return Traffic(sum(kind.byte_size for kind in _tensors(op.operands)), written)


def _read_bytes(reads: Iterable[Read], index: Range, split: Partition | None) -> int:
    """What shards read through projections from an index space; each shard reads a cell once.

    Where a row is read cell by cell, and by one point as a block, it is one row.
    """
    partition = split or Partition.explicit([index])
    counted: dict[tuple[SSAValue, Projection], int] = {}
    for value, projection, fill in reads:
        tensor = tensor_type(value)
        within = None if fill is None else tensor.box
        cells = selected_cells(projection, partition, within)
        key = (value, _hull(projection, index, partition))
        counted[key] = max(counted.get(key, 0), cells * byte_size(tensor.element_type))
    return sum(counted.values())


def _hull(projection: Projection, index: Range, partition: Partition) -> Projection:
    """What a projection selects over all of the dimensions that a partition leaves whole."""
    cuts = partition.cuts
    whole = [d for d in range(index.rank) if partition.count == 1 or (cuts and len(cuts[d]) == 2)]
    left = [dim for dim in range(index.rank) if dim not in whole]
    over = projection.select_inputs(whole).apply_range(index.select(whole))
    rest = projection.map.select_inputs(left).matrix
    return Projection.of(rest, over.start, over.shape, inputs=len(left))


def scalar_operations(op: Work) -> Counter[str]:
    """How often each scalar operation runs, by its name.

    Wrap runs at every point of the domain; merge too, because a fold starts at the zero of its
    monoid; unwrap once per point of the kept dimensions. Where shards split a fold, merge runs once
    more per shard and kept point. Constants and coordinates are not counted. What an external
    kernel computes is not known: it counts nothing.
    """
    counts: Counter[str] = Counter()
    if isinstance(op, loom.ExternalOp):
        return counts
    signature = _signature(op)
    monoid = monoid_of(signature)
    if isinstance(op, loom.MergeOp):
        assert monoid is not None
        assert isinstance(signature, loom.KernelOp)
        boxes = loom.state_boxes(op, signature.part_axes)
        _count(counts, monoid.merge, sum(box.size for box in boxes))
        if not op.is_partial:
            _count(counts, signature.unwrap_block, op.index.size)
        return counts
    points = points_inside(signature.inside, op.index)
    _count(counts, signature.wrap_block, points)
    if monoid is not None:
        _count(counts, monoid.merge, points + states_merged(op))
    if not (isinstance(op, loom.ApplicationOp) and op.is_partial):
        _count(counts, signature.unwrap_block, signature.kept_range(op.index).size)
    return counts


def flops(op: Work) -> int:
    """How many of the `scalar_operations` compute a float: not choosing, converting, comparing."""
    counts: Counter[str] = scalar_operations(op)
    if not counts or isinstance(op, loom.ExternalOp):
        return 0
    signature = _signature(op)
    monoid = monoid_of(signature)
    bodies = (signature.wrap_block, signature.unwrap_block, monoid.merge if monoid else None)
    computing = {
        inner.name
        for body in bodies
        if body is not None
        for inner in body.ops
        if not isinstance(inner, (*_NO_WORK, *_MOVES))
        and any(isinstance(result.type, AnyFloat | ComplexType) for result in inner.results)
    }
    return sum(count for name, count in counts.items() if name in computing)


def peak_live_bytes(top: ModuleOp | func.FuncOp, name: str = "main") -> int:
    """The most bytes of tensors that are stored at once while a function runs in order.

    Arguments are stored throughout, results until the end, what is between from the operation that
    writes it to the last that reads it. Views and reshapes share the storage of their source.
    """
    return max((live for _, live in live_bytes(_function(top, name))), default=0)


def live_bytes(function: func.FuncOp) -> Iterator[tuple[Operation, int]]:
    """Each operation of a function, with the bytes stored while it runs; see `peak_live_bytes`."""
    block = function.body.block
    last: dict[SSAValue, Operation] = {}
    for op in block.ops:
        last.update((_storage(operand), op) for operand in op.operands)
        last.update((result, op) for result in op.results if _storage(result) is result)
    ends = {value: op for value, op in last.items() if value.owner is not block}
    freed: dict[Operation, int] = {}
    for value, op in ends.items():
        if isinstance(value.type, TensorType):
            freed[op] = freed.get(op, 0) + value.type.byte_size
    live = sum(kind.byte_size for kind in _tensors(block.args))
    for op in block.ops:
        stored = [result for result in op.results if _storage(result) is result]
        live += sum(kind.byte_size for kind in _tensors(stored))
        yield op, live
        live -= freed.get(op, 0)


def _function(top: ModuleOp | func.FuncOp, name: str) -> func.FuncOp:
    if isinstance(top, func.FuncOp):
        return top
    for op in top.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == name:
            return op
    raise UsageError(f"there is no func.func @{name} in the module")


def _storage(value: SSAValue) -> SSAValue:
    """The tensor whose cells `value` shows."""
    while isinstance(value.owner, loom.ViewOp | loom.ReshapeOp):
        value = value.owner.source
    return value


def _tensors(values: Iterable[SSAValue]) -> list[TensorType]:
    return [value.type for value in values if isinstance(value.type, TensorType)]


def _signature(op: _Folding) -> loom.BlockSignature:
    if isinstance(op, loom.OperationOp):
        return op
    kernel = loom.find_kernel(op, op.kernel_name)
    assert kernel is not None, "verified applications and merges have a kernel"
    return kernel


def _partition(op: Work) -> Partition | None:
    return op.partition if isinstance(op, loom.OperationOp | loom.ExternalOp) else None


def _reads(
    op: loom.OperationOp | loom.ApplicationOp, signature: loom.BlockSignature
) -> list[tuple[Role, Read]]:
    """What is read, with roles; a partial application has no extra inputs."""
    split = len(signature.in_maps)
    maps = (*signature.in_maps, *signature.extra_maps)
    fills = (*signature.in_fills, *signature.extra_fills)
    return [
        ("in" if place < split else "extra", Read(*row))
        for place, row in enumerate(zip(op.operands, maps, fills, strict=False))
    ]


def states_merged(op: _Folding) -> int:
    """How many kept points the shards of a fold merge a state of, where they split it."""
    partition = _partition(op)
    if partition is None:
        return 0
    signature = _signature(op)
    if partition.cuts is not None:
        folded = [len(partition.cuts[dim]) - 1 for dim in signature.fold_dims]
        if all(count == 1 for count in folded):
            return 0
    elif all(
        signature.fold_range(part) == signature.fold_range(op.index) for part in partition.ranges()
    ):
        return 0
    kept = Projection.identity(op.index.rank).select_outputs(signature.kept_dims)
    return selected_cells(kept, partition)


def _count(counts: Counter[str], body: Block | None, points: int) -> None:
    for op in () if body is None else body.ops:
        if points and not isinstance(op, _NO_WORK):
            counts[op.name] += points
