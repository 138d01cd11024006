"""Basis closure: how sums over points seen from one centre become sums seen from another.

With `y` the distance of a cell from a centre that moves by `d`, exp(y) becomes exp(d) exp(y): what
was summed before is multiplied. y^2 needs more sums, of y and of one:

    >>> from tapestry.algebra.derivation.polynomials import exp, symbol
    >>> square = next(iter((symbol("y") ** 2).terms))[0]
    >>> for element, row in closure([square], {"y": "d"}, "y".__eq__).items():
    ...     print(element, "->", " + ".join(f"({factor}) {other}" for other, factor in row.items()))
    y^2 -> (1) y^2 + (2*d) y + (d^2) 1
    y -> (1) y + (d) 1
    1 -> (1) 1

A closure of one element is a rescaling, as that of the softmax; a square has three, and their sums
merge as Chan, Golub and LeVeque say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tapestry.algebra.derivation.polynomials import (
    Monomial,
    OutsideClassError,
    Polynomial,
    of_monomial,
    symbol,
)

Rows: TypeAlias = dict[Monomial, dict[Monomial, Polynomial]]
"""Per element, it at the new centre as a sum of elements at the old one."""

_MOST_ADDED = 4
"""How many elements a closure may add to those that it starts with."""


def closure(
    elements: Sequence[Monomial], shifts: Mapping[str, str], is_local: Callable[[str], bool]
) -> Rows:
    """The elements that sums of `elements` need when centres move, with what they become.

    `shifts` says per distance by which symbol it grows; local symbols vary from point to point.
    Raises `OutsideClassError` when a distance and a shift do not part, or when there is no end of
    elements.
    """
    moved = {name: symbol(name) + symbol(shift) for name, shift in shifts.items()}
    most = len(elements) + _MOST_ADDED
    rows: Rows = {}
    waiting = list(elements)
    while waiting:
        element = waiting.pop(0)
        if element in rows:
            continue
        row = of_monomial(element).replaced(moved).parted(is_local)
        for other in row:
            if not other.symbols.isdisjoint(shifts.values()):
                raise OutsideClassError(
                    f"{element} cannot be brought from one centre to another: {other} mixes both"
                )
        rows[element] = dict(sorted(row.items(), key=lambda entry: _degree(entry[0])))
        waiting += rows[element]
        if len(rows) > most:
            raise OutsideClassError(f"sums of {elements[0]} need too many others")
    return rows


def _degree(element: Monomial) -> tuple[int, str]:
    return -sum(power for _, power in element.powers), str(element)
