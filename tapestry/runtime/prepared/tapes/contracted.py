"""Sums of products on a tape: matrix products.

    slot = record_product(recorder, scope, contraction, left, right)

Points outside the member's domain must add nothing. Where the domain mixes what is folded with
dimensions of one factor, that factor is zero outside; as zero times infinity is NaN, the other one
has to be finite, which is looked at when it is there: if it is not, each row takes the points that
count out of both.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tapestry.algebra.contraction import Contraction
from tapestry.runtime.arrays.matrices import guarded_product, unfolded
from tapestry.runtime.prepared.cells import masked
from tapestry.runtime.prepared.products.matrices import matrix_side
from tapestry.runtime.prepared.tapes.meanings import Arranged, Masked, Product
from tapestry.runtime.prepared.tapes.recording import Recorder, Scope


def record_product(
    recorder: Recorder, scope: Scope, contraction: Contraction, left: int, right: int
) -> int | None:
    """The slot of the sum of products of two factors along the folded dimensions.

    None where the domain mixes dimensions of both factors with what is folded.
    """
    roles = ("batch", "rows", "columns", "inner")
    own = replace(contraction, **{r: scope.of_group(getattr(contraction, r)) for r in roles})
    index, tape, inside = scope.index, recorder.tape, scope.inside
    masked = frozenset[int]() if inside is None else frozenset[int]().union(*inside.moving())
    dims = ({*own.batch, *own.rows, *own.inner}, {*own.batch, *own.inner, *own.columns})
    within = not masked.isdisjoint(own.inner)
    on = next((side for side in (0, 1) if masked <= dims[side]), None) if within else None
    if within and on is None:
        return None
    sides: list[int] = []
    arranged = ((own.rows, own.inner), (own.inner, own.columns))
    for side, (factor, (rows, columns)) in enumerate(zip((left, right), arranged, strict=True)):
        if side == on:
            factor = record_masked(recorder, scope, factor, 0)
        sides.append(_side(recorder, scope, factor, own.batch, rows, columns))
    if on is None:
        made = tape.call(np.matmul, sides, "product", Product())
    else:
        assert inside is not None
        which = _side(recorder, scope, recorder.mask(inside), own.batch, *arranged[on])
        meaning, ins = Product(finite=1 - on), [*sides, which]
        made = tape.call(partial(guarded_product, on), ins, ("guarded", on), meaning)
    order = [*own.batch, *own.rows, *own.columns]
    missing = [dim for dim in range(index.rank) if dim not in order]
    axes = [*order, *missing]
    apart = (*(index.shape[dim] for dim in order), *(1 for _ in missing))
    back = tuple(axes.index(dim) for dim in range(index.rank))
    result = tape.view(partial(unfolded, apart, back), made, (apart, back))
    return result if within else record_masked(recorder, scope, result, 0)


def record_masked(recorder: Recorder, scope: Scope, slot: int, zero: complex) -> int:
    """The slot of a value that is `zero` at points outside the member's domain."""
    inside = scope.inside
    if inside is None:
        return slot
    meaning = None if isinstance(zero, complex) else Masked(zero)
    key = ("masked", repr(zero))
    return recorder.tape.call(partial(masked, zero), (recorder.mask(inside), slot), key, meaning)


def _side(
    recorder: Recorder,
    scope: Scope,
    factor: int,
    batch: tuple[int, ...],
    rows: tuple[int, ...],
    columns: tuple[int, ...],
) -> int:
    """A factor as a matrix, or a stack of them, in the dtype that it is multiplied in."""
    arrange = matrix_side(scope.index, batch, rows, columns)
    key = ("side", batch, rows, columns, scope.index.shape)
    wide = recorder.view(np.asarray, factor, "axes")
    return recorder.tape.call(arrange, (wide,), key, Arranged())
