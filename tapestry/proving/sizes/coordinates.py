"""Coordinates in bodies: which are affine, what they are compared with, where they end up.

    %i = loom.index 0 : i64
    %j = loom.index 1 : i64
    %c = arith.constant 128 : i64
    %s = arith.addi %j, %c : i64
    %m = arith.cmpi slt, %i, %s : i64

is one comparison, `d0 - d1 - 128 < 0`: a border that has to keep its place when the axes of `d0`
and `d1` get shorter. Coordinates that reach anything but a comparison are *numbers*; those that go
through arithmetic that is not affine say nothing about their axes, which then keep all their cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from tapestry.dialects import loom


@dataclass(frozen=True)
class Affine:
    """`sum(coefficient * d) + offset` over index dimensions; `terms` are sorted, none is zero."""

    terms: tuple[tuple[int, int], ...]
    """(dimension, coefficient)"""
    offset: int = 0

    @staticmethod
    def of(terms: Mapping[int, int], offset: int = 0) -> Affine:
        """From coefficients by dimension."""
        return Affine(tuple(sorted((d, c) for d, c in terms.items() if c)), offset)

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """`self + factor * other`."""
        terms = dict(self.terms)
        for dim, c in other.terms:
            terms[dim] = terms.get(dim, 0) + factor * c
        return Affine.of(terms, self.offset + factor * other.offset)

    def times(self, factor: int) -> Affine:
        """`factor * self`."""
        return Affine((), 0).plus(self, factor)

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(dim for dim, _ in self.terms)

    @property
    def is_plain(self) -> bool:
        """Whether every coordinate counts as it is, none multiplied."""
        return all(abs(c) == 1 for _, c in self.terms)


@dataclass(frozen=True)
class Use:
    """An operand of a body that holds an affine coordinate."""

    op: Operation
    operand: int
    value: Affine


@dataclass
class Coordinates:
    """What a body does with coordinates, and the literals it holds besides."""

    comparisons: list[tuple[Use, Use]] = field(default_factory=list[tuple[Use, Use]])
    numbers: list[Use] = field(default_factory=list[Use])
    opaque: set[int] = field(default_factory=set[int])
    """Dimensions whose coordinates take part in arithmetic that is not affine."""
    literals: list[arith.ConstantOp] = field(default_factory=list[arith.ConstantOp])


_CASTS = (arith.ExtSIOp, arith.TruncIOp, arith.IndexCastOp)
_OPAQUE = (
    arith.MuliOp,
    arith.DivSIOp,
    arith.DivUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.ShLIOp,
    arith.ShRSIOp,
    arith.ShRUIOp,
    arith.MinSIOp,
    arith.MaxSIOp,
    arith.MinUIOp,
    arith.MaxUIOp,
)
_FLOAT_COMPARISONS = (arith.CmpfOp, arith.MaximumfOp, arith.MinimumfOp)


def coordinates_of(block: Block) -> Coordinates:
    """What a body does with its coordinates."""
    found = Coordinates()
    known: dict[SSAValue, Affine] = {}
    for op in block.ops:
        if isinstance(op, loom.IndexOp):
            known[op.result] = Affine.of({op.dimension: 1})
        elif isinstance(op, arith.ConstantOp):
            value = op.value
            if isinstance(value, IntegerAttr):
                known[op.result] = Affine((), value.value.data)
        else:
            _visit(op, known, found)
    found.literals = [op for op in block.ops if isinstance(op, arith.ConstantOp)]
    found.literals = [op for op in found.literals if _is_literal(op, known)]
    return found


def _visit(op: Operation, known: dict[SSAValue, Affine], found: Coordinates) -> None:
    operands = [known.get(operand) for operand in op.operands]
    moving = any(value is not None and value.terms for value in operands)
    value = _affine(op, operands)
    if value is not None:
        known[op.results[0]] = value
        return
    if not moving:
        return
    uses = [Use(op, place, value) for place, value in enumerate(operands) if value is not None]
    if isinstance(op, arith.CmpiOp) and len(uses) == 2:
        found.comparisons.append((uses[0], uses[1]))
    elif isinstance(op, (*_OPAQUE, arith.CmpiOp)) or _is_compared(op):
        found.opaque.update(dim for use in uses for dim in use.value.dims)
    else:
        found.numbers += [use for use in uses if use.value.terms]


def _affine(op: Operation, operands: list[Affine | None]) -> Affine | None:
    """The affine value that an operation makes, if it makes one of affine values."""
    if isinstance(op, _CASTS):
        return operands[0]
    if not isinstance(op, arith.AddiOp | arith.SubiOp | arith.MuliOp):
        return None
    lhs, rhs = operands
    if lhs is None or rhs is None:
        return None
    if isinstance(op, arith.MuliOp):
        if lhs.terms and rhs.terms:
            return None
        return rhs.times(lhs.offset) if rhs.terms else lhs.times(rhs.offset)
    return lhs.plus(rhs, 1 if isinstance(op, arith.AddiOp) else -1)


def _is_compared(op: Operation) -> bool:
    """Whether an operation makes a float of a coordinate that is then compared."""
    return isinstance(op, arith.SIToFPOp | arith.UIToFPOp) and any(
        isinstance(use.operation, _FLOAT_COMPARISONS) for use in op.results[0].uses
    )


def _is_literal(op: arith.ConstantOp, known: Mapping[SSAValue, Affine]) -> bool:
    """Whether a constant is used as anything but a part of an affine coordinate."""
    for use in op.result.uses:
        others = [known.get(x) for x in (*use.operation.operands, *use.operation.results)]
        if not any(value is not None and value.terms for value in others):
            return True
    return False


def materialize(value: Affine, like: SSAValue, before: Operation) -> SSAValue:
    """Operations that compute an affine value in the type of `like`, put in front of `before`."""
    block = before.parent
    assert block is not None

    def add(op: Operation) -> SSAValue:
        block.insert_op_before(op, before)
        return op.results[0]

    total = add(arith.ConstantOp(IntegerAttr(value.offset, i64)))
    for dim, c in value.terms:
        term = add(loom.IndexOp(dim))
        if c != 1:
            term = add(arith.MuliOp(term, add(arith.ConstantOp(IntegerAttr(c, i64)))))
        total = add(arith.AddiOp(total, term))
    kind = like.type
    if kind == i64:
        return total
    if isinstance(kind, IndexType):
        return add(arith.IndexCastOp(total, kind))
    return add(arith.TruncIOp(total, kind))  # pyright: ignore[reportArgumentType]
