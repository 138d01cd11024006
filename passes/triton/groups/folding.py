"""How a block of points is folded: the parts that merge by themselves, then those that are moved.

    state m, l, o    by    max    add, moved to the new m    add, moved to the new m

becomes, for a block of keys in attention (`cascades.py` writes it),

    m' = max(m, the block's largest score)
    l' = l moved from m to m'  +  the sum of exp(score - m')
    o' = o moved from m to m'  +  the sum of exp(score - m') v

A *cluster* of parts merges by itself: a maximum, a count, a value and its position. An *addend* is
a moved part (`tapestry.algebra.moved_parts`): what a point adds to it is one expression over what
the point reads, over its own plain parts, and over the merged ones. Where that expression is a
product of two sides with dimensions of their own, its sum is a contraction (`kernels.products`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, i1
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.bodies import needed_operations
from tapestry.algebra.centred import centred
from tapestry.algebra.monoids import BUILTIN_MONOIDS, Monoid, accumulating, builtin_monoid
from tapestry.algebra.moved_parts import find_moved_parts
from tapestry.dialects import loom
from tapestry.passes.triton.tiles.folds import FoldState

_EQUAL = 1
"""The number of `oeq` among the predicates of `arith.cmpf`."""


@dataclass(frozen=True, eq=False)
class Cluster:
    """Parts of a state that merge by themselves, and how."""

    parts: tuple[int, ...]
    state: FoldState


@dataclass(frozen=True, eq=False)
class Addend:
    """A moved part.

    `move` takes a state and a merged one and yields the part as it is to be added. `body` yields
    what a point adds; it takes what wrap takes, the point's plain parts, the merged plain parts.
    `maxima` are those of the merged parts that are maxima, by the point's own.
    """

    part: int
    move: Block
    body: Block
    maxima: Mapping[SSAValue, SSAValue]

    @property
    def value(self) -> SSAValue:
        """What a point adds."""
        return loom.yielded(self.body)[0]


@dataclass(frozen=True, eq=False)
class Folding:
    """How a map-fold's state folds; the parts of clusters are its *plain* ones."""

    monoid: Monoid
    clusters: tuple[Cluster, ...]
    addends: tuple[Addend, ...]

    @property
    def plain(self) -> tuple[int, ...]:
        """The parts of clusters, in order."""
        return tuple(sorted(part for cluster in self.clusters for part in cluster.parts))

    @staticmethod
    def of(monoid: Monoid, wrap: Block) -> Folding:
        """How states of a monoid fold whose points are wrapped by `wrap`."""
        monoid = accumulating(monoid)
        found = find_moved_parts(monoid) or find_moved_parts(centred(monoid))
        if found is None or len(monoid.state) == 1:
            every = tuple(range(len(monoid.state)))
            return Folding(monoid, (Cluster(every, FoldState(monoid, monoid.state)),), ())
        plain = tuple(sorted(found.plain))
        clusters = [Cluster((part,), _single(monoid, part, found.plain[part])) for part in plain]
        greatest = [p for p in plain if found.plain[p] is arith.MaximumfOp]
        addends = [
            _addend(monoid, wrap, plain, part, move, greatest) for part, move in found.moved.items()
        ]
        return Folding(monoid, tuple(clusters), tuple(addends))


def _single(monoid: Monoid, part: int, primitive: type[Operation]) -> FoldState:
    """One part of a monoid, which merges by one operation."""
    kind = monoid.state[part]
    for name in BUILTIN_MONOIDS:
        known = builtin_monoid(name, (kind,))
        if (
            known is not None
            and known.primitive is primitive
            and known.zero[0] == monoid.zero[part]
        ):
            return FoldState(known, known.state)
    block = Block(arg_types=[kind, kind])
    like = monoid.merged[part].owner
    assert isinstance(like, primitive)
    merged = primitive.create(
        operands=block.args, result_types=[kind], properties=like.properties.copy()
    )
    block.add_ops([merged, loom.YieldOp(*merged.results)])
    name = primitive.name.rsplit(".", 1)[-1]
    single = replace(monoid, name=name, state=(kind,), zero=(monoid.zero[part],), merge=block)
    return FoldState(single, (kind,))


def _addend(
    monoid: Monoid,
    wrap: Block,
    plain: Sequence[int],
    part: int,
    move: Block,
    greatest: Sequence[int],
) -> Addend:
    """What a point adds to a moved part, as one body; `greatest` are the parts that are maxima."""
    kinds = [monoid.state[p] for p in plain]
    block = Block(arg_types=[*(a.type for a in wrap.args), *kinds, *kinds])
    count = len(wrap.args)
    own, merged = block.args[count : count + len(plain)], block.args[count + len(plain) :]
    values: dict[SSAValue, SSAValue] = dict(zip(wrap.args, block.args, strict=False))
    for old, new in values.items():
        new.name_hint = old.name_hint
    wrapped = loom.yielded(wrap)
    _copy(wrap, [wrapped[p] for p in range(len(wrapped)) if p not in plain], values, block)
    state: dict[SSAValue, SSAValue] = dict(zip(move.args[: len(wrapped)], own, strict=False))
    for p, argument in enumerate(move.args[: len(wrapped)]):
        if p in plain and known_number(wrapped[p]) is None:
            state[argument] = own[plain.index(p)]
            continue
        _copy(wrap, [wrapped[p]], values, block)
        state[argument] = values[wrapped[p]]
    for p, argument in zip(plain, merged, strict=True):
        state[move.args[len(wrapped) + p]] = argument
    (value,) = loom.yielded(move)
    _copy(move, [value], state, block)
    block.add_op(loom.YieldOp(state[value]))
    maxima: dict[SSAValue, SSAValue] = {
        own[plain.index(p)]: merged[plain.index(p)] for p in greatest
    }
    return Addend(part, move, block, maxima)


