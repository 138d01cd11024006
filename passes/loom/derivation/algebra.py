"""The bodies of a chain as exponential polynomials: what holds no running value is one symbol.

    exp(x * scale + mask - m) / l * v        is        exp(x1 - m) * l^-1 * x2

with `x1` for `x * scale + mask`: masks, scales, biases and casts of cells are of no concern to the
algebra. What is computed of results alone, a logarithm of a sum say, is one symbol too.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, isfinite

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, bf16, f16, f32, f64, i1
from xdsl.ir import Attribute, Block

from tapestry.algebra.derivation.model import LN2, Fold, NotDerivableError, mean_of
from tapestry.algebra.derivation.polynomials import (
    OutsideClassError,
    Polynomial,
    constant,
    exp,
    symbol,
)
from tapestry.passes.loom.derivation.chain import Chain
from tapestry.passes.loom.derivation.terms import Term

_NEAR_ONE = 2.0**-18
"""How far a factor times the number of points may be from one for the product to be a mean."""

_COMPUTING = (f16, bf16, f32, f64)
"""Types between which a cast is, up to rounding, the identity; narrower ones quantize."""

_SHORT = (f16, bf16)
"""Types in which operations round what the algebra computes in a longer one."""

_RANGES: dict[Attribute, int] = {f16: 0, bf16: 1, f32: 1, f64: 2}
"""Floats of a higher number hold larger ones, and smaller ones."""


class Algebra:
    """The symbols of a chain's terms, and its folds as the derivation takes them.

    Raises `NotDerivableError` where a body is not of the class.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.cells: dict[str, Term] = {}
        self.fixed: dict[str, Term] = {}
        self.finished: dict[str, Term] = {}
        self.truths: set[str] = set()
        self.unrounded: set[Term] = set()
        self.folds: list[Fold] = []
        self._names: dict[Term, str] = {}
        self._centred: set[Term] = set()
        self._sums: set[str] = set()
        index = chain.last.index
        self._points = 1
        for dim in chain.folded:
            self._points *= index.shape[dim]
        for member in chain.members:
            monoid = member.op.monoid_name
            assert monoid is not None
            try:
                body = self._folded(member.body)
            except OutsideClassError as error:
                raise NotDerivableError(str(error), member.name) from error
            self.folds.append(Fold(member.name, monoid, body))
            plain = uncast(member.body)
            if body == symbol(self._names.get(plain, "")):
                if monoid in ("max", "min"):
                    self._centred.add(plain)
                elif monoid == "add" and chain.last.inside is None:
                    self._centred.add(plain)
                    self._sums.add(member.name)

    def _folded(self, body: Term) -> Polynomial:
        """What a member folds; integers and truths are no concern of the algebra."""
        if isinstance(body.kind, AnyFloat):
            return self.polynomial(body)
        if body.running:
            raise OutsideClassError(f"a fold of {body.kind} does not depend on earlier ones")
        return symbol(self._name(body, "x"))

    def polynomial(self, term: Term) -> Polynomial:
        """A term of the chain as a polynomial; raises `OutsideClassError`."""
        if term.result is not None:
            return symbol(term.result)
        if not term.running:
            return self._still(term)
        if self._varies(term):
            return self._operation(term)
        if isinstance(term.op, arith.SelectOp):
            return self._atom(term)
        try:
            return self._operation(term)
        except OutsideClassError:
            return self._atom(term)

    def _varies(self, term: Term) -> bool:
        return not term.moving.isdisjoint(self.chain.folded)

    def _still(self, term: Term) -> Polynomial:
        """What holds no running value: a number, or one symbol, or an affine one of a centre."""
        number = _number(term)
        if number is not None:
            return constant(number)
        if self._varies(term) and not self._centred.isdisjoint(term.below()):
            plain = uncast(term)
            if plain not in self._centred and _is_affine(plain):
                return self._operation(plain)
        return symbol(self._name(uncast(term), "x" if self._varies(term) else "c"))

    def _atom(self, term: Term) -> Polynomial:
        """What is computed of results in a way that the algebra does not look into."""
        return symbol(self._name(uncast(term), "g"))

    def _name(self, term: Term, letter: str) -> str:
        if term not in self._names:
            table = {"x": self.cells, "c": self.fixed, "g": self.finished}[letter]
            self._names[term] = f"{letter}{len(table) + 1}"
            table[self._names[term]] = term
        return self._names[term]

    def _operation(self, term: Term) -> Polynomial:
        """An operation of the class, on polynomials."""
        match term.op:
            case arith.AddfOp():
                return self._arg(term, 0) + self._arg(term, 1)
            case arith.SubfOp():
                return self._arg(term, 0) - self._arg(term, 1)
            case arith.NegfOp():
                return -self._arg(term, 0)
            case arith.MulfOp():
                if term.kind in _SHORT and all(map(self._varies, term.args)):
                    return self._rounded(term)
                return self._product(self._arg(term, 0), self._arg(term, 1))
            case arith.DivfOp():
                return self._product(self._arg(term, 0), self._inverse(term.args[1]))
            case math.ExpOp():
                return exp(self._arg(term, 0))
            case math.Exp2Op():
                return exp(self._arg(term, 0) * symbol(LN2))
            case math.PowFOp():
                return self._power(term)
            case math.FPowIOp():
                return self._power(term)
            case math.FmaOp():
                product = self._product(self._arg(term, 0), self._arg(term, 1))
                return product + self._arg(term, 2)
            case arith.ExtFOp() if term.kind in _COMPUTING:
                return self._arg(term, 0)
            case arith.TruncFOp() if term.kind in _COMPUTING:
                return self._rounded(term)
            case arith.SelectOp():
                return self._selected(*term.args)
            case arith.MaximumfOp() | arith.MinimumfOp() if _neutral(term) is not None:
                return self._arg(term, 1 - (_neutral(term) or 0))
            case _:
                name = "a value" if term.op is None else term.op.name
                raise OutsideClassError(f"{name} of a running value is no exponential polynomial")

    def _arg(self, term: Term, at: int) -> Polynomial:
        return self.polynomial(term.args[at])

    def _product(self, left: Polynomial, right: Polynomial) -> Polynomial:
        """A product, in which a sum over the number of points is a mean."""
        product = left * right
        for name in product.symbols & self._sums:
            factor = (product / symbol(name)).number
            if factor is not None and abs(factor * self._points - 1) <= _NEAR_ONE:
                return symbol(mean_of(name))
        return product

    def _rounded(self, term: Term) -> Polynomial:
        """A running value in a shorter type: what cells alone make of it stays in that type.

        Rounding commutes with a factor up to rounding, if the cells without it fit the type: it is
        of the same range, or theirs already. Elsewhere the value is not rounded (`unrounded`), but
        for a factor that all points have in common, which nothing multiplies at a point.
        """
        parted = self._cells_apart(term)
        if parted is not None:
            cells, factor = parted
            return self._still(cells) * factor
        if self._varies(term):
            self.unrounded.add(term)
        if isinstance(term.op, arith.MulfOp):
            return self._product(self._arg(term, 0), self._arg(term, 1))
        return self._arg(term, 0)

    def _cells_apart(self, term: Term) -> tuple[Term, Polynomial] | None:
        """A running value as one of cells alone and a factor that all points have in common."""
        if not self._varies(term):
            return None
        if not term.running:
            return term, constant(1)
        match term.op:
            case arith.MulfOp():
                sides = [self._cells_apart(arg) for arg in term.args]
                for parted, other in zip(sides, reversed(term.args), strict=True):
                    if parted is not None and not self._varies(other):
                        return parted[0], parted[1] * self.polynomial(other)
                if sides[0] is None or sides[1] is None or not _RANGES.get(term.kind):
                    return None
                cells = self.chain.terms.apply(term.op, [sides[0][0], sides[1][0]])
                return cells, sides[0][1] * sides[1][1]
            case arith.DivfOp() if not self._varies(term.args[1]):
                parted = self._cells_apart(term.args[0])
                return (
                    None if parted is None else (parted[0], parted[1] * self._inverse(term.args[1]))
                )
            case arith.TruncFOp() if term.kind in _COMPUTING:
                parted = self._cells_apart(term.args[0])
                if parted is None:
                    return None
                cells, factor = parted
                bare = uncast(cells)
                if bare.kind == term.kind:
                    return bare, factor
                if _RANGES[term.kind] < _RANGES.get(cells.kind, 2):
                    return None
                return self.chain.terms.apply(term.op, [cells]), factor
            case _:
                return None

    def _inverse(self, term: Term) -> Polynomial:
        """One over a term; one that holds no running value, or no cells, is a symbol."""
        divisor = self.polynomial(term)
        try:
            return divisor.inverse()
        except OutsideClassError:
            if self._varies(term):
                raise
            return self._atom(term).inverse()

    def _power(self, term: Term) -> Polynomial:
        number = _number(term.args[1])
        if number is None or number.denominator != 1 or abs(number) > 16:
            raise OutsideClassError(f"{term} is no whole power")
        base = term.args[0]
        if number < 0:
            return self._inverse(base) ** -int(number)
        return self.polynomial(base) ** int(number)

    def _selected(self, condition: Term, then: Term, other: Term) -> Polynomial:
        """Each branch times one or zero.

        A choice that is the same for all points is made at the end. One that cells alone make is a
        cell itself, as a mask of dropout is.
        """
        if self._varies(condition) and condition.running:
            raise OutsideClassError("a choice between running values depends on such a value")
        found = constant(0)
        for value, chosen in ((then, True), (other, False)):
            branch = self.polynomial(value)
            if not branch:
                continue
            if self._varies(condition):
                found = found + branch * self._still(self._one_where(condition, chosen, value.kind))
            else:
                found = found + branch * symbol(self._truth(condition, chosen))
        return found

    def _one_where(self, condition: Term, chosen: bool, kind: Attribute) -> Term:
        """One where a condition comes out so, zero where not."""
        assert isinstance(kind, AnyFloat)
        numbers = (FloatAttr(float(one), kind) for one in (chosen, not chosen))
        apply = self.chain.terms.apply
        one, zero = (apply(arith.ConstantOp(number), []) for number in numbers)
        choice = arith.SelectOp(*Block(arg_types=(i1, kind, kind)).args)
        return apply(choice, [condition, one, zero])

    def _truth(self, condition: Term, chosen: bool) -> str:
        """The symbol that is one where a condition is so, and zero where it is not."""
        while isinstance(condition.op, arith.XOrIOp) and _is_true(condition.args[1]):
            condition, chosen = condition.args[0], not chosen
        name = self._name(condition, "g" if condition.running else "c")
        name = name if chosen else f"not {name}"
        self.truths.add(name)
        return name


