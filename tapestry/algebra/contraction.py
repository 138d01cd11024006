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


def find_contraction(op: loom.BlockSignature, monoid: Monoid | None) -> Contraction | None:
    """The contraction that an operation is, or None.

    It is one when its monoid is a single addition, its body yields one product, every fold
    dimension is in both factors, and the factors' map dimensions differ on both sides or on one.
    """
    if monoid is None or monoid.primitive not in _SUMS or not op.fold_dims:
        return None
    terminator = op.wrap_block.last_op
    if terminator is None or len(terminator.operands) != 1:
        return None
    varies = dependences(op.wrap_block, [moving_dims(p) for p in op.in_maps])
    return contraction_of(terminator.operands[0], varies, op.map_dims, op.fold_dims)


def contraction_of(
    value: SSAValue, varies: Mapping[SSAValue, Dims], kept: Sequence[int], inner: Sequence[int]
) -> Contraction | None:
    """The contraction that the sum of a value along `inner` is, or None.

    `varies` has the dimensions that values of its body vary along.
    """
    product = value.owner
    if not isinstance(product, arith.MulfOp | arith.MuliOp | complex_dialect.MulOp):
        return None
    left, right = varies[product.lhs], varies[product.rhs]
    if not (left.issuperset(inner) and right.issuperset(inner)):
        return None
    rows = tuple(d for d in kept if d in left and d not in right)
    columns = tuple(d for d in kept if d in right and d not in left)
    if not rows and not columns:
        return None
    batch = tuple(d for d in kept if d in left and d in right)
    return Contraction(product.lhs, product.rhs, batch, rows, columns, tuple(inner))
