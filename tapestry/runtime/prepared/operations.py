"""An operation as a function of whole arrays.

A map is its body; a contraction is a matrix product; another fold is its body and what combines its
values; then comes unwrap. What is long is computed in parts along its first dimension, so that what
is in between stays small. A scan, what is split, and a fold that is too large for one part have no
function here: the numpy executor runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Block, SSAValue

from tapestry.algebra.bodies import dependences, moving_dims
from tapestry.algebra.contraction import Contraction, find_contractions
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.literals import number_in
from tapestry.algebra.monoids import Monoid, accumulating_monoid_of
from tapestry.algebra.one_hot import find_scatter
from tapestry.dialects import loom
from tapestry.dialects.loom import Fill, tensor_type
from tapestry.runtime.arithmetic import cell_constant
from tapestry.runtime.blocks import BlockCells
from tapestry.runtime.domains import inside_mask
from tapestry.runtime.executor import Array
from tapestry.runtime.gathering import clipped_cells
from tapestry.runtime.prepared.bodies import prepared_body
from tapestry.runtime.prepared.folds import Folding
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.products import largest_factor, matrix_product
from tapestry.runtime.prepared.scatters import Scatter
from tapestry.runtime.prepared.sources import bits
from tapestry.runtime.prepared.views import reader, writer
from tapestry.zspace import Projection, Range

Run: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""The outputs of an operation from the arrays of its operands."""

_Read: TypeAlias = Callable[[Array], Any]
_State: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""The folded state over the kept dimensions from the arrays of the inputs."""

CELLS = 1 << 22
"""Cells of any array in between that are held at once."""

_BLOCK = 1 << 16
"""Cells of a map that are computed at once, so that what is in between stays in cache."""


def prepared_operation(op: loom.OperationOp, library: Library) -> Run | None:
    """What an operation does, whole; None where it is the executor's to run."""
    if op.partition is not None or op.scan_dim is not None or op.index.is_empty:
        return None
    kept = op.kept_range(op.index)
    stores = [
        writer(projection, tensor_type(out).box, kept)
        for projection, out in zip(op.out_maps, op.outs, strict=True)
    ]
    monoid = accumulating_monoid_of(op)
    products = (find_contractions(op, monoid) or ()) if _masks_results(op) else ()
    state = _state(op, monoid, products, library)
    unwrap = _unwrap(op, kept, library, spare=len(products) > 0)
    if state is None or (op.unwrap_block is not None and unwrap is None):
        return None
    split = len(op.ins)
    dtypes = [numpy_dtype(tensor_type(out).element_type) for out in op.outs]
    state_dtypes = [numpy_dtype(kind) for kind in op.state_types]

    def run(operands: Sequence[Array]) -> list[Array]:
        values = state(operands[:split])
        if unwrap is not None:
            values = unwrap(_of_dtypes(values, state_dtypes), operands[split:])
        return [s(v) for s, v in zip(stores, _of_dtypes(values, dtypes), strict=True)]

    return run


def _state(
    op: loom.OperationOp,
    monoid: Monoid | None,
    products: Sequence[Contraction],
    library: Library,
) -> _State | None:
    """The state over all kept dimensions, in parts along the first of them if it is large."""
    placed = _scattered(op, monoid)
    if placed is not None:
        return placed
    held = _held(op, products)
    limit = _BLOCK if monoid is None else CELLS
    dim = next((d for d in op.kept_dims if op.index.shape[d] > 1), None)
    if held <= (2 * limit if monoid is None else limit) or (dim is None and monoid is None):
        return _state_over(op, monoid, products, library, op.index)
    if dim is None:
        return None
    step = limit * op.index.shape[dim] // held
    if step == 0 and monoid is not None:
        return None
    axis = op.kept_dims.index(dim)
    before = (slice(None),) * axis
    states: list[tuple[tuple[slice, ...], _State]] = []
    for part in op.index.split(dim, max(step, 1)):
        state = _state_over(op, monoid, products, library, part)
        if state is None:
            return None
        low = op.index.start[dim]
        states.append(((*before, slice(part.start[dim] - low, part.end[dim] - low)), state))
    shape = op.kept_range(op.index).shape
    kinds = op.state_types if monoid is None else monoid.state
    dtypes = [numpy_dtype(kind) for kind in kinds]

    def in_parts(ins: Sequence[Array]) -> list[Array]:
        whole = [np.empty(shape, dtype) for dtype in dtypes]
        for at, state in states:
            for out, value in zip(whole, state(ins), strict=True):
                out[at] = value
        return whole

    return in_parts


