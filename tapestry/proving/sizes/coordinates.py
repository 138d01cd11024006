"""Coordinates in bodies: which are affine, what they are compared with, where they end up.

    %i = loom.index 0 : i64
    %j = loom.index 1 : i64
    %c = arith.constant 128 : i64
    %s = arith.addi %j, %c : i64
    %m = arith.cmpi slt, %i, %s : i64

is one comparison, `d0 - d1 - 128 < 0`: a border that has to keep its place when the axes of `d0`
and `d1` get shorter. Other coordinates are *numbers*: they may be cast to floats, added, scaled and
chosen. Whatever else happens to one (a cast that drops bits, a sum that wraps, a floor) may act
only far from the start of its axis, which then keeps all its cells. A coordinate that is read in a
tensor, where another operation has put it, is such a number too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

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


@dataclass(frozen=True)
class Elsewhere:
    """A coordinate of another operation, which a body reads in a tensor: the line it lies on."""

    line: int


Source = int | Elsewhere
"""What a value may be made of: a coordinate of the body's own dimension, or one it reads."""


@dataclass
class Coordinates:
    """What a body does with coordinates, and the literals it holds besides."""

    comparisons: list[tuple[Use, Use]] = field(default_factory=list[tuple[Use, Use]])
    numbers: list[Use] = field(default_factory=list[Use])
    opaque: set[Source] = field(default_factory=set[Source])
    """Coordinates that go where fewer of them would say less."""
    literals: list[arith.ConstantOp] = field(default_factory=list[arith.ConstantOp])


Extents = Mapping[int, tuple[int, int]]
"""The first and the last coordinate of every index dimension."""

_CASTS = (arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, arith.IndexCastOp)
_UNSIGNED = frozenset({"ult", "ule", "ugt", "uge"})
_FLOATS = (
    arith.SIToFPOp,
    arith.ExtFOp,
    arith.TruncFOp,
    arith.NegfOp,
    arith.AddfOp,
    arith.SubfOp,
    math.ExpOp,
    math.Exp2Op,
    math.SinOp,
    math.CosOp,
)
"""What may be made of a coordinate as a number: it acts alike everywhere along an axis."""


def coordinates_of(
    block: Block, extents: Extents, given: Sequence[frozenset[Source]] = ()
) -> Coordinates:
    """What a body does with its coordinates, which lie in `extents`, and with those it reads.

    `given` says what its arguments are made of.
    """
    reader = _Reader(extents)
    reader.made.update(zip(block.args, given, strict=False))
    for op in block.ops:
        reader.visit(op)
    found = reader.found
    found.literals = [op for op in block.ops if isinstance(op, arith.ConstantOp)]
    found.literals = [op for op in found.literals if _is_literal(op, reader.known)]
    return found


@dataclass
class _Reader:
    """Follows coordinates through a body, one operation after another."""

    extents: Extents
    known: dict[SSAValue, Affine] = field(default_factory=dict[SSAValue, Affine])
    """Values that are affine and do not wrap."""
    made: dict[SSAValue, frozenset[Source]] = field(
        default_factory=dict[SSAValue, frozenset[Source]]
    )
    """The coordinates that other values are made of."""
    found: Coordinates = field(default_factory=Coordinates)

    def visit(self, op: Operation) -> None:
        """One operation, after all that make its operands."""
        if isinstance(op, loom.IndexOp):
            self.known[op.result] = Affine.of({op.dimension: 1})
            return
        if isinstance(op, arith.ConstantOp):
            if isinstance(op.value, IntegerAttr):
                self.known[op.result] = Affine((), op.value.value.data)
            return
        operands = [self.known.get(operand) for operand in op.operands]
        value = _affine(op, operands)
        if value is not None and self._keeps(op, value):
            self.known[op.results[0]] = value
            return
        dims = [self._dims(operand) for operand in op.operands]
        if not any(dims):
            return
        uses = [Use(op, place, value) for place, value in enumerate(operands) if value is not None]
        if isinstance(op, arith.CmpiOp) and len(uses) == 2 and self._is_compared(op, uses):
            self.found.comparisons.append((uses[0], uses[1]))
            return
        self.found.opaque |= self._opaque(op, dims)
        if not isinstance(op, arith.CmpiOp):
            self.found.numbers += [use for use in uses if use.value.terms]
        if not isinstance(op, loom.RandomOp):
            # What is drawn does not grow with the counter that it is drawn with.
            for result in op.results:
                self.made[result] = frozenset[Source]().union(*dims)

    def _dims(self, value: SSAValue) -> frozenset[Source]:
        affine = self.known.get(value)
        return self.made.get(value, frozenset()) if affine is None else frozenset(affine.dims)

    def _opaque(self, op: Operation, dims: list[frozenset[Source]]) -> frozenset[Source]:
        """The dimensions that have to stay because of what an operation does with them."""
        every = frozenset[Source]().union(*dims)
        match op:
            case loom.YieldOp():
                return frozenset()
            case arith.SelectOp():
                return dims[0]
            case arith.MulfOp():
                # A power of a coordinate has more zeros than a short axis has cells.
                return dims[0] & dims[1]
            case arith.DivfOp():
                return dims[1]
            case arith.UIToFPOp():
                affine = self.known.get(op.operands[0])
                return every if affine is None or self._bounds(affine)[0] < 0 else frozenset()
            case loom.RandomOp():
                made = [self.made.get(operand, frozenset[Source]()) for operand in op.operands]
                return frozenset[Source]().union(*made)
            case _:
                return frozenset() if isinstance(op, _FLOATS) else every

    def _bounds(self, value: Affine) -> tuple[int, int]:
        """The least and the largest value over all coordinates."""
        ends = [sorted(c * end for end in self.extents[dim]) for dim, c in value.terms]
        return value.offset + sum(e[0] for e in ends), value.offset + sum(e[1] for e in ends)

    def _keeps(self, op: Operation, value: Affine) -> bool:
        """Whether the result of an operation holds all of its affine value, and does not wrap."""
        kind: Attribute = op.results[0].type
        if isinstance(op, arith.ExtUIOp) and self._bounds(value)[0] < 0:
            return False
        if not isinstance(kind, IndexType | IntegerType):
            return False
        width = 64 if isinstance(kind, IndexType) else kind.bitwidth
        low, high = self._bounds(value)
        half = 1 << (width - 1)
        return -half <= low and high < half

    def _is_compared(self, op: arith.CmpiOp, uses: list[Use]) -> bool:
        """Whether a comparison compares the numbers that its operands stand for."""
        predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
        return predicate not in _UNSIGNED or all(self._bounds(use.value)[0] >= 0 for use in uses)


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
