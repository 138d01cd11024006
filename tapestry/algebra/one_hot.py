"""One-hot folds, seen in bodies and projections and never in names.

    ins(%ids : (i, k) -> (i), %table : (i, k) -> (k)) ... [map, fold] by @add
    wrap (%id: i64, %t: f32) {
      %k = loom.index 1 : i64
      %here = arith.cmpi eq, %id, %k : i64
      %v = arith.select %here, %t, %zero : f32

At most one point along the fold is not the monoid's zero, and an index says which: the fold is the
cell that the index names, and the zero where it names none. That holds for every monoid, because
merging its zero changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i1
from xdsl.ir import Attribute, BlockArgument, SSAValue

from tapestry.algebra.bodies import Dims, dependences, moving_dims
from tapestry.algebra.monoids import Monoid
from tapestry.dialects import loom
from tapestry.zspace import Projection

_EQUAL = 0
"""The predicate of `arith.cmpi eq`."""


@dataclass(frozen=True)
class OneHot:
    """Input `position` is chosen where, for each fold dimension of `places`, it is that value."""

    position: int
    places: dict[int, SSAValue]


def find_one_hot(op: loom.BlockSignature, monoid: Monoid | None) -> OneHot | None:
    """The one-hot fold that an operation is along some of its fold dimensions, or None.

    It is one when wrap yields one cell where the coordinates of those dimensions equal values that
    they do not move, and the monoid's zero elsewhere; the cell is read along each of the dimensions
    in a row of its own, one by one, and no other input moves along them.
    """
    end = op.wrap_block.last_op
    if monoid is None or op.scan_dim is not None or end is None or len(end.operands) != 1:
        return None
    select = end.operands[0].owner
    if not isinstance(select, arith.SelectOp) or not isinstance(select.lhs, BlockArgument):
        return None
    if number_of(select.rhs) != monoid.zero[0] or select.lhs.type != end.operands[0].type:
        return None
    varies = dependences(op.wrap_block, [moving_dims(p) for p in op.in_maps])
    places = _places(select.cond, op, varies)
    position = select.lhs.index
    if not places or not _reads_once(op.in_maps[position], places):
        return None
    others = [p for n, p in enumerate(op.in_maps) if n != position]
    if any(not moving_dims(p).isdisjoint(places) for p in others):
        return None
    return OneHot(position, places)


def _places(
    condition: SSAValue, op: loom.BlockSignature, varies: dict[SSAValue, Dims]
) -> dict[int, SSAValue] | None:
    """For each fold dimension that `condition` compares, with what; None when it does more."""
    owner = condition.owner
    if isinstance(owner, arith.AndIOp) and condition.type == i1:
        left, right = _places(owner.lhs, op, varies), _places(owner.rhs, op, varies)
        if left is None or right is None or not left.keys().isdisjoint(right):
            return None
        found = left | right
    elif isinstance(owner, arith.CmpiOp) and owner.predicate.value.data == _EQUAL:
        found: dict[int, SSAValue] = {}
        for side, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            if isinstance(side.owner, loom.IndexOp) and side.owner.dimension in op.fold_dims:
                found = {side.owner.dimension: other}
    else:
        return None
    if not found or any(not varies[at].isdisjoint(found) for at in found.values()):
        return None
    return found


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
