"""Sums that are taken apart and put together by earlier results: whether they may cancel.

    >>> from tapestry.algebra.derivation.polynomials import symbol
    >>> x, mean = symbol("x"), symbol("mean")
    >>> parted = ((x - mean) ** 2).parted("x".__eq__)
    >>> try:
    ...     check_cancellation(parted, set())
    ... except CancelsError as error:
    ...     print(error)
    sums of 1, x and x^2 apart, put together with mean, may cancel (separate=true takes them apart)

Cells that are as near to a result as rounding allows leave an exact difference where it is taken
cell by cell; of sums of large cells less a large result nothing may be left but what was rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from tapestry.algebra.derivation.model import NotDerivableError
from tapestry.algebra.derivation.polynomials import Monomial, Polynomial


class CancelsError(NotDerivableError):
    """Sums apart that may cancel, where the fold as written does not."""


def check_cancellation(parted: Mapping[Monomial, Polynomial], distances: AbstractSet[str]) -> None:
    """Refuse a sum of elements, times factors that are the same for all points, that may cancel.

    One term cannot. Of two, `w y` and `w` with `y` a distance from a centre, both are as small as
    what the body itself computes: the entropy's `y exp(y)` and `exp(y)`. Raises `CancelsError`.
    """
    terms = [(element, term) for element, factor in parted.items() for term, _ in factor.terms]
    if len(terms) < 2 or (len(terms) == 2 and _differ_by_a_distance(*parted, names=distances)):
        return
    factors = sorted({name for _, term in terms for name in term.symbols})
    joined = f"put together with {_listed(factors)}, " if factors else ""
    raise CancelsError(
        f"sums of {_listed(sorted(map(str, parted)))} apart, {joined}may cancel "
        "(separate=true takes them apart)"
    )


def _differ_by_a_distance(*elements: Monomial, names: AbstractSet[str]) -> bool:
    """Whether one of two elements is the other times a distance."""
    if len(elements) != 2:
        return False
    one, other = elements
    factors = [Monomial(frozenset([(name, 1)])) for name in names]
    return any(one == other * factor or other == one * factor for factor in factors)


def _listed(words: list[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
