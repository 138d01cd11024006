"""Recognizing contractions: folds that a matrix unit can do.

A fold that sums products of two factors up, each moving along a map dimension that the other does
not, is a matrix product, whatever it is called:

    wrap (%x: f32, %w: f32) { %p = arith.mulf %x, %w : f32  loom.yield %p : f32 }
    ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1))

Only the body and the projections decide. A factor may be any expression; what it moves along are
the dimensions that its loads and coordinates move along. Map dimensions that both factors move
along are batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import i8, i32
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.bodies import dependences, moving_dims, needed_operations
from tapestry.dialects import loom
from tapestry.passes.triton.kernels.mapfold import MapFold
from tapestry.passes.triton.kernels.products import multiplies, unwidened
from tapestry.passes.triton.tiles.bodies import failing_reads

_MOST_INTEGERS = ((1 << 31) - 1) >> 14
"""So many products of 8-bit integers are summed up in 32 bits, however large they are."""


@dataclass(frozen=True, eq=False)
class Contraction:
    """The factors of a product, as values of the wrap body, and the tile axis of each dimension.

    `axes[d]` is M where only `a` moves, N where only `b` does, B for batches, K for the fold.
    """

    a: SSAValue
    b: SSAValue
    axes: tuple[str, ...]

    def factors(self) -> tuple[SSAValue, SSAValue]:
        """The two factors as a matrix unit takes them: of one element type.

        16-bit floats that the body only widens stay as they are: their products are exact in the
        float32 that a matrix unit accumulates in. So do 8-bit integers, summed up in 32 bits.
        """
        a, b = unwidened(self.a), unwidened(self.b)
        return (a, b) if a.type == b.type else (self.a, self.b)


def find_contraction(fold: MapFold, *, exact: bool = True) -> Contraction | None:
    """How `fold` is a matrix product, None when it is not (or when one side is a vector).

    A row of the domain along K and one side masks a factor: outside it, zero times what the other
    factor holds, which is NaN where that is not finite. So with `exact` it is no matrix product.
    """
    found = find_contractions(fold, exact=exact)
    return found[0] if len(found) == 1 else None


def find_contractions(fold: MapFold, *, exact: bool = True) -> list[Contraction | None]:
    """Per part of the state, how it is a matrix product; None where it is not."""
    if fold.monoid is None or not fold.fold_dims:
        return []
    values = loom.yielded(fold.wrap)
    return [_contraction(fold, part, value, exact=exact) for part, value in enumerate(values)]


def _contraction(fold: MapFold, part: int, value: SSAValue, *, exact: bool) -> Contraction | None:
    """How a part of the state, of the value that is folded into it, is a matrix product."""
    product = value.owner
    if _is_integer(fold, part, product):
        exact = False  # zero times any integer is zero
    elif not _is_float(fold, part, product):
        return None
    assert isinstance(product, arith.MulfOp | arith.MuliOp)
    moves = dependences(fold.wrap, [moving_dims(tensor.projection) for tensor in fold.ins])
    a, b = (
        frozenset(d for d in moves[side] if fold.index.shape[d] != 1)
        for side in (product.lhs, product.rhs)
    )
    axes: list[str] = []
    for d, kind in enumerate(fold.kinds):
        if kind == "fold":
            axes.append("K")
        elif d in a and d not in b:
            axes.append("M")
        else:
            axes.append("N" if d in b and d not in a else "B")
    if "M" not in axes or "N" not in axes:
        return None
    if fold.inside is not None and failing_reads(fold.wrap):
        # A factor does not say which points need what it reads.
        return None
    for dims in () if fold.inside is None else fold.inside.moving():
        # A row masks both factors, one of them, or the result; one along all three masks neither.
        along = {axes[d] for d in dims if fold.index.shape[d] != 1} - {"B"}
        if len(along) == 3 or (exact and "K" in along and along != {"K"}):
            return None
    return Contraction(product.lhs, product.rhs, tuple(axes))


def _is_float(fold: MapFold, part: int, product: Operation | Block) -> bool:
    """Whether a part of the state sums products of floats up that matrix units multiply."""
    monoid = fold.monoid
    assert monoid is not None
    summed = monoid.primitives[part] is arith.AddfOp and monoid.zero[part] == 0.0
    return summed and isinstance(product, arith.MulfOp) and multiplies(product.result.type)


def _is_integer(fold: MapFold, part: int, product: Operation | Block) -> bool:
    """Whether it sums products of 8-bit integers up, so few that no sum is out of bounds.

    Sums of 32 bits wrap; a matrix unit may give the nearest number that it has instead.
    """
    monoid = fold.monoid
    assert monoid is not None
    if monoid.primitives[part] is not arith.AddiOp or not isinstance(product, arith.MuliOp):
        return False
    factors = [unwidened(product.lhs), unwidened(product.rhs)]
    narrow = product.result.type == i32 and all(factor.type == i8 for factor in factors)
    points = prod(fold.index.shape[dim] for dim in fold.fold_dims)
    return narrow and monoid.zero[part] == 0 and points <= _MOST_INTEGERS


def expression(value: SSAValue) -> tuple[Operation, ...]:
    """The operations of a body that a value needs, in order."""
    needed = needed_operations([value])
    block = value.owner.parent_block() if isinstance(value.owner, Operation) else None
    return () if block is None else tuple(op for op in block.ops if op in needed)
