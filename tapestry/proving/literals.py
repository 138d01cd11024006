"""What a literal of a program means over the reals.

A literal is a real number that was rounded when it was written. Its shortest decimal is what was
meant, unless all of its type's digits were needed to write it: then it is a small number
times a power of two, or the simplest of a small fraction, the root of one, or a known constant,
that rounds to the same number.

    >>> from xdsl.dialects.builtin import f32
    >>> print(meaning(0.1, f32), meaning(0.33333334, f32), meaning(0.35355338, f32))
    1/10 1/3 sqrt(1/8)
    >>> print(meaning(-1.442695, f32), meaning(0.1234567, f32))
    -log2e 1234567/10000000
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isfinite, sqrt
from typing import Literal

from xdsl.ir import Attribute

from tapestry.algebra.dtypes import numpy_dtype

Name = Literal["ln2", "log2e", "pi"]

CONSTANTS: dict[Name, str] = {
    "ln2": "0.693147180559945309417232121458176568",
    "log2e": "1.442695040888963407359924681001892137",
    "pi": "3.141592653589793238462643383279502884",
}
"""The known constants, to more digits than any float here holds."""

_LARGEST = {"f64": 1 << 24, "f32": 1 << 14, "f16": 1 << 5, "bf16": 1 << 3}
"""The largest numerator times denominator of a fraction that is told from chance, per type."""

_ODD = {"f64": 1 << 17, "f32": 1 << 8, "f16": 1 << 3, "bf16": 1 << 2}
"""The largest odd number that, times a power of two, is told from chance, per type."""

_DIGITS = {"f64": 15, "f32": 6, "f16": 3, "bf16": 2}
"""Decimals of at most so many digits are always told apart by a type."""


@dataclass(frozen=True)
class Real:
    """`factor`, `factor * name`, or with `root` the square root of `|factor|`, signed like it."""

    factor: Fraction
    name: Name | None = None
    root: bool = False

    def __str__(self) -> str:
        sign = "-" if self.factor < 0 else ""
        if self.root:
            return f"{sign}sqrt({abs(self.factor)})"
        if self.name is None:
            return str(self.factor)
        return f"{sign}{self.name}" if abs(self.factor) == 1 else f"{self.factor} * {self.name}"


@lru_cache(maxsize=4096)
def meaning(value: float, element: Attribute) -> Real | None:
    """The real number that a literal of a type stands for; None for NaN and the infinities."""
    if not isfinite(value):
        return None
    dtype = numpy_dtype(element)
    written = str(dtype.type(value))
    value = float(dtype.type(value))
    decimal, exact = Fraction(written), Fraction(value)
    if _digits(written) <= _DIGITS[str(element)]:
        return Real(decimal)
    if _odd_part(exact.numerator) <= _ODD[str(element)]:
        return Real(exact)  # a small number times a power of two

    def rounds_back(candidate: float) -> bool:
        return float(dtype.type(candidate)) == value

    largest = _LARGEST[str(element)]
    simple = _simplest(value, largest, rounds_back)
    if simple is not None:
        return Real(simple)
    for name, digits in CONSTANTS.items():
        for factor in (Fraction(1), Fraction(1, 2), Fraction(2)):
            for sign in (1, -1):
                if rounds_back(float(sign * factor) * float(digits)):
                    return Real(sign * factor, name)
    sign = 1 if value > 0 else -1
    square = _simplest(value * value, largest, lambda x: rounds_back(sign * sqrt(x)))
    return Real(decimal) if square is None else Real(sign * square, root=True)


def _simplest(value: float, largest: int, fits: Callable[[float], bool]) -> Fraction | None:
    """The fraction of the least denominator that is near `value` and fits."""
    limit = 1
    while limit <= largest:
        found = Fraction(value).limit_denominator(limit)
        if 0 < abs(found.numerator) * found.denominator <= largest and fits(float(found)):
            return found
        limit *= 2
    return None


def _odd_part(n: int) -> int:
    """An integer's magnitude without its factors of two; 0 for 0."""
    return abs(n) // (n & -n) if n else 0


def _digits(text: str) -> int:
    """Significant digits of a number written out."""
    mantissa = text.lower().split("e")[0].lstrip("-").replace(".", "")
    return len(mantissa.strip("0"))
