"""An operation as a function of whole arrays.

A map is its body; a contraction is a matrix product, or the library's to compute where it reads
through windows; another fold is its body and what combines its values; then comes unwrap. What is
long is computed in parts along its first dimension, so that what is in between stays small. A scan,
what is split, and a fold that is too large for one part have no function here: the numpy executor
runs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import BlockArgument, SSAValue

from tapestry.algebra.bodies import dependences, moving_dims
from tapestry.algebra.contraction import Contraction, find_contractions
from tapestry.algebra.dtypes import is_half, numpy_dtype
from tapestry.algebra.monoids import Monoid, accumulating_monoid_of
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.runtime.arrays.domains import inside_mask
from tapestry.runtime.cpu.threads import thread_count
from tapestry.runtime.prepared.bodies import record_body
from tapestry.runtime.prepared.cells import in_dtype, zeroed
from tapestry.runtime.prepared.folds.scattered import scattered
from tapestry.runtime.prepared.folds.unrolled import unrolled
from tapestry.runtime.prepared.folds.whole import Folding
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.memory import CELLS
from tapestry.runtime.prepared.products.masked_products import (
    MaskedProducts,
    WhereFinite,
    find_masked,
)
from tapestry.runtime.prepared.products.matrices import lie_apart, record_product
from tapestry.runtime.prepared.products.tiles import tiled_operation
from tapestry.runtime.prepared.products.windowed import prepared_slide
from tapestry.runtime.prepared.reads import Slots, read_cells, reads
from tapestry.runtime.prepared.script import Finished, InTurn, Run, Script
from tapestry.runtime.prepared.tapes.members import moves_products
from tapestry.runtime.prepared.views import writer
from tapestry.zspace import Range

_FEW = 1 << 24
"""Products of a sum up to which it pays to compute factors as they are read: of more, matrices are
multiplied.
"""

_BLOCK = 1 << 16
"""Cells of a map that are computed at once, so that what is in between stays in cache."""


def prepared_operation(
    op: loom.OperationOp, library: Library, otherwise: Run | None = None
) -> Run | None:
    """What an operation does, whole; None where it is the executor's to run.

    `otherwise` is how that runs it, for arrays that are not what a fast way is for.
    """
    if not _is_plain(op):
        return None
    masked = None if otherwise is None else _masked(op, library)
    fast = None if masked is None else _finished(op, library, masked)
    if fast is None or otherwise is None:
        return _finished(op, library, None)
    return WhereFinite(fast, lambda: _finished(op, library, None) or otherwise)


def windowed_operation(op: loom.OperationOp, library: Library) -> Run | None:
    """What an operation does that reads through windows, which are not copied; None for others."""
    if not _is_plain(op):
        return None
    monoid = accumulating_monoid_of(op)
    slide = prepared_slide(op, monoid, library)
    if slide is not None:
        plain = _finished(op, library, slide)
        tiled = None if plain is None else tiled_operation(op, monoid, library, plain)
        return tiled or plain
    threads = thread_count() if library.is_numpy else 1
    products = find_contractions(op, monoid) or ()
    computed = any(_is_computed(one.left) or _is_computed(one.right) for one in products)
    apart = bool(products) and all(lie_apart(op, one) for one in products)
    if (computed and op.index.size <= _FEW) or apart:
        plain = prepared_operation(op, library)
        tiled = None if plain is None else tiled_operation(op, monoid, library, plain)
        if tiled is not None:
            return tiled
    multiplied = bool(products) or moves_products(op, monoid)
    fold = None if multiplied else unrolled(op, monoid, threads, library.loops)
    return None if fold is None else _finished(op, library, fold)


def _is_computed(value: SSAValue) -> bool:
    """Whether a factor is more than what is read, in the type that it is multiplied in."""
    if isinstance(value.owner, arith.ExtFOp):
        value = value.owner.input
    return not isinstance(value, BlockArgument)


def _is_plain(op: loom.OperationOp) -> bool:
    return op.partition is None and op.scan_dim is None and not op.index.is_empty


def _finished(op: loom.OperationOp, library: Library, windowed: Run | None) -> Run | None:
    """What an operation does, the state by `windowed` if it is given: in new memory."""
    kept = op.kept_range(op.index)
    stores = [
        writer(projection, tensor_type(out).box, kept)
        for projection, out in zip(op.out_maps, op.outs, strict=True)
    ]
    monoid = accumulating_monoid_of(op)
    products = (find_contractions(op, monoid) or ()) if _masks_results(op) else ()
    script = Script()
    given = [script.argument() for _ in op.operands]
    split = len(op.ins)
    if windowed is None:
        state = _state(script, op, monoid, products, library, given[:split])
    else:
        state = _windowed(script, windowed, given[:split], op)
    if state is not None and op.unwrap_block is not None:
        dtypes = [numpy_dtype(kind) for kind in op.state_types]
        state = _of_dtypes(script, state, dtypes)
        state = _unwrap(script, op, kept, library, state, given[split:])
    if state is None:
        return None
    dtypes = [numpy_dtype(tensor_type(out).element_type) for out in op.outs]
    made = _of_dtypes(script, state, dtypes)
    return script.finish([script.view(s, slot) for s, slot in zip(stores, made, strict=True)])


def _windowed(script: Script, state: Run, ins: Sequence[int], op: loom.OperationOp) -> Slots:
    """A state; a single one is on new memory."""
    count = len(op.state_types)
    return script.calls(state, ins, count, new=count == 1)


def _state(
    script: Script,
    op: loom.OperationOp,
    monoid: Monoid | None,
    products: Sequence[Contraction],
    library: Library,
    ins: Sequence[int],
) -> Slots | None:
    """The state over all kept dimensions, in parts along the first of them if it is large."""
    placed = scattered(script, op, monoid, library, ins)
    if placed is not None:
        return placed
    return _plain_state(script, op, monoid, products, library, ins)


def _masked(op: loom.OperationOp, library: Library) -> Run | None:
    """The state by products of masked factors; None where it is not that."""
    found = None if _masks_results(op) else find_masked(op, accumulating_monoid_of(op))
    if found is None:
        return None
    script = Script()
    read = reads(script, op, op.index, [script.argument() for _ in op.ins], library)
    wanted = [side for one in found for side in (one.contraction.left, one.contraction.right)]
    sides = record_body(script, op.wrap_block, op.index, range(op.index.rank), read, wanted)
    if sides is None:
        return None
    return MaskedProducts(op, found, script.finish(sides), library.multiply)


def _plain_state(
    script: Script,
    op: loom.OperationOp,
    monoid: Monoid | None,
    products: Sequence[Contraction],
    library: Library,
    ins: Sequence[int],
) -> Slots | None:
    """The state, of products of factors that are not masked, or of folded values."""
    held = _held(op, products)
    limit = _BLOCK if monoid is None else CELLS
    dim = next((d for d in op.kept_dims if op.index.shape[d] > 1), None)
    if held <= (2 * limit if monoid is None else limit) or (dim is None and monoid is None):
        return _state_over(script, op, monoid, products, library, op.index, ins)
    if dim is None:
        return None
    step = limit * op.index.shape[dim] // held
    if step == 0 and monoid is not None:
        return None
    axis = op.kept_dims.index(dim)
    before = (slice(None),) * axis
    states: list[tuple[tuple[slice, ...], Finished]] = []
    for part in op.index.split(dim, max(step, 1)):
        own = Script()
        given = [own.argument() for _ in ins]
        state = _state_over(own, op, monoid, products, library, part, given)
        if state is None:
            return None
        low = op.index.start[dim]
        at = (*before, slice(part.start[dim] - low, part.end[dim] - low))
        states.append((at, own.finish(state)))
    shape = op.kept_range(op.index).shape
    kinds = op.state_types if monoid is None else monoid.state
    dtypes = [numpy_dtype(kind) for kind in kinds]
    in_parts = InTurn(tuple(states), shape, tuple(dtypes))
    return script.calls(in_parts, ins, len(dtypes))


def _state_over(
    script: Script,
    op: loom.OperationOp,
    monoid: Monoid | None,
    products: Sequence[Contraction],
    library: Library,
    index: Range,
    ins: Sequence[int],
) -> Slots | None:
    """The state over a range of the index space; `products` are its parts where it is those."""
    wanted = [side for one in products for side in (one.left, one.right)]
    wanted = wanted or loom.yielded(op.wrap_block)
    read = reads(script, op, index, ins, library)
    values = record_body(
        script,
        op.wrap_block,
        index,
        range(index.rank),
        read,
        wanted,
        functions=library.functions,
        loops=library.loops,
        cells=_cells(op, index, wanted) if products else None,
    )
    if values is None:
        return None
    if products:
        mask = inside_mask(op.inside, index)
        outside = None if mask is None else ~mask.squeeze(op.fold_dims)
        made: Slots = []
        for one, left, right in zip(products, values[::2], values[1::2], strict=True):
            by = library.multiply
            product = record_product(script, one, index, op.kept_dims, by, left, right)
            if outside is not None:
                product = script.call(partial(zeroed, outside), (product,), new=True)
            made.append(product)
        return made
    if monoid is None:
        return values
    if op.inside is not None and op.inside.bounds(index) is None:
        return None
    combine = Folding(op, monoid, index, library.multiply).combine()
    return script.calls(combine, values, len(monoid.state))


def _masks_results(op: loom.OperationOp) -> bool:
    """Whether points count for all that is folded, or for none of it."""
    rest = None if op.inside is None else op.inside.within(op.index)
    return rest is None or all(dims.isdisjoint(op.fold_dims) for dims in rest.moving())


def _held(op: loom.OperationOp, products: Sequence[Contraction]) -> int:
    """Cells of the largest array in between, of those that are smaller in parts."""
    varies = dependences(op.wrap_block, [moving_dims(p) for p in op.in_maps])
    shape = op.index.shape
    if products:
        # Parts of a product read the other factor again, all of it.
        first = next((dim for dim in op.kept_dims if shape[dim] > 1), None)
        sides = {side for one in products for side in (one.left, one.right)}
        made = (side for side in sides if first in varies[side] and not _is_read(op, side))
        return max((prod(shape[dim] for dim in varies[side]) for side in made), default=0)
    cells = [prod(shape[dim] for dim in {*dims, *op.fold_dims}) for dims in varies.values()]
    kept = op.kept_range(op.index).size if op.fold_dims else op.index.size
    return max([*cells, kept])


def _cells(op: loom.OperationOp, index: Range, values: Sequence[SSAValue]) -> int:
    """The most cells that are computed of one of some values over a range of the index space."""
    varies = dependences(op.wrap_block, [moving_dims(p) for p in op.in_maps])
    made = (value for value in values if not isinstance(value, BlockArgument))
    return max((prod(index.shape[dim] for dim in varies[value]) for value in made), default=0)


def _is_read(op: loom.OperationOp, factor: SSAValue) -> bool:
    """Whether a factor is cells of an operand where they are in memory."""
    if not isinstance(factor, BlockArgument) or is_half(factor.type):
        return False  # it is computed, or widened
    return op.in_maps[factor.index].is_unit


def _unwrap(
    script: Script,
    op: loom.OperationOp,
    kept: Range,
    library: Library,
    state: Sequence[int],
    extras: Sequence[int],
) -> Slots | None:
    """What unwrap makes of a state."""
    if op.unwrap_block is None:
        return list(state)
    fours = zip(op.extras, op.extra_maps, op.extra_fills, extras, strict=True)
    read = [
        read_cells(script, tensor_type(extra).box, p, fill, kept, slot, library)
        for extra, p, fill, slot in fours
    ]
    block, functions = op.unwrap_block, library.functions
    given, wanted = [*state, *read], loom.yielded(block)
    return record_body(
        script,
        block,
        kept,
        op.kept_dims,
        given,
        wanted,
        functions=functions,
        loops=library.loops,
    )


def _of_dtypes(script: Script, slots: Sequence[int], dtypes: Sequence[np.dtype[Any]]) -> list[int]:
    pairs = zip(slots, dtypes, strict=True)
    return [script.view(partial(in_dtype, dtype), slot) for slot, dtype in pairs]