def _state_over(
    op: loom.OperationOp,
    monoid: Monoid | None,
    products: Sequence[Contraction],
    library: Library,
    index: Range,
) -> _State | None:
    """The state over a range of the index space; `products` are its parts where it is those."""
    wanted = [side for one in products for side in (one.left, one.right)] or None
    body = prepared_body(
        op.wrap_block, index, range(index.rank), wanted, functions=library.functions
    )
    if body is None:
        return None
    reads = _reads(op, index)
    if products:
        makers = [matrix_product(one, index, op.kept_dims, library.multiply) for one in products]

        mask = inside_mask(op.inside, index)
        outside = None if mask is None else ~mask.squeeze(op.fold_dims)

        def multiplied(ins: Sequence[Array]) -> list[Array]:
            sides = body([read(array) for read, array in zip(reads, ins, strict=True)])
            pairs = zip(makers, sides[::2], sides[1::2], strict=True)
            made = [by(left, right) for by, left, right in pairs]
            return made if outside is None else [_zero(one, outside) for one in made]

        return multiplied
    if monoid is None:
        return lambda ins: body([read(array) for read, array in zip(reads, ins, strict=True)])
    if op.inside is not None and op.inside.bounds(index) is None:
        return None
    combine = Folding(op, monoid, index, library.multiply).combine()
    return lambda ins: combine(body([read(array) for read, array in zip(reads, ins, strict=True)]))


def _masks_results(op: loom.OperationOp) -> bool:
    """Whether points count for all that is folded, or for none of it."""
    rest = None if op.inside is None else op.inside.within(op.index)
    return rest is None or all(dims.isdisjoint(op.fold_dims) for dims in rest.moving())


def _zero(state: Array, outside: Array) -> Array:
    """A state of new memory, zero where points do not count."""
    shape = np.broadcast_shapes(state.shape, outside.shape)
    if state.shape != shape:
        state = np.broadcast_to(state, shape).copy()
    np.copyto(state, 0, where=outside)
    return state


def _scattered(op: loom.OperationOp, monoid: Monoid | None) -> _State | None:
    """A fold whose points count at one place each: they are folded by that."""
    found = None if op.inside is not None else find_scatter(op, monoid)
    if found is None or monoid is None or op.index.size // op.index.shape[found[0]] > CELLS:
        return None
    dim, at = found
    low = op.index.start[dim]
    ends = [low + 1 if d == dim else end for d, end in enumerate(op.index.end)]
    index = Range(op.index.start, tuple(ends))
    scatter = Scatter.of(op, monoid, dim)
    wanted = [*_yielded(op.wrap_block), at]
    body = prepared_body(op.wrap_block, index, range(index.rank), wanted, places={dim: at})
    if scatter is None or body is None:
        return None
    reads = _reads(op, index)

    def placed(ins: Sequence[Array]) -> list[Array]:
        values, places = body([read(array) for read, array in zip(reads, ins, strict=True)])
        return [scatter(values, places)]

    return placed


def _yielded(block: Block) -> Sequence[SSAValue]:
    end = block.last_op
    return () if end is None else tuple(end.operands)


def _held(op: loom.OperationOp, products: Sequence[Contraction]) -> int:
    """Cells of the largest array in between."""
    if products:
        return max(largest_factor(one, op.index) for one in products)
    varies = dependences(op.wrap_block, [moving_dims(p) for p in op.in_maps])
    shape = op.index.shape
    cells = [prod(shape[dim] for dim in {*dims, *op.fold_dims}) for dims in varies.values()]
    kept = op.kept_range(op.index).size if op.fold_dims else op.index.size
    return max([*cells, kept])


def _unwrap(
    op: loom.OperationOp, kept: Range, library: Library, *, spare: bool
) -> Callable[..., list[Array]] | None:
    """What unwrap makes of a state, which it may write to if it is `spare`."""
    if op.unwrap_block is None:
        return None
    count = len(op.state_types) if spare else 0
    body = prepared_body(
        op.unwrap_block, kept, op.kept_dims, spare=count, functions=library.functions
    )
    if body is None:
        return None
    triples = zip(op.extras, op.extra_maps, op.extra_fills, strict=True)
    reads = [_read(tensor_type(extra).box, p, fill, kept) for extra, p, fill in triples]

    def unwrap(state: Sequence[Array], extras: Sequence[Array]) -> list[Array]:
        read = [read(array) for read, array in zip(reads, extras, strict=True)]
        return body([*state, *read])

    return unwrap


def _reads(op: loom.OperationOp, index: Range) -> list[_Read]:
    needed = inside_mask(op.inside, index)
    triples = zip(op.ins, op.in_maps, op.in_fills, strict=True)
    return [_read(tensor_type(value).box, p, fill, index, needed) for value, p, fill in triples]


def _read(
    box: Range,
    projection: Projection,
    fill: Fill | None,
    index: Range,
    needed: Array | None = None,
) -> _Read:
    """What a body takes of a tensor over `box`; `needed` as of `BlockCells`."""
    outside: Array | None = None
    if fill is not None:
        number = number_in(fill)
        assert number is not None
        outside = bits(cell_constant(number, fill.type))
    if not projection.is_unit:
        boxes = BlockCells(np.empty(0), box, projection, index, outside, needed)
        return lambda array: boxes.of(bits(array))
    if outside is None or box.contains_range(projection.apply_range(index)):
        view = reader(projection, box, index)
        return lambda array: view(bits(array))
    return lambda array: clipped_cells(bits(array), box, projection, index, outside)


def _of_dtypes(values: Sequence[Array], dtypes: Sequence[np.dtype[Any]]) -> list[Array]:
    pairs = zip(values, dtypes, strict=True)
    return [value if value.dtype == dtype else value.astype(dtype) for value, dtype in pairs]
