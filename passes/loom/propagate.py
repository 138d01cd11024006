"""`loom-propagate`: partitions pushed to the neighbours of operations that have one.

    %h = loom.operation @linear over <[0, 0, 0] : [64, 32, 784]> ... shards <grid [[0, 32, 64], ..]>
    %y = loom.operation @relu over <[0, 0] : [64, 32]> ... ins(%h : (d0, d1) -> (d0, d1))

becomes, because a shard of `@relu` then reads what one shard of `@linear` wrote,

    %y = loom.operation @relu over <[0, 0] : [64, 32]> ... shards <grid [[0, 32, 64], [0, 32]]>

The cuts of one operation are cuts of the tensor between the two, and those are cuts of the other,
forward and backward, through every projection. Starting at the operations that are split already,
each other one takes the first partition under which no data moves to or from the neighbour that
proposes it; `tapestry.movement` says what moves where neighbours do not agree. Options:
  `slack=0.1`   a tenth of what is read may move: the halos of windows;
  `folds=true`  folds and scans may be split too, for states to be merged.

Input: any verified loom program. Output: the same, with further partitions; values do not change.
Each step gives one operation a partition, so it ends, and each edge is looked at twice at most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriteWalker

from tapestry.diagnostics import UsageError
from tapestry.halos import cut_sides, middles
from tapestry.movement import (
    Edge,
    Splittable,
    edges,
    moved_bytes,
    read_bytes,
    splittables,
    whole,
)
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.shard import ShardOperation
from tapestry.zspace import Partition, Projection, Range
from tapestry.zspace.affine import image_box


@dataclass(frozen=True)
class _End:
    """One end of an edge: an operation and how it touches the tensor."""

    op: Splittable
    projection: Projection


def _ends(edge: Edge) -> tuple[_End, _End]:
    return _End(edge.producer, edge.written), _End(edge.reader, edge.read)


def _agreeing(
    known: Partition, its: Projection, op: Splittable, other: Projection, dims: Sequence[int]
) -> Partition:
    """The grid over `op` whose cuts of a tensor are those that the grid `known` makes.

    `its` and `other` project the index spaces of the two onto the tensor. Only `dims` are cut, see
    `_cuts`.
    """
    found = {
        dim: cuts
        for row, sides in cut_sides(known, its)
        for dim, cuts in _cuts(other, row, middles(sides), op.index, dims)
    }
    sides = enumerate(op.index.sides)
    return Partition.grid((low, *found.get(dim, ()), high) for dim, (low, high) in sides)


def _cuts(
    projection: Projection, row: int, boundaries: Sequence[int], index: Range, dims: Sequence[int]
) -> Iterator[tuple[int, list[int]]]:
    """The dimension, and its cuts, whose parts lie on either side of boundaries of a tensor.

    Of the dimensions of the row it is the one that goes farthest. The others move a point by
    something between `low` and `high`: where that is less than a step the parts are exact, else
    they are cut in the middle of what both read.
    """
    terms = [(c, dim) for c, dim in projection.map.terms[row] if dim in dims]
    if not terms:
        return
    factor, dim = max(terms, key=lambda term: abs(term[0]) * index.shape[term[1]])
    rest = projection.map.select_outputs([row])
    box = image_box(rest, index.with_sides({dim: (0, 1)}), (1,))
    low, high = box.start[0], box.end[0] - 1 + projection.shape[row] - 1
    step = abs(factor)
    if high - low >= step:
        low = high = (low + high) // 2
    if factor > 0:
        found = {-((low - boundary) // step) for boundary in boundaries}
    else:
        found = {(low - boundary) // step + 1 for boundary in boundaries}
    yield dim, sorted(c for c in found if index.start[dim] < c < index.end[dim])


@dataclass
class _Propagation:
    """The search: what is split so far, and the operations whose neighbours are next."""

    module: ModuleOp
    slack: float
    folds: bool

    def __post_init__(self) -> None:
        self.known: dict[Splittable, Partition] = {}
        self.around: dict[Splittable, list[Edge]] = {op: [] for op in splittables(self.module)}
        for op in self.around:
            for edge in edges(op):
                if edge.producer in self.around:
                    self.around[edge.producer].append(edge)
                    self.around[op].append(edge)
            if op.partition is not None:
                self.known[op] = op.partition

    def run(self) -> dict[Splittable, Partition]:
        """Partitions of operations that had none."""
        given = set(self.known)
        waiting = deque(self.known)
        while waiting:
            op = waiting.popleft()
            for edge in self.around[op]:
                producer, reader = _ends(edge)
                other, one = (reader, producer) if op is edge.producer else (producer, reader)
                if other.op not in self.known and self._propose(edge, one, other):
                    waiting.append(other.op)
        return {op: partition for op, partition in self.known.items() if op not in given}

    def _propose(self, edge: Edge, one: _End, other: _End) -> bool:
        known = self.known[one.op]
        if known.cuts is None or other.op.index.is_empty:
            return False
        dims = other.op.map_dims
        if self.folds:
            dims = (*dims, *other.op.merged_dims)
        partition = _agreeing(known, one.projection, other.op, other.projection, dims)
        if partition == whole(other.op) or other.op.sharding_problems(partition):
            return False
        reader, producer = known, partition
        if other.op is edge.reader:
            reader, producer = producer, reader
        moved = moved_bytes(edge, reader=reader, producer=producer)
        if moved > self.slack * read_bytes(edge, reader):
            return False
        self.known[other.op] = partition
        return True


@dataclass(frozen=True)
class LoomPropagate(ModulePass):
    """Split operations like their neighbours, where no data moves then."""

    name = "loom-propagate"

    slack: float | int = 0.0
    folds: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not 0.0 <= self.slack <= 1.0:
            raise UsageError(f"loom-propagate: slack must be from 0 to 1, not {self.slack}")
        with collection_paused():
            found = _Propagation(op, self.slack, self.folds).run()
            pattern = ShardOperation(found)
            PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(op)
