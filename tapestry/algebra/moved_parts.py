"""Monoids that merge many states at once, seen in their merges and never in names.

    merge (%m: f32, %l: f32, %m_1: f32, %l_1: f32) {
      %new = arith.maximumf %m, %m_1 : f32
      ... %e = exp(%m - %new)   %e_1 = exp(%m_1 - %new) ...
      loom.yield %new, %l * %e + %l_1 * %e_1 : f32, f32

Here `%m` merges by itself, it is *plain*; `%l` is *moved*, and added: what it becomes depends on
its own state and on what the plain parts of all become. So any number of states merge in two steps:
the plain parts first, then the sum of the others, each moved at once. A block of points is folded
so, and where a moved part is a product, its sum is a contraction.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.monoids import Monoid
from tapestry.dialects import loom


@dataclass(frozen=True, eq=False)
class MovedParts:
    """How a state's parts merge: by one operation each, or moved and added.

    The block of a moved part takes all parts of one state, then all parts of the merged state (of
    which it uses plain ones), and yields the part as it is to be added.
    """

    plain: Mapping[int, type[Operation]]
    moved: Mapping[int, Block]


def find_moved_parts(monoid: Monoid) -> MovedParts | None:
    """The plain and the moved parts of a monoid's state; None where some part is neither.

    A part is moved when its merge adds two values that are computed alike: one of the first state,
    the other of the second, and both of merged plain parts.
    """
    count = len(monoid.state)
    first, second = monoid.merge.args[:count], monoid.merge.args[count:]
    plain = plain_parts(monoid)
    merged: dict[SSAValue, Hashable] = {monoid.merged[p]: ("merged", p) for p in plain}
    moved: dict[int, Block] = {}
    for part, value in enumerate(monoid.merged):
        if part in plain:
            continue
        if not isinstance(value.owner, arith.AddfOp):
            return None
        sides = zip(value.owner.operands, (first, second), strict=True)
        keys = [
            written(side, merged | {own: ("own", n) for n, own in enumerate(args)})
            for side, args in sides
        ]
        if keys[0] is None or keys[0] != keys[1]:
            return None
        moved[part] = _block(monoid, value.owner.lhs, {monoid.merged[p]: p for p in plain})
    return MovedParts(plain, moved)


def plain_parts(monoid: Monoid) -> dict[int, type[Operation]]:
    """The parts that merge by themselves, each by one operation."""
    count = len(monoid.state)
    plain: dict[int, type[Operation]] = {}
    for part, value in enumerate(monoid.merged):
        owner, pair = value.owner, (monoid.merge.args[part], monoid.merge.args[count + part])
        if isinstance(owner, Operation) and tuple(owner.operands) == pair:
            plain[part] = type(owner)
    return plain


def written(value: SSAValue, known: Mapping[SSAValue, Hashable]) -> Hashable | None:
    """How a value is computed of known ones; None when it is computed of others."""
    if value in known:
        return known[value]
    owner = value.owner
    if not isinstance(owner, Operation):
        return None
    operands = tuple(written(operand, known) for operand in owner.operands)
    if None in operands:
        return None
    return (owner.name, frozenset(owner.properties.items()), value.type, operands)


def _block(monoid: Monoid, value: SSAValue, plain: Mapping[SSAValue, int]) -> Block:
    """The part of a merge that computes `value` of the first state and of merged plain parts."""
    count = len(monoid.state)
    block = Block(arg_types=[*monoid.state, *monoid.state])
    values: dict[SSAValue, SSAValue] = dict(
        zip(monoid.merge.args[:count], block.args, strict=False)
    )
    values |= {merged: block.args[count + part] for merged, part in plain.items()}
    return yielding(block, value, values)


def yielding(block: Block, value: SSAValue, values: dict[SSAValue, SSAValue]) -> Block:
    """The block, at whose end `value` is computed again, of what stands for others in `values`."""

    def copied(wanted: SSAValue) -> SSAValue:
        if wanted not in values:
            owner = wanted.owner
            assert isinstance(owner, Operation)
            for operand in owner.operands:
                copied(operand)
            copy = owner.clone(values)
            block.add_op(copy)
            values[wanted] = copy.results[0]
        return values[wanted]

    block.add_op(loom.YieldOp(copied(value)))
    return block
