"""A fold in parts: the states of parts merge.

    run = folded_in_parts(sum_of_all, cuts, {0: 64})

Parts that follow one another are a run, whose states are merged as they are made, on one thread;
then those of the runs merge, in order, so that the result is the same at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

from tapestry.algebra.monoids import accumulating_monoid_of
from tapestry.dialects import loom
from tapestry.dialects._loom_fused import member_writes
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.cuts import Cuts
from tapestry.runtime.prepared.halves import merge_of
from tapestry.runtime.prepared.inside import Insides
from tapestry.runtime.prepared.looping import Loops
from tapestry.runtime.prepared.members import record_outputs, record_state
from tapestry.runtime.prepared.recording import Recorder, Slots
from tapestry.runtime.prepared.tapes import Output, Tapes
from tapestry.runtime.threads import share
from tapestry.zspace import AffineMap, Range

_RUNS = 2
"""Runs for each thread, along what is folded."""


def folded_in_parts(
    op: loom.OperationOp, cuts: Cuts, steps: dict[int, int], loops: Loops | None = None
) -> Callable[[Sequence[Array]], Sequence[Array]] | None:
    """What an operation does that is cut along what it folds; None where it has another form."""
    monoid = accumulating_monoid_of(op)
    if monoid is None:
        return None
    cut = [dim for dim in op.fold_dims if dim in steps]
    if not monoid.commutative and any(steps[dim] > 1 for dim in cut[:-1]):
        return None  # boxes, one after another, would not be points in order
    place = AffineMap.identity(op.index.rank)
    runs = _runs(op, cuts.parts(steps), cuts.threads)

    def record(recorder: Recorder) -> Slots | None:
        scope = recorder.scope(op, place)
        given = recorder.reads(scope)
        return None if given is None else record_state(recorder, scope, given[: len(op.ins)])

    def record_end(recorder: Recorder) -> Slots | None:
        scope = recorder.scope(op, place)
        state = [recorder.tape.source() for _ in monoid.state]
        extras = recorder.extras(scope)
        return None if extras is None else record_outputs(recorder, scope, state, extras)

    insides = Insides.of(op.index, [(op, place)], op.outs)
    parts = [part for run in runs for part in run]
    tapes = Tapes.of(op.index, parts, op.operands, record, insides.kind, loops)
    flat = _flat(op, op.index)
    kept = [_flat(op, run[0]) for run in runs]
    ends = Tapes.of(flat, kept, op.operands, record_end, attrgetter("shape"))
    if tapes is None or ends is None:
        return None
    outs = [Output.of(value, projection, flat) for value, projection in member_writes(op, place)]
    places = [out.at for out in outs]
    merge, threads = merge_of(monoid), min(cuts.threads, len(runs))

    def run(operands: Sequence[Array]) -> list[Array]:
        wholes = tapes.wholes(operands)
        states: list[list[Array]] = [[] for _ in runs]

        def work(number: int) -> None:
            for part in runs[number]:
                new = tapes.frame(part).state(tapes.given(wholes, part))
                before = states[number]
                states[number] = merge([*before, *new]) if before else new

        share(work, range(len(runs)), threads)
        total: dict[Range, list[Array]] = {}
        for own, state in zip(runs, states, strict=True):
            kept = _flat(op, own[0])
            total[kept] = merge([*total[kept], *state]) if kept in total else state
        made = [out.empty() for out in outs]
        views = [out.cells(array) for out, array in zip(outs, made, strict=True)]
        wholes = ends.wholes(operands)
        for kept, state in total.items():
            into = [at(view, kept) for at, view in zip(places, views, strict=True)]
            ends.frame(kept).play([*state, *ends.given(wholes, kept)], into)
        return made

    return run


def _runs(op: loom.OperationOp, parts: Sequence[Range], threads: int) -> list[list[Range]]:
    """Parts of the same kept cells, in order, as so many runs that every thread has some."""
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
    low = tuple(op.index.start[d] if d in op.fold_dims else s for d, s in enumerate(part.start))
    high = tuple(low[d] + 1 if d in op.fold_dims else e for d, e in enumerate(part.end))
    return Range(low, high)
