"""Exponential polynomials: sums of products of powers and exponentials of named symbols, exactly.

    >>> x, m, v = symbol("x"), symbol("m"), symbol("v")
    >>> print(exp(x - m) * v * v + x - x)
    v^2*exp(-m + x)
    >>> print((exp(x - m) * v).replaced({"x": x + m}))
    v*exp(x)

Every polynomial has one form, so two are equal exactly when they are equal as functions. Factors
are rational numbers; a power may be negative, an exponent is a polynomial without exponentials.
Whatever is outside of this class cannot be written: `OutsideClassError` says so at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

Number: TypeAlias = "int | Fraction"


class OutsideClassError(Exception):
    """An expression that is no exponential polynomial."""


@dataclass(frozen=True)
class Monomial:
    """A product of powers of symbols, and of one exponential."""

    powers: frozenset[tuple[str, int]] = frozenset()
    exponent: Polynomial | None = None

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The symbols of the powers and of the exponent."""
        own = frozenset(name for name, _ in self.powers)
        return own if self.exponent is None else own | self.exponent.symbols

    def power(self, name: str) -> int:
        """The power of a symbol, apart from the exponential."""
        return next((power for other, power in self.powers if other == name), 0)

    def __mul__(self, other: Monomial) -> Monomial:
        powers = dict(self.powers)
        for name, power in other.powers:
            powers[name] = powers.get(name, 0) + power
        if self.exponent is None or other.exponent is None:
            exponent = self.exponent or other.exponent
        else:
            exponent = self.exponent + other.exponent
        kept = frozenset((name, power) for name, power in powers.items() if power)
        return Monomial(kept, exponent if exponent is not None and exponent.terms else None)

    def __str__(self) -> str:
        shown = [n if p == 1 else f"{n}^{p}" for n, p in sorted(self.powers)]
        if self.exponent is not None:
            shown.append(f"exp({self.exponent})")
        return "*".join(shown) or "1"


