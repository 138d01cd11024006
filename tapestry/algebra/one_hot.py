"""One-hot folds, seen in bodies and projections and never in names.

    ins(%ids : (i, k) -> (i), %table : (i, k) -> (k)) ... [map, fold] by @add
    wrap (%id: i64, %t: f32) {
      %k = loom.index 1 : i64
      %here = arith.cmpi eq, %id, %k : i64
      %v = arith.select %here, %t, %zero : f32

At most one point along the fold is not the monoid's zero, and an index says which: the fold is what
the body yields at that point, and the zero where the index names none. That holds for every monoid,
because merging its zero changes nothing. What is chosen may be computed, as the logarithm of a
probability is in a cross entropy, and scaled or chosen again afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i1
from xdsl.ir import Attribute, SSAValue

from tapestry.algebra.bodies import Dims, dependences, moving_dims
from tapestry.algebra.led import Led, find_led
from tapestry.algebra.monoids import Monoid
from tapestry.algebra.reductions import find_reduction
from tapestry.dialects import loom
from tapestry.zspace import Projection

_MANY = 32
"""Places from which to go to one takes less than to look at all, point by point."""

_EQUAL = 0
"""The predicate of `arith.cmpi eq`."""


@dataclass(frozen=True)
class OneHot:
    """The point that is not zero: its coordinate along each dimension of `places` is that value.

    `equal` are the comparisons that hold there and nowhere else, `reads` the inputs that move along
    those dimensions.
    """

    places: dict[int, SSAValue]
    equal: tuple[arith.CmpiOp, ...]
    reads: tuple[int, ...]


def find_one_hot(op: loom.BlockSignature, monoid: Monoid | None) -> OneHot | None:
    """The one-hot fold that an operation is along some of its fold dimensions, or None.

    It is one when wrap yields the monoid's zero wherever the coordinates of those dimensions are
    not values that they do not move; cells are read along each of the dimensions in a row of its
    own, one by one.
    """
    end = op.wrap_block.last_op
    if monoid is None or op.scan_dim is not None or end is None or len(end.operands) != 1:
        return None
    varies = dependences(op.wrap_block, [moving_dims(p) for p in op.in_maps])
    found = _Search(op.fold_dims, varies, monoid.zero[0]).points(end.operands[0])
    if found is None:
        return None
    places = {dim: at for dim, at, _ in found}
    moving = [n for n, p in enumerate(op.in_maps) if not moving_dims(p).isdisjoint(places)]
    if any(op.in_fills[n] is not None or not _reads_once(op.in_maps[n], places) for n in moving):
        return None
    return OneHot(places, tuple(equal for _, _, equal in found), tuple(moving))


def find_scatter(
    op: loom.OperationOp, monoid: Monoid | None
) -> tuple[int, tuple[SSAValue, ...]] | None:
    """The kept dimension along which each point that is folded counts at one place, and per part of
    the state the value that says which; None where there is none.

    It is there when wrap yields the monoid's zero wherever the coordinate is not a value that
    varies along folded dimensions alone, and no input is read along the dimension. The value may
    vary along other kept dimensions as well where there are `_MANY` places. Of several parts each
    is merged by an operation of its own: their places may be different ones; or some go with one of
    them (`led`), and have its place.
    """
    end = op.wrap_block.last_op
    if monoid is None or op.scan_dim is not None or end is None:
        return None
    led = find_led(monoid)
    if not led and not all(_is_scattered(monoid, part) for part in range(len(monoid.state))):
        return None
    moving = [moving_dims(p) for p in op.in_maps]
    varies = dependences(op.wrap_block, moving)
    parts: list[dict[int, SSAValue]] = []
    for value, zero in zip(end.operands, monoid.zero, strict=True):
        found = _Search(op.kept_dims, varies, zero).points(value)
        parts.append(
            {
                dim: at
                for dim, at, _ in found or ()
                if varies[at].issubset(op.fold_dims) or op.index.shape[dim] >= _MANY
            }
        )
    for dim in parts[0] if parts else ():
        read = any(dim in dims for dims in moving)
        if read or not all(dim in places for places in parts):
            continue
        at = tuple(places[dim] for places in parts)
        zero = monoid.zero
        if all(_leads(op, end.operands, dim, at, zero[one.part], one, varies) for one in led):
            return dim, at
    return None


def _leads(
    op: loom.OperationOp,
    values: Sequence[SSAValue],
    dim: int,
    places: Sequence[SSAValue],
    zero: complex,
    led: Led,
    varies: dict[SSAValue, Dims],
) -> bool:
    """Whether what leads is the same along kept dimensions, at the place of all that it leads."""
    if len({places[part] for part in led.parts}) > 1:
        return False
    there = at_its_place(values[led.part], dim, places[led.part], zero)
    return varies[there].issubset(op.fold_dims)


def at_its_place(value: SSAValue, dim: int, place: SSAValue, zero: complex) -> SSAValue:
    """What a value is where a coordinate is `place`: without a choice that this decides."""
    owner = value.owner
    if not isinstance(owner, arith.SelectOp) or number_of(owner.rhs) != zero:
        return value
    compared = owner.cond.owner
    if not isinstance(compared, arith.CmpiOp) or compared.predicate.value.data != _EQUAL:
        return value
    sides = (compared.lhs, compared.rhs)
    here = [isinstance(one.owner, loom.IndexOp) and one.owner.dimension == dim for one in sides]
    return owner.lhs if any(here) and place in sides else value


def _is_scattered(monoid: Monoid, part: int) -> bool:
    """Whether NumPy folds a part of a state by itself, at places; zeros have signs."""
    primitive = monoid.primitives[part]
    reduction = find_reduction(primitive, monoid.state[part])
    return reduction is not None and (reduction.signs is None or primitive in _ORDERED)


_ORDERED = (arith.MaximumfOp, arith.MinimumfOp)
"""What folds floats by an order that has the zeros of both signs, and NaN at one end."""


_Point = tuple[int, SSAValue, arith.CmpiOp]
"""A dimension, the value that its coordinate is compared with, and the comparison."""


@dataclass(frozen=True)
class _Search:
    """Looks for what makes a value the zero of a monoid at all points but one."""

    dims: Sequence[int]
    varies: dict[SSAValue, Dims]
    zero: complex

    def points(self, value: SSAValue) -> list[_Point] | None:
        """The comparisons without which a value is zero; None when there are none."""
        owner = value.owner
        match owner:
            case arith.SelectOp():
                if number_of(owner.rhs) == self.zero:
                    return self.compared(owner.cond) or self.points(owner.lhs)
                return self.points(owner.rhs) if number_of(owner.lhs) == self.zero else None
            case arith.MulfOp() if self.zero == 0:
                for side, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
                    if math.isfinite(number_of(other) or math.inf):
                        return self.points(side)
            case arith.AddfOp() if self.zero == 0:
                for side, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
                    if number_of(other) == 0:
                        return self.points(side)
            case arith.NegfOp() | arith.ExtFOp() | arith.TruncFOp() if self.zero == 0:
                return self.points(owner.operands[0])
            case _:
                pass
        return None

    def compared(self, condition: SSAValue) -> list[_Point] | None:
        """The dimensions that `condition` compares, each with what; None when it compares none."""
        owner = condition.owner
        if isinstance(owner, arith.AndIOp) and condition.type == i1:
            left, right = self.compared(owner.lhs), self.compared(owner.rhs)
            both = [*(left or []), *(right or [])]
            dims = {dim for dim, _, _ in both}
            # A dimension that is compared twice is at one place only where both agree.
            apart = len(dims) == len(both)
            settled = all(self.varies[at].isdisjoint(dims) for _, at, _ in both)
            return both if both and apart and settled else None
        if isinstance(owner, arith.CmpiOp) and owner.predicate.value.data == _EQUAL:
            for side, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
                if isinstance(side.owner, loom.IndexOp) and side.owner.dimension in self.dims:
                    dim = side.owner.dimension
                    return [(dim, other, owner)] if dim not in self.varies[other] else None
        return None


def _reads_once(projection: Projection, dims: dict[int, SSAValue]) -> bool:
    """Whether each of some dimensions has a row of its own, which it moves along cell by cell."""
    if not projection.is_unit:
        return False
    for dim in dims:
        rows = [terms for terms in projection.map.terms if any(d == dim for _, d in terms)]
        if rows != [((1, dim),)]:
            return False
    return True


def number_of(value: SSAValue) -> int | float | None:
    """The number that a value of a body is by definition, None when it is computed."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp):
        return None
    held: Attribute = owner.value
    return held.value.data if isinstance(held, IntegerAttr | FloatAttr) else None
