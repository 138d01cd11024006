"""What a member of a group computes, written on a tape: wrap, fold, unwrap.

A fold of a part is a matrix product where it is a contraction; reductions of NumPy's where parts of
a state merge by one operation; those, and what is moved to their results and summed
(`tapestry.algebra.complements`); else halves merged with halves. Folded dimensions keep an extent
of 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.bodies import Dims, dependences, moving_dims
from tapestry.algebra.complements import find_merged_at_once
from tapestry.algebra.contraction import Contraction, contraction_of, find_contractions
from tapestry.algebra.dtypes import is_half, numpy_dtype
from tapestry.algebra.monoids import Monoid, accumulating_monoid_of
from tapestry.algebra.moved_parts import MovedParts
from tapestry.algebra.one_hot import find_scatter
from tapestry.algebra.reductions import find_reduction
from tapestry.dialects import loom
from tapestry.runtime.arrays.arithmetic import cell_constant
from tapestry.runtime.prepared.cells import part_of, reduced, spread
from tapestry.runtime.prepared.folds.halves import merge_of, merged_halves, merging_of
from tapestry.runtime.prepared.folds.scanning import States
from tapestry.runtime.prepared.tapes.contracted import record_masked, record_product
from tapestry.runtime.prepared.tapes.meanings import Merged, Part, Reduced, Running, Spread
from tapestry.runtime.prepared.tapes.recording import Recorder, Scope, Slots
from tapestry.zspace import AffineMap


def record_member(recorder: Recorder, member: loom.OperationOp, place: AffineMap) -> Slots | None:
    """The slots of a member's outputs; None where it is not to be written on a tape."""
    scope = recorder.scope(member, place)
    given = recorder.reads(scope)
    state = None if given is None else record_state(recorder, scope, given[: len(member.ins)])
    if given is None or state is None:
        return None
    return record_outputs(recorder, scope, state, given[len(member.ins) :])


def record_state(recorder: Recorder, scope: Scope, ins: Sequence[int]) -> Slots | None:
    """The slots of the folded state, in the types it accumulates in, or of what wrap yields."""
    op = scope.member
    if op.partition is not None:
        return None
    monoid = accumulating_monoid_of(op)
    if monoid is None:
        return recorder.body(op.wrap_block, ins, loom.yielded(op.wrap_block), scope)
    if op.scan_dim is not None:
        values = _typed_values(recorder, scope, monoid, ins)
        return None if values is None else _scanned(recorder, scope, monoid, values, op.scan_dim)
    if find_scatter(op, monoid) is not None:
        return None
    products = find_contractions(op, monoid)
    if products:
        wanted = [side for one in products for side in (one.left, one.right)]
        sides = recorder.body(op.wrap_block, ins, wanted, scope)
        if sides is None:
            return None
        state: Slots = []
        pairs = zip(products, monoid.state, sides[::2], sides[1::2], strict=True)
        for one, kind, left, right in pairs:
            made = record_product(recorder, scope, one, left, right)
            if made is None:
                return None
            state.append(recorder.as_dtype(made, _wide(one.left), numpy_dtype(kind)))
        return state
    typed = _typed_values(recorder, scope, monoid, ins)
    if typed is None:
        return None
    return _moved(recorder, scope, monoid, typed) or _halved(recorder, scope, monoid, typed)


def _typed_values(
    recorder: Recorder, scope: Scope, monoid: Monoid, ins: Sequence[int]
) -> Slots | None:
    """What wrap yields, in the types that it is folded in."""
    block = scope.member.wrap_block
    end = loom.yielded(block)
    values = recorder.body(block, ins, end, scope)
    if values is None:
        return None
    triples = zip(values, end, monoid.state, strict=True)
    return [recorder.as_dtype(s, numpy_dtype(v.type), numpy_dtype(k)) for s, v, k in triples]


def record_merged(recorder: Recorder, scope: Scope, monoid: Monoid, states: Sequence[int]) -> Slots:
    """The slots of one state, of the parts of those that lie along what a scope folds."""
    return _moved(recorder, scope, monoid, states) or _halved(recorder, scope, monoid, states)


