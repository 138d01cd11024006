"""Comparisons of coordinates as affine rows, and what one of them says about another.

    %i = loom.index 0    %j = loom.index 1    %seen = arith.cmpi sge, %i, %j

holds where `d0 - d1 >= 0`: it is the row `(1, -1) + 0`. Where that row fails, `-d0 + d1 - 1 >= 0`
holds, so any row that is larger does too:

    >>> causal = Row((1, -1), 0)
    >>> Fact(causal, False).decides(Row((-1, 1), 3)), Fact(causal, False).decides(Row((1, -1), 2))
    (True, None)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, bf16, f16, f32, f64, i1
from xdsl.ir import Attribute

from tapestry.algebra.dtypes import integer_width, is_integer
from tapestry.dialects import loom
from tapestry.passes.loom.derivation.terms import Term
from tapestry.zspace import AffineMap, Domain, Range


@dataclass(frozen=True)
class Row:
    """An affine function of the coordinates; as a condition, that it is not negative."""

    coefficients: tuple[int, ...]
    constant: int

    def plus(self, other: Row, factor: int = 1) -> Row:
        """This row and another one times a number."""
        pairs = zip(self.coefficients, other.coefficients, strict=True)
        return Row(tuple(a + factor * b for a, b in pairs), self.constant + factor * other.constant)

    def add(self, number: int) -> Row:
        """This row and a number."""
        return Row(self.coefficients, self.constant + number)

    @property
    def negated(self) -> Row:
        """The condition that this one fails."""
        return Row(tuple(-c for c in self.coefficients), -self.constant - 1)

    def through(self, points: AffineMap) -> Row:
        """The row of the points that a map takes here."""
        composed = self._map.compose(points)
        return Row(composed.matrix[0], composed.offset[0])

    def over(self, dims: Sequence[int], rank: int) -> Row:
        """The row over more dimensions, of which these are its own."""
        factor = dict(zip(dims, self.coefficients, strict=True))
        return Row(tuple(factor.get(dim, 0) for dim in range(rank)), self.constant)

    def bounds(self, index: Range) -> tuple[int, int]:
        """The least and the largest value over a range that has points."""
        image = self._map.image(index)
        return image.start[0], image.end[0] - 1

    @property
    def _map(self) -> AffineMap:
        return AffineMap((self.coefficients,), (self.constant,), len(self.coefficients))


@dataclass(frozen=True)
class Fact:
    """That a row, as a condition, holds or fails."""

    row: Row
    holds: bool

    @property
    def known(self) -> Row:
        """The row that holds, whichever."""
        return self.row if self.holds else self.row.negated

    def decides(self, other: Row) -> bool | None:
        """Whether another condition holds or fails where this is so; None where it may do both."""
        known = self.known
        if other.coefficients == known.coefficients:
            return True if other.constant >= known.constant else None
        if other.negated.coefficients == known.coefficients:
            return False if other.negated.constant >= known.constant else None
        return None


def rows_of(domain: Domain | None) -> list[Row]:
    """The rows of a domain."""
    if domain is None:
        return []
    return [Row(*row) for row in zip(domain.rows.matrix, domain.rows.offset, strict=True)]


def domain_of(rows: Sequence[Row], index: Range) -> Domain | None:
    """The points where some rows hold, without those rows that hold all over an index space."""
    if not rows:
        return None
    found = Domain.of([r.coefficients for r in rows], [r.constant for r in rows], index.rank)
    return found if index.is_empty else found.within(index)


def condition_rows(term: Term, index: Range) -> tuple[list[Row], bool] | None:
    """The rows that hold together exactly where a comparison does, or, if False, where it fails.

    None for what is no comparison of affine functions of the coordinates.
    """
    if not isinstance(term.op, arith.CmpiOp | arith.CmpfOp):
        return None
    names = _INTEGERS if isinstance(term.op, arith.CmpiOp) else _FLOATS
    name = names.get(term.op.predicate.value.data)
    sides = [affine(arg, index) for arg in term.args]
    if name is None or sides[0] is None or sides[1] is None:
        return None
    more = sides[0].plus(sides[1], -1)
    match name:
        case "eq" | "ne":
            return [more, more.negated.add(1)], name == "eq"
        case "ge" | "lt":
            return [more], name == "ge"
        case _:
            return [more.add(-1)], name == "gt"


_INTEGERS = {0: "eq", 1: "ne", 2: "lt", 3: "le", 4: "gt", 5: "ge"}
_FLOATS = {1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 6: "ne"} | {
    8: "eq",
    9: "gt",
    10: "ge",
    11: "lt",
    12: "le",
    13: "ne",
}
"""Predicates by their numbers, as far as they order signed integers; whole numbers are no NaN."""


def affine(term: Term, index: Range) -> Row | None:
    """A whole number as an affine function of the coordinates, if it is one all over their range.

    None also where a step on the way may leave its type: integers wrap, floats round.
    """
    row = _affine(term, index)
    if row is None or index.is_empty:
        return None
    low, high = row.bounds(index)
    reach = _reach(term.kind)
    return row if -reach <= low and high < reach else None


def _reach(kind: Attribute) -> int:
    """Below which number a type holds all whole ones, and their negatives."""
    if isinstance(kind, AnyFloat):
        return _EXACT.get(kind, 0)
    return 1 << (integer_width(kind) - 1) if is_integer(kind) else 0


_EXACT: dict[Attribute, int] = {f64: 1 << 53, f32: 1 << 24, f16: 1 << 11, bf16: 1 << 8}


def _affine(term: Term, index: Range) -> Row | None:
    match term.op:
        case loom.IndexOp():
            return Row(tuple(int(d == term.op.dimension) for d in range(index.rank)), 0)
        case arith.ConstantOp(value=IntegerAttr() | FloatAttr() as number) if term.kind != i1:
            whole = float(number.value.data).is_integer()
            return Row((0,) * index.rank, int(number.value.data)) if whole else None
        case (
            arith.ExtSIOp()
            | arith.TruncIOp()
            | arith.IndexCastOp()
            | arith.SIToFPOp()
            | arith.ExtFOp()
            | arith.TruncFOp()
        ):
            return affine(term.args[0], index) if term.args[0].kind != i1 else None
        case arith.AddiOp() | arith.SubiOp() | arith.AddfOp() | arith.SubfOp():
            left, right = affine(term.args[0], index), affine(term.args[1], index)
            if left is None or right is None:
                return None
            return left.plus(right, 1 if isinstance(term.op, arith.AddiOp | arith.AddfOp) else -1)
        case arith.MuliOp() | arith.MulfOp():
            return _product(affine(term.args[0], index), affine(term.args[1], index))
        case _:
            return None


def _product(left: Row | None, right: Row | None) -> Row | None:
    """The product of two functions of which one is a number."""
    if left is None or right is None:
        return None
    if any(left.coefficients):
        left, right = right, left
    if any(left.coefficients):
        return None
    return Row((0,) * len(right.coefficients), 0).plus(right, left.constant)
