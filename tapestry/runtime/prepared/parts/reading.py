"""Values of a body that reads at computed places, over an index range, in parts.

    run = values_in_parts(op, index, [value], loops)    # None where that is not for loops
    (cells,) = run(operands)                            # with an axis per dimension of the index

Where a body reads blocks, NumPy gathers cells one operation after another, and looks first whether
all places are there. Loops do both as they go, on all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from tapestry.algebra.bodies import dependences, moving_dims, needed_operations
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.scalars import scalar_of
from tapestry.codegen.loops import is_known
from tapestry.dialects import loom
from tapestry.runtime.cpu.threads import thread_count
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.sharing import Mapped
from tapestry.runtime.prepared.tapes.kinds import Output
from tapestry.runtime.prepared.tapes.recording import Recorder, Slots, recorded
from tapestry.zspace import AffineMap, Projection, Range

_Run: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]

_SHARE = 1 << 18
"""Scalar operations of a thread of the host's, which is awake, from which it takes a part."""

_WOKEN = 1 << 21
"""Those of a thread that is to be woken."""


def values_in_parts(
    op: loom.OperationOp, index: Range, wanted: Sequence[SSAValue], loops: Loops | None
) -> _Run | None:
    """From an operation's inputs to values of its body; none of these is a cell that it is given.

    None where the body reads no blocks, is not for loops, or there is too little to compute.
    """
    needed = needed_operations(wanted)
    plain = (arith.ConstantOp, loom.IndexOp, loom.ReadOp)
    scalars = [scalar_of(one) for one in needed if not isinstance(one, plain)]
    known = all(scalar is not None and is_known(scalar) for scalar in scalars)
    reads = any(isinstance(one, loom.ReadOp) for one in needed)
    if loops is None or not (known and reads) or index.is_empty:
        return None
    varies = dependences(op.wrap_block, [moving_dims(p) for p in op.in_maps])
    dims = [varies[value] for value in wanted]
    count = len(needed) * max(prod(index.shape[d] for d in own) for own in dims)
    if not loops.pay(count):
        return None
    place = AffineMap.identity(index.rank)
    outs = [_output(value, own, index) for value, own in zip(wanted, dims, strict=True)]

    def record(recorder: Recorder) -> Slots | None:
        scope = recorder.scope(op, place)
        given = recorder.inputs(scope)
        return None if given is None else recorder.body(op.wrap_block, given, wanted, scope)

    common = frozenset(d for d in range(index.rank) if all(d in own for own in dims))
    parts = _parts(index, common, count, loops)
    operands = op.operands[: len(op.ins)]
    tapes = recorded(index, parts, operands, record, lambda part: part.shape, loops)
    return None if tapes is None else Mapped(tapes, tuple(outs), len(parts))


def _output(value: SSAValue, dims: frozenset[int], index: Range) -> Output:
    """An array with an axis per dimension of the index, of extent 1 where a value does not vary."""
    box = index.at_start(d for d in range(index.rank) if d not in dims)
    matrix = [[int(d == e and d in dims) for e in range(index.rank)] for d in range(index.rank)]
    offset = [0 if d in dims else index.start[d] for d in range(index.rank)]
    return Output(box, numpy_dtype(value.type), Projection.of(matrix, offset=offset), index)


def _parts(index: Range, dims: frozenset[int], count: int, loops: Loops) -> Sequence[Range]:
    """The index range in parts along one of some dimensions, at most one for each thread."""
    if loops.team is None:
        number = max(1, min(thread_count(), count // _WOKEN))
    else:
        number = max(1, min(loops.team.count(), count // _SHARE))
    longest = max(dims, key=lambda d: index.shape[d], default=None)
    if number == 1 or longest is None:
        return [index]
    return index.split(longest, -(-index.shape[longest] // number))
