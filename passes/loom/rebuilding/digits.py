"""Index dimensions split into digits, so that a position may be read digit by digit.

Splitting `d0` over [0, 24) by 4 gives (d0, d1) over [0, 6) x [0, 4); whatever used `d0` uses
`4 * d0 + d1`. Points are visited in the same row-major order, so every fold keeps its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.pattern_rewriter import PatternRewriter

from tapestry.dialects import loom
from tapestry.passes.loom.rebuilding.bodies import reindex
from tapestry.passes.loom.rebuilding.operations import Write, reads_of, rebuild, writes_of
from tapestry.zspace import AffineMap, Partition, Range

_SPLIT = frozenset(("map", "fold"))
"""Iterators of dimensions that may become two; an operation has one scan dimension at most."""


@dataclass(frozen=True)
class Split:
    """Dimension `dim` of an index space becomes two, the second counting to `inner`.

    `old = start + inner * first + second`; `inner` divides the extent.
    """

    dim: int
    inner: int

    def map(self, index: Range) -> AffineMap:
        """Old coordinates from new ones."""
        d = self.dim
        matrix = [[0] * (index.rank + 1) for _ in range(index.rank)]
        for old in range(index.rank):
            matrix[old][old if old <= d else old + 1] = 1
        matrix[d][d : d + 2] = [self.inner, 1]
        offset = [index.start[d] if old == d else 0 for old in range(index.rank)]
        return AffineMap.of(matrix, offset, inputs=index.rank + 1)

    def range(self, index: Range) -> Range:
        """The refined index space."""
        d = self.dim
        refined = (0, index.shape[d] // self.inner), (0, self.inner)
        return Range.of_sides((*index.sides[:d], *refined, *index.sides[d + 1 :]))

    def partition(self, partition: Partition, index: Range) -> Partition | None:
        """The same parts of the refined index space; None when one of them is no box there."""
        d, base = self.dim, index.start[self.dim]
        if partition.cuts is not None:
            cuts = [cut - base for cut in partition.cuts[d]]
            if all(cut % self.inner == 0 for cut in cuts):
                outer = tuple(cut // self.inner for cut in cuts)
                inside = (0, self.inner)
                return Partition.grid(
                    (*partition.cuts[:d], outer, inside, *partition.cuts[d + 1 :])
                )
        boxes: list[Range] = []
        for box in partition.ranges():
            refined = self._sides(box.start[d] - base, box.end[d] - base)
            if refined is None:
                return None
            boxes.append(Range.of_sides((*box.sides[:d], *refined, *box.sides[d + 1 :])))
        return Partition.explicit(boxes)

    def _sides(self, low: int, high: int) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """The box of the two new dimensions that holds positions [low, high), if one does."""
        first, start = divmod(low, self.inner)
        last, end = divmod(high, self.inner)
        if start == end == 0:
            return (first, last), (0, self.inner)
        if low < high and first == (high - 1) // self.inner:
            return (first, first + 1), (start, start + high - low)
        return None


def may_split(op: loom.OperationOp, dim: int) -> bool:
    """Whether an index dimension of an operation may become several."""
    return op.kinds[dim] in _SPLIT


def split_partition(op: loom.OperationOp, splits: Sequence[Split]) -> Partition | None:
    """The operation's partition after some splits; None without one, or where it cannot follow."""
    partition, index = op.partition, op.index
    for split in splits:
        partition = None if partition is None else split.partition(partition, index)
        index = split.range(index)
    return partition


def refine(
    op: loom.OperationOp, splits: Sequence[Split], rewriter: PatternRewriter
) -> loom.OperationOp:
    """The operation over its index space split so; its partition must be able to follow.

    Each split is of the index space that the one before it leaves.
    """
    full, index, kinds = AffineMap.identity(op.index.rank), op.index, op.kinds
    for split in splits:
        full = full.compose(split.map(index))
        index = split.range(index)
        kinds = (*kinds[: split.dim], kinds[split.dim], *kinds[split.dim :])
    partition = split_partition(op, splits)
    assert (partition is None) == (op.partition is None)
    return over_points(op, full, index, kinds, partition, rewriter)


def over_points(
    op: loom.OperationOp,
    points: AffineMap,
    index: Range,
    kinds: Sequence[loom.Iterator],
    partition: Partition | None,
    rewriter: PatternRewriter,
) -> loom.OperationOp:
    """The operation over another index space, whose points `points` takes to its own.

    Every point must be had once, and those that are folded in the order that they were in; kept
    dimensions depend on kept ones alone. `partition` is the operation's, of the new space.
    """
    ins, extras = reads_of(op)
    reindex(op.wrap_block, points, range(points.inputs), rewriter)
    kept = tuple(new for new, kind in enumerate(kinds) if kind != "fold")
    if op.unwrap_block is not None:
        reindex(op.unwrap_block, points.select_inputs(kept), kept, rewriter)
    kept_part = points.select_outputs(op.kept_dims).select_inputs(kept)
    return rebuild(
        op,
        rewriter,
        index=index,
        kinds=kinds,
        ins=[read.compose(points) for read in ins],
        extras=[read.compose(kept_part) for read in extras],
        outs=[_written(write, kept_part) for write in writes_of(op)],
        partition=partition,
        inside=None if op.inside is None else op.inside.compose(points),
    )


def _written(write: Write, inner: AffineMap) -> Write:
    projection, kind = write
    return projection.compose(inner), kind
