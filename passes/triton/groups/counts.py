"""Counts of what a fold has passed: they follow from where its walk is, and ones are not added.

    for k_start in range(0, 25088, BLOCK_K):              n = n + tl.sum(tl.where(k < 25088, 1, 0))
        n = tl.minimum(k_start + BLOCK_K, 25088)          is not written, nor carried

Moments about a mean have such a part, by which sums of two blocks are weighted. Where the walk is
done, it is the length of the axis.
"""

from __future__ import annotations

from math import isfinite

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from tapestry.algebra.dtypes import is_integer
from tapestry.dialects import loom
from tapestry.passes.triton.groups.members import Members
from tapestry.passes.triton.groups.roles import Fold
from tapestry.passes.triton.indexing.positions import Axis
from tapestry.passes.triton.tiles.builder import TileBuilder, constant_value

_SUMS = (arith.AddfOp, arith.AddiOp)


def counted_parts(members: Members, number: int, fold: Fold, axis: Axis) -> dict[int, float]:
    """The parts of a fold's state to which every point adds one number, and that number.

    Legal where all points of the axis are folded, in order, from the first one on: where the fold
    has no domain, and its programs do not share the walk.
    """
    if axis.block is None or members.domain(number) or members.writer.part is not None:
        return {}
    found: dict[int, float] = {}
    added = loom.yielded(fold.member.fold.wrap)
    for cluster in fold.folding.clusters:
        known = constant_value(added[cluster.parts[0]])
        if cluster.state.monoid.primitive not in _SUMS or known is None:
            continue
        if cluster.state.monoid.zero == (0,) and isfinite(known):
            found[cluster.parts[0]] = known.item()
    return found


def total(tiles: TileBuilder, points: SSAValue, number: float, element: Attribute) -> SSAValue:
    """What so many points add up to that add a number each."""
    counted = tiles.cast(points, element)
    if number == 1:
        return counted
    kind = arith.MuliOp if is_integer(element) else arith.MulfOp
    return tiles.value(kind(*tiles.pair(counted, tiles.constant(number, element))))