def uncast(term: Term) -> Term:
    """A term without casts that keep its value."""
    while isinstance(term.op, arith.ExtFOp):
        (term,) = term.args
    return term


def _number(term: Term) -> Fraction | None:
    """The finite number that a term is, None when it is none."""
    held = _held(term)
    return None if held is None or not isfinite(held) else Fraction(held)


def _held(term: Term) -> float | None:
    """The number that a term is, whichever, None when it is none."""
    term = uncast(term)
    if not isinstance(term.op, arith.ConstantOp) or term.kind == i1:
        return None
    held = term.op.value
    return held.value.data if isinstance(held, FloatAttr | IntegerAttr) else None


def _neutral(term: Term) -> int | None:
    """The argument of a maximum or a minimum that is the least, or the largest, of all numbers."""
    least = -inf if isinstance(term.op, arith.MaximumfOp) else inf
    return next((place for place, arg in enumerate(term.args) if _held(arg) == least), None)


def _is_true(term: Term) -> bool:
    """Whether a term is the truth."""
    if not isinstance(term.op, arith.ConstantOp) or term.kind != i1:
        return False
    held = term.op.value
    return isinstance(held, IntegerAttr) and bool(held.value.data)


def _is_affine(term: Term) -> bool:
    """Whether a term is a number times another, or a number or another more or less."""
    match term.op:
        case arith.NegfOp():
            return True
        case arith.MulfOp():
            return any(_number(arg) is not None for arg in term.args)
        case arith.DivfOp():
            return _number(term.args[1]) is not None
        case arith.AddfOp() | arith.SubfOp():
            return isinstance(term.kind, AnyFloat)
        case _:
            return False
