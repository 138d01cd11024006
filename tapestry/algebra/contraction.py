"""Contractions, seen in bodies and projections and never in names.

A fold by addition whose body is a product of two factors, each of which misses a map dimension that
the other has, is a contraction: matrix products, their batched and transposed forms, and whatever
else has that shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects import complex as complex_dialect
from xdsl.ir import SSAValue

from tapestry.algebra.bodies import Dims, dependences, moving_dims
from tapestry.algebra.monoids import Monoid
from tapestry.algebra.moved_parts import find_moved_parts
from tapestry.dialects import loom

_SUMS = (arith.AddfOp, arith.AddiOp, complex_dialect.AddOp)


@dataclass(frozen=True)
class Contraction:
    """`FOLD(add) of left * right`, with the index dimensions in their roles.

    `batch` dimensions are in both factors and the result, `rows` only in `left`, `columns` only in
    `right`, `inner` dimensions are folded and in both.
    """

    left: SSAValue
    right: SSAValue
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    inner: tuple[int, ...]


def find_contractions(
    op: loom.BlockSignature, monoid: Monoid | None
) -> tuple[Contraction, ...] | None:
    """The contractions that an operation is, one for each part of its state, or None.

    It is that when each part merges by a single addition, its body yields a product for each, every
    fold dimension is in both factors, and the factors' map dimensions differ on both sides or on
    one. Beside such a product there may be others whose factors have the same dimensions: the
    squares of rows that are multiplied.
    """
    terminator = op.wrap_block.last_op
    if monoid is None or terminator is None or not op.fold_dims:
        return None
    parts = find_moved_parts(monoid)
    if parts is None or any(parts.plain.get(n) not in _SUMS for n in range(len(monoid.state))):
        return None
    varies = dependences(op.wrap_block, [moving_dims(p) for p in op.in_maps])
    found: list[Contraction] = []
    for value in terminator.operands:
        product = _sum_of_products(value, varies, op.map_dims, op.fold_dims)
        if product is None:
            return None
        found.append(product)
    return tuple(found) if any(one.rows or one.columns for one in found) else None


def contraction_of(
    value: SSAValue, varies: Mapping[SSAValue, Dims], kept: Sequence[int], inner: Sequence[int]
) -> Contraction | None:
    """The contraction that the sum of a value along `inner` is, or None.

    `varies` has the dimensions that values of its body vary along.
    """
    found = _sum_of_products(value, varies, kept, inner)
    return found if found is not None and (found.rows or found.columns) else None


def _sum_of_products(
    value: SSAValue, varies: Mapping[SSAValue, Dims], kept: Sequence[int], inner: Sequence[int]
) -> Contraction | None:
    """The sum of a value along `inner`, where it is a product of what varies along all of that."""
    product = value.owner
    if not isinstance(product, arith.MulfOp | arith.MuliOp | complex_dialect.MulOp):
        return None
    left, right = varies[product.lhs], varies[product.rhs]
    if not (left.issuperset(inner) and right.issuperset(inner)):
        return None
    rows = tuple(d for d in kept if d in left and d not in right)
    columns = tuple(d for d in kept if d in right and d not in left)
    batch = tuple(d for d in kept if d in left and d in right)
    return Contraction(product.lhs, product.rhs, batch, rows, columns, tuple(inner))
