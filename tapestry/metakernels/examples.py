"""Examples for symbols: sizes for which decisions hold.

    >>> from tapestry.metakernels.traces import Trace
    >>> trace = Trace({"N": 24, "K": 96})
    >>> trace.symbol("N") == trace.symbol("K")
    False
    >>> (alternative,) = trace.decisions
    >>> next(find_examples(("N", "K"), [alternative.negated()]))
    {'N': 276, 'K': 276}

The usual examples are large, distinct and divisible by small numbers, so that a size is not 1, is
not another one, and halves by chance no more often than it has to. Others are drawn: equalities are
solved for a symbol that stands alone in them, and the rest is a matter of luck.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

from tapestry.metakernels.symbols import symbol, sympy
from tapestry.metakernels.traces import Decision

_DRAWS: Final = 300
"""How many sizes are drawn before the search for more examples ends."""

_PRIMES: Final = (23, 19, 17, 13, 11, 7, 5, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79)


def usual_examples(names: Sequence[str]) -> dict[str, int]:
    """Sizes that are as ordinary as sizes get; the first are the largest."""
    return {
        name: 12 * _PRIMES[position % len(_PRIMES)] * (1 + position // len(_PRIMES))
        for position, name in enumerate(names)
    }


def find_examples(names: Sequence[str], decisions: Sequence[Decision]) -> Iterator[dict[str, int]]:
    """Sizes for which all decisions hold, the usual ones first; none where none were found."""
    if not decisions:
        yield usual_examples(names)
    random = Random(0)
    found: list[dict[str, int]] = []
    symbols = {name: symbol(name) for name in names}
    for draw in range(_DRAWS):
        sizes = usual_examples(names) if draw == 0 else _drawn(names, random)
        _solve(sizes, symbols, decisions)
        values = {symbols[name]: sympy().Integer(size) for name, size in sizes.items()}
        fits = all(size >= 0 for size in sizes.values()) and sizes not in found
        if fits and all(decision.holds_for(values) for decision in decisions):
            found.append(sizes)
            yield sizes


def _drawn(names: Sequence[str], random: Random) -> dict[str, int]:
    """Random sizes: all small, or each the usual one or a small or large one."""
    usual = usual_examples(names)
    return {
        name: random.choice((usual[name], random.randint(0, 9), random.randint(10, 200)))
        for name in names
    }


def _solve(
    sizes: dict[str, int], symbols: Mapping[str, Any], decisions: Sequence[Decision]
) -> None:
    """Change sizes so that equalities hold, one after the other, where that is simple."""
    for decision in decisions:
        if decision.relation != "==" or not decision.holds:
            continue
        difference = sympy().expand(decision.difference)
        for name in reversed(sizes):
            slope = difference.coeff(symbols[name])
            rest = difference - slope * symbols[name]
            if slope in (1, -1) and not rest.has(symbols[name]):
                others = {symbols[other]: size for other, size in sizes.items()}
                sizes[name] = int(-slope * rest.xreplace(others))
                break
