"""Polynomials as operations on one float type, each operation once.

v*exp(x - m)      %d = arith.subf %x, %m   %e = math.exp %d   %p = arith.mulf %v, %e
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction
from math import log

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.derivation.model import LN2
from tapestry.algebra.derivation.polynomials import Monomial, Polynomial, constant, symbol
from tapestry.algebra.literals import float_attr

Values = Callable[[str], SSAValue]
"""What the symbols of a polynomial are, called only for those that it has."""

_LN2 = constant(1) / symbol(LN2)


class Writer:
    """Appends operations on one float type to a block, each of them once."""

    def __init__(self, block: Block, kind: AnyFloat) -> None:
        self.block = block
        self.kind = kind
        self.truths: AbstractSet[str] = frozenset()
        self._made: dict[Hashable, SSAValue] = {}

    def add(self, op: Operation) -> SSAValue:
        """What an operation computes, which is appended unless an equal one was."""
        properties = frozenset(op.properties.items())
        key = (op.name, tuple(op.operands), tuple(op.result_types), properties)
        if key not in self._made:
            self.block.add_op(op)
            self._made[key] = op.results[0]
        return self._made[key]

    def number(self, value: float | Fraction) -> SSAValue:
        """A constant."""
        return self.add(arith.ConstantOp(float_attr(float(value), self.kind)))

    def where(self, condition: SSAValue, then: SSAValue, other: SSAValue) -> SSAValue:
        """One of two values."""
        return self.add(arith.SelectOp(condition, then, other))

    def equals(self, value: SSAValue, number: float) -> SSAValue:
        """Whether a value is a number."""
        return self.add(arith.CmpfOp(value, self.number(number), "oeq"))

    def polynomial(self, value: Polynomial, symbols: Values, far: Values | None = None) -> SSAValue:
        """A polynomial's value; `far` is what symbols are in exponents, if that is different."""
        total: SSAValue | None = None
        ordered = sorted(value.ordered, key=lambda term: term[1] < 0)
        for monomial, factor in ordered:
            # The first term takes its sign along; later ones are added or subtracted.
            size = factor if total is None else abs(factor)
            term = self._term(monomial, size, symbols, far or symbols)
            if total is None:
                total = term
            else:
                join = arith.SubfOp if factor < 0 else arith.AddfOp
                total = self.add(join(total, term))
        return self.number(0) if total is None else total

    def _term(self, monomial: Monomial, factor: Fraction, near: Values, far: Values) -> SSAValue:
        """Parts of states come first: multiplied by what is zero, nothing overflows."""
        names = sorted(monomial.powers, key=lambda power: (not power[0].startswith("["), power))
        chosen = [near(name) for name, _ in names if name in self.truths]
        above = [n for n, power in names for _ in range(power) if n not in self.truths]
        below = [n for n, power in names for _ in range(-power)]
        product: SSAValue | None = None
        for value in map(near, above):
            product = value if product is None else self.add(arith.MulfOp(product, value))
        if monomial.exponent is not None:
            value = self._exponential(monomial.exponent, far)
            product = value if product is None else self.add(arith.MulfOp(product, value))
        if product is None or abs(factor) != 1:
            number = self.number(factor)
            product = number if product is None else self.add(arith.MulfOp(product, number))
        elif factor == -1:
            product = self.add(arith.NegfOp(product))
        for value in map(near, below):
            product = self.add(arith.DivfOp(product, value))
        for condition in chosen:
            product = self.where(condition, product, self.number(0))
        return product

    def _exponential(self, exponent: Polynomial, far: Values) -> SSAValue:
        """e to some power, or two to some power where that is how it was written."""
        if all(monomial.power(LN2) == 1 for monomial, _ in exponent.terms):
            return self.add(math.Exp2Op(self.polynomial(exponent * _LN2, far)))

        def with_ln2(name: str) -> SSAValue:
            return self.number(log(2)) if name == LN2 else far(name)

        return self.add(math.ExpOp(self.polynomial(exponent, with_ln2)))

    def copy(self, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """What a body yields for some arguments."""
        values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
        *body, end = block.ops
        for op in body:
            values[op.results[0]] = self.add(op.clone(values))
        return [values[value] for value in end.operands]
