"""Merges of means, written so that a mean is moved to the merged one.

    (a/na - b/nb) * (nb / n)        is        a/na - (a + b)/n        where n = na + nb

The left side is how the distance of a part's mean from the whole one is derived: of both parts, one
from the other. The right side needs of the other part only what all parts become, so that sums of
squares about a mean are moved parts (`moved_parts.py`): a block of points is folded in two steps,
first its mean, then the squares about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.monoids import Monoid


def centred(monoid: Monoid) -> Monoid:
    """The monoid with each distance between two means as one from the merged mean.

    Equal in exact numbers where counts are not negative; a part that counts nothing adds nothing to
    what is multiplied with its count.
    """
    count = len(monoid.state)
    first, second = monoid.merge.args[:count], monoid.merge.args[count:]
    sums = {
        part: value
        for part, value in enumerate(monoid.merged)
        if isinstance(value.owner, arith.AddfOp)
        and tuple(value.owner.operands) == (first[part], second[part])
    }
    block = Block(arg_types=[a.type for a in monoid.merge.args])
    values: dict[SSAValue, SSAValue] = dict(zip(monoid.merge.args, block.args, strict=True))
    for op in monoid.merge.ops:
        found = _distance(op, first, second, sums) or _distance(op, second, first, sums)
        if found is None:
            copy = op.clone(values)
            block.add_op(copy)
        else:
            own, total, size = found
            mean = arith.DivfOp(values[total], values[size])
            copy = arith.SubfOp(values[own], mean.result)
            block.add_ops([mean, copy])
        values.update(zip(op.results, copy.results, strict=True))
    return replace(monoid, merge=block)


def _distance(
    op: Operation,
    own: Sequence[SSAValue],
    other: Sequence[SSAValue],
    sums: Mapping[int, SSAValue],
) -> tuple[SSAValue, SSAValue, SSAValue] | None:
    """An own mean, the merged sum and the merged count, if an operation is their distance."""
    if not isinstance(op, arith.MulfOp):
        return None
    between, share = op.lhs.owner, op.rhs.owner
    if not isinstance(between, arith.SubfOp) or not isinstance(share, arith.DivfOp):
        return None
    a, b = between.lhs.owner, between.rhs.owner
    if not isinstance(a, arith.DivfOp) or not isinstance(b, arith.DivfOp):
        return None
    for total in sums:
        for size in sums:
            mine = (a.lhs, _counted(a.rhs)) == (own[total], own[size])
            theirs = (b.lhs, _counted(b.rhs)) == (other[total], other[size])
            shared = (share.lhs, _counted(share.rhs)) == (other[size], sums[size])
            if mine and theirs and shared:
                return between.lhs, sums[total], share.rhs
    return None


def _counted(value: SSAValue) -> SSAValue:
    """A count, seen through what makes one of none: `select(n == 0, 1, n)`."""
    owner = value.owner
    if not isinstance(owner, arith.SelectOp) or not isinstance(owner.cond.owner, arith.CmpfOp):
        return value
    return owner.rhs if owner.cond.owner.lhs is owner.rhs else value
