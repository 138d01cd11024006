"""Contractions, seen in bodies and projections and never in names.

A fold by addition whose body is a product of two factors, each of which misses a map dimension that
the other has, is a contraction: matrix products, their batched and transposed forms, and whatever
else has that shape. `dependences` tells which index dimensions each value of a body varies along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from tapestry.algebra.monoids import Monoid
from tapestry.dialects import loom
from tapestry.zspace import Projection

Dims = frozenset[int]


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


def moving_dims(projection: Projection) -> Dims:
    """The index dimensions along which what a projection selects moves."""
    matrix = projection.map.matrix
    return frozenset(d for d in range(projection.inputs) if any(row[d] for row in matrix))


def dependences(block: Block, arguments: Sequence[Dims]) -> dict[SSAValue, Dims]:
    """For every value of a body, the index dimensions it varies along."""
    varies: dict[SSAValue, Dims] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        dims: Dims = frozenset()
        if isinstance(op, loom.IndexOp):
            dims = frozenset((op.dimension,))
        for operand in op.operands:
            dims |= varies[operand]
        for result in op.results:
            varies[result] = dims
    return varies


def wrap_dependences(op: loom.BlockSignature) -> dict[SSAValue, Dims]:
    """`dependences` of the wrap body, from the input projections."""
    return dependences(op.wrap_block, [moving_dims(p) for p in op.in_maps])


def find_contraction(op: loom.BlockSignature, monoid: Monoid | None) -> Contraction | None:
    """The contraction that an operation is, or None.

    It is one when its monoid is a single addition, its body yields one product, every fold
    dimension is in both factors, and the factors' map dimensions differ on both sides or on one.
    """
    if monoid is None or monoid.primitive not in (arith.AddfOp, arith.AddiOp):
        return None
    terminator = op.wrap_block.last_op
    if terminator is None or len(terminator.operands) != 1:
        return None
    product = terminator.operands[0].owner
    if not isinstance(product, arith.MulfOp | arith.MuliOp):
        return None
    varies = wrap_dependences(op)
    left, right = varies[product.lhs], varies[product.rhs]
    inner = op.fold_dims
    if not (left.issuperset(inner) and right.issuperset(inner)):
        return None
    rows = tuple(d for d in op.map_dims if d in left and d not in right)
    columns = tuple(d for d in op.map_dims if d in right and d not in left)
    if not rows and not columns:
        return None
    batch = tuple(d for d in op.map_dims if d in left and d in right)
    return Contraction(product.lhs, product.rhs, batch, rows, columns, inner)
