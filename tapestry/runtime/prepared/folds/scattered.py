"""Operations whose points count at one place each, as scripts: `scatters` folds them by that.

slots = scattered(script, op, monoid, library, arguments)       # None for other folds
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, BlockArgument, SSAValue

from tapestry.algebra.bodies import needed_operations
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.led import find_led
from tapestry.algebra.monoids import Monoid
from tapestry.algebra.one_hot import at_its_place, find_scatter
from tapestry.algebra.reductions import find_reduction
from tapestry.dialects import loom
from tapestry.runtime.arrays.arithmetic import cell_constant
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.bodies import record_body
from tapestry.runtime.prepared.folds.scatters import Points, Scatter, ScatterLed
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.memory import CELLS
from tapestry.runtime.prepared.parts.reading import values_in_parts
from tapestry.runtime.prepared.reads import Slots, reads
from tapestry.runtime.prepared.script import Finished, InTurn, Script
from tapestry.zspace import Range


def scattered(
    script: Script,
    op: loom.OperationOp,
    monoid: Monoid | None,
    library: Library,
    ins: Sequence[int],
) -> Slots | None:
    """A fold whose points count at one place each: they are folded by that."""
    found = None if op.inside is not None else find_scatter(op, monoid)
    if found is None or monoid is None:
        return None
    dim, places = found
    index = op.index.at_start([dim])
    others = [d for d in op.kept_dims if index.shape[d] > 1]
    if index.size <= CELLS or not others:
        return _scattered_over(script, op, monoid, dim, places, index, library, ins)
    states: list[tuple[tuple[slice, ...], Finished]] = []
    step = max(1, CELLS * index.shape[others[0]] // index.size)
    before = (slice(None),) * op.kept_dims.index(others[0])
    for part in index.split(others[0], step):
        own = Script()
        given = [own.argument() for _ in ins]
        state = _scattered_over(own, op, monoid, dim, places, part, library, given)
        if state is None:
            return None
        first = part.start[others[0]] - index.start[others[0]]
        here = slice(first, first + part.shape[others[0]])
        states.append(((*before, here), own.finish(state)))
    dtypes = tuple(numpy_dtype(kind) for kind in monoid.state)
    in_parts = InTurn(tuple(states), op.kept_range(op.index).shape, dtypes)
    return script.calls(in_parts, ins, len(dtypes))


def _scattered_over(
    script: Script,
    op: loom.OperationOp,
    monoid: Monoid,
    dim: int,
    places: Sequence[SSAValue],
    index: Range,
    library: Library,
    ins: Sequence[int],
) -> Slots | None:
    """The same over a range, of extent 1 along the dimension that has the places."""
    read = reads(script, op, index, ins, library)
    yielded = loom.yielded(op.wrap_block)
    pairs = zip(yielded, places, monoid.zero, strict=True)
    values = [at_its_place(value, dim, at, zero) for value, at, zero in pairs]
    dims, functions = range(index.rank), library.functions
    others = tuple(d for d in op.kept_dims if d != dim)
    places_along = {dim: op.index.shape[dim]}
    shape = tuple(places_along.get(d, extent) for d, extent in enumerate(index.shape))
    points = Points(dim, tuple(op.fold_dims), others, index.start[dim], shape)
    zeros = tuple(map(_zero_of, monoid.zero, monoid.state))
    led = find_led(monoid)
    if led:
        state: dict[int, int] = {}
        for one in led:
            at = places[one.part]
            wanted = [*(values[part] for part in one.parts), at]
            made = record_body(
                script, op.wrap_block, index, dims, read, wanted, {dim: at}, functions
            )
            if made is None:
                return None
            own = [zeros[part] for part in one.parts]
            scattered = ScatterLed(points, one, tuple(own))
            state |= zip(one.parts, script.calls(scattered, made, len(own)), strict=True)
        return [state[part] for part in range(len(zeros))]
    found: Slots = []
    for part, (value, at) in enumerate(zip(values, places, strict=True)):
        wanted = [value, at]
        made = _read_in_parts(script, op, index, dim, wanted, read, ins, library)
        if made is None:
            body = op.wrap_block
            made = record_body(script, body, index, dims, read, wanted, {dim: at}, functions)
        primitive = monoid.primitives[part]
        reduction = find_reduction(primitive, monoid.state[part])
        if made is None or primitive is None or reduction is None:
            return None
        scatter = Scatter(points, reduction.ufunc, primitive.name, zeros[part], library.team)
        found.append(script.call(scatter, made, new=True))
    return found


def _read_in_parts(
    script: Script,
    op: loom.OperationOp,
    index: Range,
    dim: int,
    wanted: Sequence[SSAValue],
    read: Slots,
    ins: Sequence[int],
    library: Library,
) -> Slots | None:
    """Values of a body that reads blocks, by loops; None where it knows the coordinate `dim`."""
    needed = needed_operations(wanted)
    if any(isinstance(one, loom.IndexOp) and one.dimension == dim for one in needed):
        return None
    computed = [value for value in dict.fromkeys(wanted) if not isinstance(value, BlockArgument)]
    run = values_in_parts(op, index, computed, library.loops)
    if run is None:
        return None
    slots = dict[SSAValue, int](zip(op.wrap_block.args, read, strict=True))
    slots |= zip(computed, script.calls(run, ins, len(computed), new=True), strict=True)
    return [slots[value] for value in wanted]


def _zero_of(zero: complex, kind: Attribute) -> Array:
    return cell_constant(zero, kind).astype(numpy_dtype(kind))
