"""Applications written out as terms, and the order in which rules make them smaller.

    >>> neg_sum, sum_neg = ("neg", ("sum", "x")), ("sum", ("neg", "x"))
    >>> next(larger(sum_neg, neg_sum, frozenset()))
    frozenset({('sum', 'neg')})
    >>> next(larger(neg_sum, sum_neg, frozenset({("sum", "neg")})), None) is None
    True

The recursive path order with multisets (N. Dershowitz, Orderings for term-rewriting systems, 1982).
It needs a precedence of operators, which is found on the way; it cannot fall for ever; and a term
gets smaller when a part of it does, whatever stands for its variables. It does not see the order of
operands, so that matching them in another order changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

from tapestry.rewriting.rules import Application, Rule, Value

Term: TypeAlias = "str | tuple[str | Term, ...]"
"""A variable, or an operator (first) and its arguments."""

Precedence: TypeAlias = frozenset[tuple[str, str]]
"""Pairs of a higher and a lower operator, with all that follows from them."""

NUMBER: Final = "a number"

MAX_SIZE: Final = 256
"""Operators and variables of a term; larger ones are not compared."""

MAX_FOUND: Final = 256
"""Precedences that are tried for one pair of terms."""


def order_outputs(rule: Rule, precedence: Precedence) -> Precedence | None:
    """A precedence, extending the given one, in which every output gets smaller; or None."""
    if max(_sizes(rule.matched, {}).values()) > MAX_SIZE:
        return None
    if max(_sizes(rule.produced, _sizes(rule.matched, {})).values()) > MAX_SIZE:
        return None
    before = _terms(rule.matched, {})
    after = _terms(rule.produced, before)
    for name, source in rule.aliases.items():
        after[name] = after.get(source, source)
    found: Precedence | None = precedence
    for name in rule.outputs:
        found = next(larger(before[name], after[name], found), None)
        if found is None:
            return None
    return found


def _sizes(applications: Sequence[Application], known: Mapping[str, int]) -> dict[str, int]:
    """How large the term of each tensor is."""
    sizes = dict(known)
    for application in applications:
        size = 1 + sum(sizes.get(name, 1) for name in application.values)
        sizes.update(dict.fromkeys(application.results, size))
    return sizes


def _terms(applications: Sequence[Application], known: Mapping[str, Term]) -> dict[str, Term]:
    """The term of each tensor."""
    terms = dict(known)
    for application in applications:
        arguments = [
            terms.get(operand.name, operand.name) if isinstance(operand, Value) else (NUMBER,)
            for operand in application.operands
        ]
        for position, name in enumerate(application.results):
            terms[name] = (f"{application.template.name}.{position}", *arguments)
    return terms


def larger(one: Term, other: Term, precedence: Precedence) -> Iterator[Precedence]:
    """The precedences, extending the given one, in which `one` is larger than `other`."""
    if isinstance(one, str):
        return
    head, *arguments = one
    for argument in arguments:
        if argument == other:
            yield precedence
        else:
            yield from larger(argument, other, precedence)
    if isinstance(other, str):
        return
    lower, *parts = other
    if head == lower:
        yield from _larger_together(arguments, parts, precedence)
    else:
        assert isinstance(head, str)
        assert isinstance(lower, str)
        extended = _above(head, lower, precedence)
        if extended is not None:
            yield from _larger_than_all(one, parts, extended)


def _larger_than_all(
    one: Term, others: Sequence[Term], precedence: Precedence
) -> Iterator[Precedence]:
    if not others:
        yield precedence
        return
    for extended in islice(larger(one, others[0], precedence), MAX_FOUND):
        yield from _larger_than_all(one, others[1:], extended)


def _larger_together(
    ones: Sequence[Term], others: Sequence[Term], precedence: Precedence
) -> Iterator[Precedence]:
    """Without what both have, something is left, and each of the others is below one of it."""
    left = Counter(ones) - Counter(others)
    if left:
        yield from _each_below(tuple(left), tuple(Counter(others) - Counter(ones)), precedence)


def _each_below(
    ones: Sequence[Term], others: Sequence[Term], precedence: Precedence
) -> Iterator[Precedence]:
    if not others:
        yield precedence
        return
    for one in ones:
        for extended in larger(one, others[0], precedence):
            yield from _each_below(ones, others[1:], extended)


def _above(high: str, low: str, precedence: Precedence) -> Precedence | None:
    """The precedence with `high` above `low`; None when it has them the other way round."""
    if (low, high) in precedence:
        return None
    above = {high, *(a for a, b in precedence if b == high)}
    below = {low, *(b for a, b in precedence if a == low)}
    return precedence | {(a, b) for a in above for b in below}