def _copy(
    body: Block, wanted: Sequence[SSAValue], values: dict[SSAValue, SSAValue], into: Block
) -> None:
    """Copy what some values of a body need, without what changes nothing."""
    needed = needed_operations([value for value in wanted if value not in values])
    for op in body.ops:
        if op not in needed or any(result in values for result in op.results):
            continue
        same = _neutral(op, values)
        if same is not None:
            values[op.results[0]] = same
            continue
        copy = op.clone(values)
        into.add_op(copy)
        values.update(zip(op.results, copy.results, strict=True))


def _neutral(op: Operation, values: Mapping[SSAValue, SSAValue]) -> SSAValue | None:
    """The operand that an operation gives back because the others change nothing."""
    if isinstance(op, arith.DivfOp) and known_number(values[op.rhs]) == 1.0:
        return values[op.lhs]
    if isinstance(op, arith.SelectOp):
        holds = _known_comparison(values[op.cond])
        return None if holds is None else values[op.lhs if holds else op.rhs]
    if not isinstance(op, arith.MulfOp | arith.AddfOp):
        return None
    unit = 1.0 if isinstance(op, arith.MulfOp) else 0.0
    sides = [values[operand] for operand in op.operands]
    for side, other in (sides, reversed(sides)):
        if known_number(side) == unit:
            return other
    return None


def _known_comparison(value: SSAValue) -> bool | None:
    """Whether two known floats are equal, where that is what a value says."""
    owner = value.owner
    if not isinstance(owner, arith.CmpfOp) or owner.predicate.value.data != _EQUAL:
        return None
    sides = [known_number(side) for side in owner.operands]
    return None if None in sides else sides[0] == sides[1]


def known_number(value: SSAValue) -> float | None:
    """The float that a value is known to be."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr):
        return owner.value.value.data
    return None


def vanishes(value: SSAValue, known: Mapping[SSAValue, float]) -> bool:
    """Whether a float is zero for given values of some others, whatever finite value the rest has.

    `exp(x - m)` is where x is -inf: so what a masked lane adds needs no mask of its own.
    """
    return _with_known(value, known) == 0.0


_ORDINARY = 2.0**-4
"""What a known weight is at least, unless it is zero: float16 has ten digits more below it."""

_INFINITE = (float("inf"), float("-inf"))


def _with_known(value: SSAValue, known: Mapping[SSAValue, float]) -> float | None:
    """What a float is for given values of some others, None where that depends on the rest."""
    number = known[value] if value in known else known_number(value)
    owner = value.owner
    if number is not None or not isinstance(owner, Operation):
        return number
    sides = [_with_known(operand, known) for operand in owner.operands]
    match owner:
        case arith.MulfOp():
            return 0.0 if 0.0 in sides else None
        case math.ExpOp():
            return 0.0 if sides[0] == float("-inf") else None
        case arith.AddfOp() | arith.SubfOp():
            a, b = sides
            if a in _INFINITE and b not in _INFINITE:
                return a
            return None
        case arith.ExtFOp() | arith.TruncFOp():
            return sides[0]
        case _:
            return None


def greatest_weight(value: SSAValue, maxima: Mapping[SSAValue, SSAValue]) -> float:
    """What a weight is at most, unless it is NaN; infinite of what is none.

    A weight is `exp(x - m)`, for a maximum m of what is x at some point (`maxima` gives it for x),
    a truth value, zero or a number of ordinary size, or a choice or product of such: the greatest
    of many is of ordinary size as well, so that float16 has its digits.
    """
    number = known_number(value)
    if number is not None:
        return abs(number) if number == 0 or abs(number) >= _ORDINARY else inf
    owner = value.owner
    match owner:
        case math.ExpOp() if isinstance(owner.operand.owner, arith.SubfOp):
            distance = owner.operand.owner
            greatest = maxima.get(distance.lhs)
            below = greatest is not None and distance.rhs in (greatest, *_guarded(greatest))
            return 1.0 if below else inf
        case arith.MulfOp():
            sizes = [greatest_weight(one, maxima) for one in (owner.lhs, owner.rhs)]
            return 0.0 if 0.0 in sizes else sizes[0] * sizes[1]
        case arith.SelectOp():
            return max(greatest_weight(one, maxima) for one in (owner.lhs, owner.rhs))
        case arith.ExtFOp():
            return greatest_weight(owner.input, maxima)
        case arith.UIToFPOp() if owner.input.type == i1:
            return 1.0
        case _:
            return inf


def _guarded(greatest: SSAValue) -> list[SSAValue]:
    """What a maximum is replaced by where it is -inf, and nothing is above that, whatever it is."""
    found: list[SSAValue] = []
    for use in greatest.uses:
        choice = use.operation
        if not isinstance(choice, arith.SelectOp) or choice.rhs is not greatest:
            continue
        empty = choice.cond.owner
        is_empty = (
            isinstance(empty, arith.CmpfOp)
            and empty.predicate.value.data == 1
            and empty.lhs is greatest
            and known_number(empty.rhs) == float("-inf")
        )
        if is_empty and known_number(choice.lhs) is not None:
            found.append(choice.result)
    return found