def record_outputs(
    recorder: Recorder, scope: Scope, state: Sequence[int], extras: Sequence[int]
) -> Slots | None:
    """The slots of the outputs, from those of the state and of what unwrap reads beside it."""
    op = scope.member
    monoid = accumulating_monoid_of(op)
    if monoid is not None:
        kinds = zip(state, monoid.state, op.state_types, strict=True)
        state = [recorder.as_dtype(s, numpy_dtype(a), numpy_dtype(b)) for s, a, b in kinds]
    if op.unwrap_block is not None:
        given = [*state, *extras]
        made = recorder.body(op.unwrap_block, given, loom.yielded(op.unwrap_block), scope)
        if made is None:
            return None
        state = made
    return recorder.write(scope, state)


def _wide(value: SSAValue) -> np.dtype[np.generic]:
    """What a factor is multiplied in."""
    return np.dtype(np.float32) if is_half(value.type) else numpy_dtype(value.type)


def _along(recorder: Recorder, scope: Scope, slot: int, folded: Sequence[int]) -> int:
    """A value all along some dimensions of the group."""
    extents = tuple((dim, scope.index.shape[dim]) for dim in folded)
    return recorder.view(partial(spread, extents), slot, ("along", *extents), Spread(extents))


def _moved(recorder: Recorder, scope: Scope, monoid: Monoid, own: Sequence[int]) -> Slots | None:
    """Parts reduced each by an operation, and others moved to those and added."""
    found = find_merged_at_once(monoid)
    if found is None:
        return None
    own = [
        record_masked(recorder, scope, slot, monoid.zero[part]) if part in found.plain else slot
        for part, slot in enumerate(own)
    ]
    state = list(own)
    for part, primitive in found.plain.items():
        reduced = _reduced(recorder, scope, monoid, part, primitive, own[part])
        if reduced is None:
            return None
        state[part] = reduced
    merged = list(state)
    for part, block in found.moved.items():
        given, product = [*own, *merged], None
        if not scope.states:  # whose parts vary along all that is kept
            product = _moved_product(recorder, scope, block, given, found)
        if product is None:
            moved = recorder.body(block, given, loom.yielded(block), None)
            if moved is None:
                return None
            counted = record_masked(recorder, scope, moved[0], monoid.zero[part])
            product = _reduced(recorder, scope, monoid, part, arith.AddfOp, counted)
        if product is None:
            return None
        state[part] = product
    return state


def _reduced(
    recorder: Recorder,
    scope: Scope,
    monoid: Monoid,
    part: int,
    primitive: type[Operation],
    slot: int,
) -> int | None:
    reduction = find_reduction(primitive, monoid.state[part])
    if reduction is None:
        return None
    folded = scope.of_group(scope.member.fold_dims)
    key = ("reduce", primitive, monoid.state[part], folded)
    zero = monoid.zero[part]
    meaning = None if isinstance(zero, complex) else Reduced(primitive.name, zero, folded)
    return recorder.tape.call(
        partial(reduced, reduction, folded), (_along(recorder, scope, slot, folded),), key, meaning
    )


def is_reduction(op: loom.OperationOp) -> bool:
    """Whether an operation folds its input as it is, by an operation that NumPy reduces by."""
    monoid = accumulating_monoid_of(op)
    if monoid is None or find_reduction(monoid.primitive, monoid.state[0]) is None:
        return False
    end = op.wrap_block.last_op
    if op.scan_dim is not None:
        return False
    return end is op.wrap_block.first_op and monoid.state == op.state_types


def moves_products(op: loom.OperationOp, monoid: Monoid | None) -> bool:
    """Whether parts of a state are moved, and summed as products of matrices: so is attention."""
    moved = None if monoid is None else find_merged_at_once(monoid)
    if moved is None:
        return False
    masked = frozenset[int]() if op.inside is None else frozenset[int]().union(*op.inside.moving())
    blocks = moved.moved.values()
    return any(_contraction(op, block, moved, masked)[0] is not None for block in blocks)