@dataclass(frozen=True)
class Polynomial:
    """A sum of monomials with rational factors, none of them zero."""

    terms: frozenset[tuple[Monomial, Fraction]] = frozenset()

    @staticmethod
    def of(terms: Iterable[tuple[Monomial, Fraction]]) -> Polynomial:
        """The sum of some terms, whose monomials may repeat."""
        total: dict[Monomial, Fraction] = {}
        for monomial, factor in terms:
            total[monomial] = total.get(monomial, Fraction(0)) + factor
        return Polynomial(frozenset((m, f) for m, f in total.items() if f))

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Every symbol, those of exponents included."""
        return frozenset[str]().union(*(monomial.symbols for monomial, _ in self.terms))

    @cached_property
    def ordered(self) -> tuple[tuple[Monomial, Fraction], ...]:
        """The terms in one order, that of what they are written as."""
        return tuple(sorted(self.terms, key=lambda term: str(term[0])))

    @property
    def number(self) -> Fraction | None:
        """The number that this is, None when it holds symbols."""
        if not self.terms:
            return Fraction(0)
        if len(self.terms) != 1:
            return None
        ((monomial, factor),) = self.terms
        return factor if monomial == Monomial() else None

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __add__(self, other: Polynomial | Number) -> Polynomial:
        return Polynomial.of([*self.terms, *_polynomial(other).terms])

    def __neg__(self) -> Polynomial:
        return Polynomial(frozenset((monomial, -factor) for monomial, factor in self.terms))

    def __sub__(self, other: Polynomial | Number) -> Polynomial:
        return self + -_polynomial(other)

    def __mul__(self, other: Polynomial | Number) -> Polynomial:
        pairs = [(a, b) for a in self.terms for b in _polynomial(other).terms]
        return Polynomial.of((a * b, p * q) for (a, p), (b, q) in pairs)

    def __pow__(self, power: int) -> Polynomial:
        if power < 0:
            return self.inverse() ** -power
        result = constant(1)
        for _ in range(power):
            result = result * self
        return result

    def __truediv__(self, other: Polynomial | Number) -> Polynomial:
        return self * _polynomial(other).inverse()

    def inverse(self) -> Polynomial:
        """One over this, which must be one term."""
        if len(self.terms) != 1:
            raise OutsideClassError(f"1 / ({self}) is no exponential polynomial")
        ((monomial, factor),) = self.terms
        exponent = None if monomial.exponent is None else -monomial.exponent
        powers = frozenset((name, -power) for name, power in monomial.powers)
        return Polynomial(frozenset([(Monomial(powers, exponent), 1 / factor)]))

    def replaced(self, values: Mapping[str, Polynomial]) -> Polynomial:
        """This with polynomials in place of symbols, those of exponents included."""
        if not self.symbols & values.keys():
            return self
        total = constant(0)
        for monomial, factor in self.terms:
            product = constant(factor)
            for name, power in monomial.powers:
                product = product * (values[name] if name in values else symbol(name)) ** power
            if monomial.exponent is not None:
                product = product * exp(monomial.exponent.replaced(values))
            total = total + product
        return total

    def parted(self, is_inner: Callable[[str], bool]) -> dict[Monomial, Polynomial]:
        """This as a sum of inner monomials, each times a polynomial of the other symbols.

        An exponential parts as a product of two. Exponents that mix inner symbols with others stay
        inner as they are.
        """
        found: dict[Monomial, Polynomial] = {}
        for monomial, factor in self.ordered:
            outer, inner = _parted(monomial, is_inner)
            term = Polynomial(frozenset([(outer, factor)]))
            found[inner] = found.get(inner, constant(0)) + term
        return {inner: outer for inner, outer in found.items() if outer}

    def __str__(self) -> str:
        text = ""
        for monomial, factor in self.ordered:
            size, shown = abs(factor), str(monomial)
            if shown == "1":
                shown = _shown(size)
            elif size != 1:
                shown = f"{_shown(size)}*{shown}"
            sign = "-" if factor < 0 else "+"
            text = f"{text} {sign} {shown}" if text else ("-" if factor < 0 else "") + shown
        return text or "0"


def _shown(number: Fraction) -> str:
    exact = number.denominator < 1000
    return str(number) if exact else f"{float(number):.6g}"


def _parted(monomial: Monomial, is_inner: Callable[[str], bool]) -> tuple[Monomial, Monomial]:
    """The factors of a monomial without and with inner symbols."""
    inner = frozenset((name, power) for name, power in monomial.powers if is_inner(name))
    outer = monomial.powers - inner
    if monomial.exponent is None:
        return Monomial(outer), Monomial(inner)
    mixed = [t for t in monomial.exponent.terms if any(map(is_inner, t[0].symbols))]
    rest = monomial.exponent.terms - frozenset(mixed)
    exponents = [Polynomial(frozenset(part)) if part else None for part in (rest, mixed)]
    return Monomial(outer, exponents[0]), Monomial(inner, exponents[1])


def _polynomial(value: Polynomial | Number) -> Polynomial:
    return value if isinstance(value, Polynomial) else constant(value)


def constant(value: Number | float) -> Polynomial:
    """A number, exactly."""
    return Polynomial.of([(Monomial(), Fraction(value))])


def symbol(name: str) -> Polynomial:
    """A symbol."""
    return Polynomial(frozenset([(Monomial(frozenset([(name, 1)])), Fraction(1))]))


def of_monomial(monomial: Monomial) -> Polynomial:
    """A monomial alone."""
    return Polynomial(frozenset([(monomial, Fraction(1))]))


def exp(exponent: Polynomial) -> Polynomial:
    """An exponential; its exponent must hold none."""
    if any(monomial.exponent is not None for monomial, _ in exponent.terms):
        raise OutsideClassError(f"exp({exponent}) is an exponential of an exponential")
    return of_monomial(Monomial(exponent=exponent or None))
