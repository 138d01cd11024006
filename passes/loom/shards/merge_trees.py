"""Trees of merges: runs of states merged into partial states, until few enough are left.

    p0 p1 p2 p3 p4     with arity 2:     (p0 p1) (p2 p3) p4  ->  ((p0 p1) (p2 p3)) p4

Runs are of states that follow one another, so any associative merge gives the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from tapestry.algebra.parts import Axes
from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType
from tapestry.zspace import Projection, Range, bounding


@dataclass(frozen=True)
class State:
    """The parts of a state, and the box of the index space that they stand for."""

    box: Range
    parts: tuple[SSAValue, ...]


def splits_states(op: loom.BlockSignature, shards: Sequence[Range]) -> bool:
    """Whether different shards hold different parts of one fold or scan."""
    return any(len({(s.start[d], s.end[d]) for s in shards}) > 1 for d in op.merged_dims)


def storable_axes(
    varying: Sequence[Axes], shards: Iterable[Range], over: Range
) -> tuple[Axes, ...]:
    """Per part of a state, the kept dimensions that the shards of a merge must store it over.

    Those that it varies along are enough when every shard covers the others as the merge does:
    each shard of a regular partition.
    """
    rank = over.rank
    parts = [*shards]
    cut = [a for a in range(rank) if any(p.select([a]) != over.select([a]) for p in parts)]
    every = tuple(range(rank))
    return tuple(
        every if over.is_empty or any(axis in cut and axis not in axes for axis in every) else axes
        for axes in varying
    )


def part_projections(
    op: loom.BlockSignature, stored: Iterable[Sequence[Axes]]
) -> tuple[Projection, ...] | None:
    """What a kernel says of the parts that some states store over fewer dimensions; None if none.

    Each part is stored over all kept dimensions or over the same ones everywhere.
    """
    every = Projection.identity(len(op.kept_dims))
    fewest = [min(axes, key=len) for axes in zip(*stored, strict=True)]
    parts = tuple(every.select_outputs(axes) for axes in fewest)
    return None if all(part == every for part in parts) else parts


def state_tensors(op: loom.BlockSignature, kept: Range, axes: Sequence[Axes]) -> list[TensorType]:
    """The parts of a state over a box of the kept dimensions, each stored over some of them."""
    pairs = zip(axes, op.state_types, strict=True)
    return [TensorType.of(kept.select(over), element) for over, element in pairs]


def merge_runs(
    op: loom.OperationOp,
    kernel: str,
    states: Sequence[State],
    arity: int,
    axes: Sequence[Axes],
) -> tuple[list[loom.MergeOp], list[State]]:
    """Partial merges of at most `arity` states each, and the states left: at most `arity` too.

    Each part is stored over its `axes`, which a partial merge covers as the states did.
    More are left only where runs of states do not make boxes, which a partial state must stand for.
    """
    merges: list[loom.MergeOp] = []
    level = list(states)
    while len(level) > arity:
        runs = _runs(level, arity)
        if len(runs) == len(level):
            break
        level.clear()
        for run in runs:
            if len(run) == 1:
                level.append(run[0])
                continue
            box = bounding([state.box for state in run])
            kept = op.kept_range(box)
            merge = loom.MergeOp(
                kernel,
                kept,
                [part for state in run for part in state.parts],
                (),
                state_tensors(op, kept, axes),
                partial=True,
            )
            merges.append(merge)
            level.append(State(box, tuple(merge.outs)))
    return merges, level


def _runs(states: Sequence[State], arity: int) -> list[Sequence[State]]:
    """The states cut into the longest runs, from the left, that make boxes."""
    runs: list[Sequence[State]] = []
    place = 0
    while place < len(states):
        length = next(n for n in range(arity, 0, -1) if _makes_a_box(states[place : place + n]))
        runs.append(states[place : place + length])
        place += length
    return runs


def _makes_a_box(run: Sequence[State]) -> bool:
    """Whether disjoint boxes fill their bounding box."""
    return sum(s.box.size for s in run) == bounding([s.box for s in run]).size