def values_between(op: loom.OperationOp) -> set[Dims]:
    """The dimensions of the arrays that are made on the way to a member's state."""
    monoid = accumulating_monoid_of(op)
    products = find_contractions(op, monoid) or ()
    varies = dependences(op.wrap_block, [moving_dims(p) for p in op.in_maps])
    if products:
        sides = {varies[side] for one in products for side in (one.left, one.right)}
        return {*sides, frozenset(op.kept_dims)}
    found = set(varies.values())
    moved = None if monoid is None else find_merged_at_once(monoid)
    if moved is None:
        return found | {frozenset(range(op.index.rank))}
    masked = frozenset[int]() if op.inside is None else frozenset[int]().union(*op.inside.moving())
    for block in moved.moved.values():
        product, inner = _contraction(op, block, moved, masked)
        wanted = loom.yielded(block) if product is None else (product.left, product.right)
        found |= {inner[value] for value in wanted}
    return found | {frozenset(op.kept_dims)}


def _contraction(
    op: loom.OperationOp, block: Block, moved: MovedParts, masked: Dims
) -> tuple[Contraction | None, Mapping[SSAValue, Dims]]:
    """The contraction that the sum of a moved part is, and what values of its block vary along.

    Along the dimensions `masked` it varies which points count: plain parts are masked.
    """
    varies = dependences(op.wrap_block, [moving_dims(p) for p in op.in_maps])
    own = [varies[value] for value in loom.yielded(op.wrap_block)]
    own = [dims | masked if part in moved.plain else dims for part, dims in enumerate(own)]
    merged = [dims - frozenset(op.fold_dims) for dims in own]
    varies = dependences(block, [*own, *merged])
    (value,) = loom.yielded(block)
    return contraction_of(value, varies, op.kept_dims, op.fold_dims), varies


def _moved_product(
    recorder: Recorder, scope: Scope, block: Block, given: Sequence[int], moved: MovedParts
) -> int | None:
    """A moved part whose sum is a contraction, of factors that vary apart."""
    own = scope.member.inside if scope.inside is not None else None
    masked = frozenset[int]() if own is None else frozenset[int]().union(*own.moving())
    found, _ = _contraction(scope.member, block, moved, masked)
    if found is None:
        return None
    factors = recorder.body(block, given, (found.left, found.right), None)
    return None if factors is None else record_product(recorder, scope, found, *factors)


def _halved(recorder: Recorder, scope: Scope, monoid: Monoid, own: Sequence[int]) -> Slots:
    """Any state: halves merged with halves until there is one."""
    folded = scope.of_group(scope.member.fold_dims)
    merge = merged_halves(monoid, folded)
    counted = zip(own, monoid.zero, strict=True)
    own = [record_masked(recorder, scope, slot, zero) for slot, zero in counted]
    whole = [_along(recorder, scope, slot, folded) for slot in own]
    merging = merging_of(monoid)
    meaning = None if merging is None else Merged(merging, monoid.real_zero, folded)
    made = recorder.tape.call(merge, whole, ("halves", monoid.merge, folded), meaning)
    return _parts(recorder, made, len(own))


def _scanned(
    recorder: Recorder, scope: Scope, monoid: Monoid, own: Sequence[int], dim: int
) -> Slots:
    """The states that are come to at each place along the dimension that is scanned."""
    (axis,) = scope.of_group((dim,))
    counted = zip(own, monoid.zero, strict=True)
    own = [record_masked(recorder, scope, slot, zero) for slot, zero in counted]
    whole = [_along(recorder, scope, slot, (axis,)) for slot in own]
    zeros = tuple(map(cell_constant, monoid.zero, monoid.state))
    reduction = find_reduction(monoid.primitive, monoid.state[0])
    merging = merging_of(monoid, in_order=True)
    meaning = None if merging is None else Running(merging, monoid.real_zero, axis)
    states = States(merge_of(monoid), reduction, zeros, axis)
    made = recorder.tape.call(states, whole, ("scan", monoid.merge, axis), meaning)
    return _parts(recorder, made, len(own))


def _parts(recorder: Recorder, made: int, count: int) -> Slots:
    """The slots of the parts of a list."""
    call = recorder.tape.call
    return [call(partial(part_of, n), (made,), ("part", n), Part(n)) for n in range(count)]
