"""Whether applying rules again and again comes to an end.

Every operator gets a weight, a program the sum of the weights of its applications. A rule

* *shrinks* a program when what it removes for sure weighs more than what it produces;
* *unwinds* it when the two weigh the same, and every output, written out as a term (a tensor once
  for each use), gets smaller in a recursive path order of terms (`terms`).

The pair (weight, terms of what nothing uses) cannot fall for ever, and each application of such a
rule makes it fall: what is replaced leads to what nothing uses. Weights are found by linear
programming, precedences of operators by search, for as many rules at once as possible, in their
order. Rules that get none are applied in one pass only, and never to what they produced themselves.

    >>> solve_weights([({"gelu": 1}, {"erf": 1, "mul": 2}), ({"mul": 1}, {"gelu": 1})]) is None
    True
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from scipy import optimize  # pyright: ignore[reportMissingTypeStubs]

from tapestry.rewriting.rules import Application, Rule
from tapestry.rewriting.terms import Precedence, order_outputs

Ending: TypeAlias = Literal["shrinks", "unwinds", "one pass"]
Change: TypeAlias = tuple[Mapping[str, int], Mapping[str, int]]
"""How many applications of each operator a rule removes, and produces."""


@dataclass(frozen=True)
class Measure:
    """How each rule comes to an end, and the weights that show it."""

    endings: Mapping[str, Ending]
    weights: Mapping[str, int]


def find_measure(rules: Sequence[Rule]) -> Measure:
    """The measure for rules that are applied together."""
    strict: list[Change] = []
    equal: list[Change] = []
    endings: dict[str, Ending] = {}
    weights: dict[str, int] = {}
    precedence: Precedence = frozenset()
    for rule in rules:
        change = _count(rule.removed), _count(rule.produced)
        found = solve_weights([*strict, change], equal)
        if found is not None:
            strict.append(change)
            endings[rule.name], weights = "shrinks", found
            continue
        found = solve_weights(strict, [*equal, change])
        ordered = None if found is None else order_outputs(rule, precedence)
        if found is not None and ordered is not None:
            equal.append(change)
            precedence = ordered
            endings[rule.name], weights = "unwinds", found
        else:
            endings[rule.name] = "one pass"
    return Measure(endings, weights)


def _count(applications: Sequence[Application]) -> Counter[str]:
    return Counter(application.template.name for application in applications)


def solve_weights(strict: Sequence[Change], equal: Sequence[Change] = ()) -> dict[str, int] | None:
    """Weights of at least 1 by which every strict change falls, and no equal one rises."""
    changes = [*strict, *equal]
    names = sorted({name for change in changes for side in change for name in side})
    if not names:
        return {} if not strict else None
    rows = np.array(
        [[after.get(n, 0) - before.get(n, 0) for n in names] for before, after in changes]
    )
    bounds = np.array([-1] * len(strict) + [0] * len(equal))
    solve = cast("Callable[..., Any]", optimize.linprog)  # pyright: ignore[reportUnknownMemberType]
    found = solve(np.ones(len(names)), A_ub=rows, b_ub=bounds, bounds=(1, None))
    if not found.success:
        return None
    # A solution scaled up is one, too; that its whole numbers are one is checked exactly.
    solution: list[float] = found.x.tolist()
    for scale in (1, 2, 6, 60):
        weights = [ceil(weight * scale - 1e-6) for weight in solution]
        if all(
            sum(int(c) * w for c, w in zip(row, weights, strict=True)) <= bound
            for row, bound in zip(rows, bounds.tolist(), strict=True)
        ):
            return dict(zip(names, weights, strict=True))
    return None
