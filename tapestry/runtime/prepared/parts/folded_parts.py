"""A fold in parts: the states of parts merge.

    run = folded_in_parts(sum_of_all, cuts, {0: 64})

Parts that follow one another are a run, which is one thread's. Where the states of all parts take
little, they merge when all are there; else those of a run merge as they are made, and then those of
the runs. It is in the same order at each call, and so is the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.monoids import accumulating_monoid_of
from tapestry.dialects import loom
from tapestry.dialects._loom_fused import member_writes
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.folds.halves import merge_of
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.cuts import Cuts
from tapestry.runtime.prepared.parts.inside import Insides
from tapestry.runtime.prepared.parts.sharing import Folded
from tapestry.runtime.prepared.tapes.members import record_merged, record_outputs, record_state
from tapestry.runtime.prepared.tapes.recording import Recorder, Slots, output_of, recorded
from tapestry.zspace import AffineMap, Range

_FEW = 1 << 18
"""Bytes that the states of all parts take at most to be there at once."""

_RUNS = 2
"""Runs for each thread, along what is folded."""


def folded_in_parts(
    op: loom.OperationOp, cuts: Cuts, steps: dict[int, int], loops: Loops | None = None
) -> Callable[[Sequence[Array]], Sequence[Array]] | None:
    """What an operation does that is cut along what it folds; None where it has another form."""
    monoid = accumulating_monoid_of(op)
    if monoid is None:
        return None
    last = max((dim for dim in op.fold_dims if dim in steps), default=0)
    before = [steps.get(dim, op.index.shape[dim]) for dim in op.fold_dims if dim < last]
    if not monoid.commutative and any(step > 1 for step in before):
        return None  # boxes, one after another, would not be points in order
    place = AffineMap.identity(op.index.rank)
    runs = _runs(op, cuts.parts(steps), cuts.threads)

    def record(recorder: Recorder) -> Slots | None:
        scope = recorder.scope(op, place)
        given = recorder.reads(scope)
        return None if given is None else record_state(recorder, scope, given[: len(op.ins)])

    def record_end(recorder: Recorder) -> Slots | None:
        scope = recorder.scope(op, place)
        states = [recorder.tape.source() for _ in monoid.state]
        along = scope.index.with_sides({axis: (0, counts[scope.part])})
        scoped = replace(scope, index=along, states=True)
        state = record_merged(recorder, scoped, monoid, states)
        extras = recorder.extras(scope)
        return None if extras is None else record_outputs(recorder, scope, state, extras)

    insides = Insides.of(op.index, [(op, place)], op.outs)
    parts = [part for run in runs for part in run]
    tapes = recorded(op.index, parts, op.operands, record, insides.kind, loops)
    flat, axis = _flat(op, op.index), op.fold_dims[0]
    kept = tuple(_flat(op, run[0]) for run in runs)
    size = sum(numpy_dtype(kind).itemsize for kind in monoid.state)
    few = max(box.size for box in kept) * size * len(parts) <= _FEW
    counts = Counter(_flat(op, part) for part in parts) if few else dict.fromkeys(kept, 1)
    ends = recorded(flat, kept, op.operands, record_end, lambda p: (p.shape, counts[p]), loops)
    if tapes is None or ends is None:
        return None
    pairs = member_writes(op, place)
    outs = tuple(output_of(value, projection, flat) for value, projection in pairs)
    threads = min(cuts.threads, len(runs))
    runs_of = tuple(map(tuple, runs))
    return Folded(tapes, ends, outs, runs_of, kept, merge_of(monoid), axis, threads, few)


def _runs(op: loom.OperationOp, parts: Sequence[Range], threads: int) -> list[list[Range]]:
    """Parts of the same kept cells, in order, as so many runs that every thread has some.

    Runs of the same cells follow one another: so do their states in memory.
    """
    by_kept: dict[Range, list[Range]] = {}
    for part in parts:
        by_kept.setdefault(_flat(op, part), []).append(part)
    each = -(-_RUNS * threads // len(by_kept)) if threads > 1 else 1
    found: list[list[Range]] = []
    for own in by_kept.values():
        size = -(-len(own) // each)
        found += [own[first : first + size] for first in range(0, len(own), size)]
    return found


def _flat(op: loom.OperationOp, part: Range) -> Range:
    """A part of extent 1 along what is folded, where the index space starts."""
    first = op.index.at_start(op.fold_dims)
    return part.with_sides({d: first.sides[d] for d in op.fold_dims})
