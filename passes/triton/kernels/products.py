"""Sums of products as contractions: which factors are the two sides, and what is neither's.

    sum over c of (q[i, c] * 0.125) * k[j, c]      sides q and k, scale 0.125

A side is the factors that move along dimensions which the other side does not move along. Where a
side is a 16-bit float that the body only widens to float32, or an 8-bit integer widened to 32 bits,
matrix units multiply it as it is; with a scale on it they could not, and so the finished sum is
scaled instead, as any sum may be reassociated. Float64 is multiplied and summed up in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, f32, f64, i8, i32
from xdsl.ir import Attribute, SSAValue

from tapestry.algebra.bodies import Dims
from tapestry.algebra.dtypes import is_half
from tapestry.passes.triton.tiles.builder import TileBuilder, constant_value


@dataclass(frozen=True, eq=False)
class Product:
    """Two sides whose product a value is, each some factors, and dimensions that they move along.

    `left_dims` and `right_dims` are those that only one side moves along, folded ones apart.
    `scale` are further factors, the same at every point.
    """

    left: tuple[SSAValue, ...]
    right: tuple[SSAValue, ...]
    left_dims: Dims
    right_dims: Dims
    batch: Dims
    is_dot: bool = True
    """Whether matrix units multiply numbers of the type."""
    scale: tuple[SSAValue, ...] = ()

    @property
    def joined(self) -> Product:
        """The same product, its scale one of the left side's factors."""
        return replace(self, left=(*self.left, *self.scale), scale=())

    @property
    def multiplies_halves(self) -> bool:
        """Whether a side is a 16-bit float that is only widened, and only without the scale."""
        alone = [side[0] for side in (self.left, self.right) if len(side) == 1]
        return bool(self.scale) and any(unwidened(one) is not one for one in alone)

    def turned(self) -> Product:
        """The same product, its sides exchanged."""
        return replace(
            self,
            left=self.right,
            right=self.left,
            left_dims=self.right_dims,
            right_dims=self.left_dims,
        )


def find_product(value: SSAValue, varies: Mapping[SSAValue, Dims], folded: Dims) -> Product | None:
    """A value as a product of two sides that each move along dimensions which the other does not.

    Factors that share such dimensions are one side; those that have none go with the left one.
    """
    if not isinstance(value.owner, arith.MulfOp):
        return None
    factors = _factors(value)
    summed = [varies[f] for f in factors if not folded.isdisjoint(varies[f])]
    if len(summed) < 2:
        return None
    batch = summed[0].intersection(*summed[1:]) - folded
    sides: list[tuple[list[SSAValue], Dims]] = []
    free: list[SSAValue] = []
    scale: list[SSAValue] = []
    for factor in factors:
        outer = varies[factor] - folded - batch
        if not outer:
            (free if varies[factor] else scale).append(factor)
            continue
        joined, dims = [factor], outer
        for side in [side for side in sides if not side[1].isdisjoint(dims)]:
            sides.remove(side)
            joined, dims = side[0] + joined, dims | side[1]
        sides.append((joined, dims))
    if len(sides) != 2:
        return None
    (left, left_dims), (right, right_dims) = sides
    if not all(any(not folded.isdisjoint(varies[f]) for f in side) for side in (left, right)):
        return None
    is_dot = multiplies(value.type)
    if not isinstance(value.type, Float32Type | Float64Type):
        # Narrower floats are rounded after each factor.
        free, scale = [*free, *scale], []
    left = [*left, *free]
    return Product(tuple(left), tuple(right), left_dims, right_dims, batch, is_dot, tuple(scale))


def joint_factors(tiles: TileBuilder, factors: Sequence[SSAValue]) -> list[SSAValue]:
    """Factors of one type, those of them that are known joined to one."""
    known = 1.0
    others: list[SSAValue] = []
    for factor in factors:
        constant = constant_value(factor)
        if constant is None:
            others.append(factor)
        else:
            known *= float(constant)
    return [tiles.constant(known, factors[0].type), *others] if known != 1.0 else others


def unwidened(factor: SSAValue) -> SSAValue:
    """What a factor is the widening of to the type in which matrix units sum it up, or the factor.

    That is a 16-bit float widened to float32, or an 8-bit integer to 32 bits.
    """
    owner = factor.owner
    if isinstance(owner, arith.ExtFOp) and factor.type == f32 and is_half(owner.input.type):
        return owner.input
    if isinstance(owner, arith.ExtSIOp) and factor.type == i32 and owner.input.type == i8:
        return owner.input
    return factor


def multiplies(kind: Attribute) -> bool:
    """Whether matrix units multiply numbers of a type."""
    return isinstance(kind, Float32Type | Float64Type) or is_half(kind)


def summed_type(kind: Attribute) -> Attribute:
    """The type that matrix units sum products of numbers of a type up in."""
    if kind == i8:
        return i32
    return f64 if isinstance(kind, Float64Type) else f32


def _factors(value: SSAValue) -> list[SSAValue]:
    """The factors of a product of products."""
    owner = value.owner
    if isinstance(owner, arith.MulfOp):
        return [*_factors(owner.lhs), *_factors(owner.rhs)]
    return [value]
