"""What a symbolic execution knows of its sizes: what is proven, and what examples decided.

    >>> trace = Trace({"N": 24, "K": 96})
    >>> n, k = trace.symbol("N"), trace.symbol("K")
    >>> n == 2 * k - k, trace.assumptions()
    (False, ('K != N',))

A comparison of sizes is decided by SymPy if it holds (or fails) for all of them, and else by the
examples; that is recorded, and what follows from it is known from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tapestry.metakernels.symbol_text import expression_text
from tapestry.metakernels.symbols import Expression, Size, expression_of, plain, symbol, sympy

Relation: TypeAlias = str
"""`<=`, `<` or `==`."""


@dataclass(frozen=True)
class Decision:
    """A comparison that the examples decided: `left relation right` is `holds`."""

    relation: Relation
    left: Expression
    right: Expression
    holds: bool

    @property
    def difference(self) -> Expression:
        """`right - left`."""
        return self.right - self.left

    @property
    def parts_sizes(self) -> bool:
        """Whether it says that two expressions, neither of them a number, are not equal."""
        is_open = bool(self.left.free_symbols) and bool(self.right.free_symbols)
        return self.relation == "==" and not self.holds and is_open

    def negated(self) -> Decision:
        """The other way it could have been decided."""
        return Decision(self.relation, self.left, self.right, not self.holds)

    def holds_for(self, sizes: Mapping[Expression, Expression]) -> bool:
        """Whether it is so for these sizes."""
        value = self.difference.xreplace(sizes)
        met = (
            value == 0
            if self.relation == "=="
            else value > 0 or (self.relation == "<=" and value == 0)
        )
        return bool(met) == self.holds


class Trace:
    """The symbols of one symbolic execution, their examples, and what was assumed on its way."""

    def __init__(self, examples: Mapping[str, int]) -> None:
        self.examples = dict(examples)
        self.decisions: list[Decision] = []
        self._symbols = {name: symbol(name) for name in examples}
        self._equal: dict[Expression, Expression] = {}
        self._facts: list[Expression] = []

    def symbol(self, name: str) -> Size:
        """The size called `name`, which must have an example."""
        return Size(self.examples[name], self._symbols[name], self)

    def size(self, example: int, expression: Expression) -> int:
        """An expression as a size; a plain integer when it is one."""
        if expression.is_Integer:
            return int(expression)
        return Size(example, expression, self)

    def values(self, sizes: Mapping[str, int]) -> dict[Expression, Expression]:
        """Sizes as what expressions are evaluated at."""
        return {self._symbols[name]: sympy().Integer(size) for name, size in sizes.items()}

    def text(self, expression: Expression) -> str:
        """An expression as the language writes it; symbols known to be equal have one name."""
        return expression_text(self._reduced(expression))

    def decide(self, relation: Relation, left: int, right: int) -> bool:
        """Whether `left relation right`, by proof or else by the examples, which is recorded."""
        a, b = self._reduced(expression_of(left)), self._reduced(expression_of(right))
        difference = sympy().expand(b - a)
        known = (
            self._known_zero(difference)
            if relation == "=="
            else self._known_nonnegative(difference - 1 if relation == "<" else difference)
        )
        if known is not None:
            return known
        x, y = plain(left), plain(right)
        holds = {"==": x == y, "<": x < y, "<=": x <= y}[relation]
        self.decisions.append(Decision(relation, a, b, holds))
        self._learn(relation, difference, holds)
        return holds

    def assumptions(self) -> tuple[str, ...]:
        """What was assumed, each as a condition of the language, without repetitions."""
        texts: list[str] = []
        for decision in self.decisions:
            for text in self._condition(decision):
                if text not in texts:
                    texts.append(text)
        return tuple(texts)

    def _condition(self, decision: Decision) -> list[str]:
        left, right = decision.left, decision.right
        if decision.relation != "==":
            return [_order_text(decision)]
        if left.is_Integer:
            left, right = right, left
        is_number: bool = right.is_Integer
        if not decision.holds and right == 0 and left.is_nonnegative:
            return [f"{expression_text(factor)} > 0" for factor in _factors(left)]
        word = "==" if decision.holds else "!="
        texts = [expression_text(left), expression_text(right)]
        return [f" {word} ".join(texts if is_number else sorted(texts))]

    def _reduced(self, expression: Expression) -> Expression:
        return expression.xreplace(self._equal) if self._equal else expression

    def _known_zero(self, expression: Expression) -> bool | None:
        if expression.is_zero:
            return True
        if self._is_nonnegative(expression - 1) or self._is_nonnegative(-expression - 1):
            return False
        return None

    def _known_nonnegative(self, expression: Expression) -> bool | None:
        if self._is_nonnegative(expression):
            return True
        return False if self._is_nonnegative(-expression - 1) else None

    def _is_nonnegative(self, expression: Expression) -> bool:
        """Whether it is never negative: by the symbols' signs, or a fact plus what never is."""
        expand = sympy().expand
        return _never_negative(expression) or any(
            _never_negative(expand(expression - fact)) for fact in self._facts
        )

    def _learn(self, relation: Relation, difference: Expression, holds: bool) -> None:
        """Keep what a decision says: an equality as a substitution, an order as a fact."""
        if relation != "==":
            strict = difference - 1 if relation == "<" else difference
            self._facts.append(strict if holds else -strict - 1)
        elif not holds:
            self._learn_nonzero(difference)
        else:
            self._learn_zero(difference)

    def _learn_nonzero(self, difference: Expression) -> None:
        for positive in (difference, -difference):
            if positive.is_nonnegative:
                self._facts += [factor - 1 for factor in (*_factors(positive), positive)]

    def _learn_zero(self, difference: Expression) -> None:
        """Replace the last symbol that stands alone in `difference`, where that is one.

        A remainder that is zero makes the quotient exact.
        """
        for remainder in difference.atoms(sympy().Mod):
            if difference in (remainder, -remainder):
                above, below = remainder.args
                self._equal[sympy().floor(above / below)] = above / below
                return
        for name in reversed(self._symbols):
            one = self._symbols[name]
            slope = difference.coeff(one)
            rest = difference - slope * one
            if slope in (1, -1) and not rest.has(one):
                value = {one: -slope * rest}
                self._equal = {key: old.xreplace(value) for key, old in self._equal.items()}
                self._equal.update(value)
                self._facts = [fact.xreplace(value) for fact in self._facts]
                return


def _never_negative(expression: Expression) -> bool:
    """Whether the signs of the symbols show it; SymPy does not see it of a quotient rounded up."""
    unseen = {
        part: sympy().Dummy(integer=True, nonnegative=True)
        for part in expression.atoms(sympy().ceiling)
        if part.args[0].is_nonnegative
    }
    return bool(expression.xreplace(unseen).is_nonnegative)


def _order_text(decision: Decision) -> str:
    """An order without negative terms: `N > 8`, `N + 1 >= K`."""
    difference = decision.difference - int(decision.relation == "<")
    terms = sympy().expand(difference if decision.holds else -difference - 1).as_ordered_terms()
    above = sympy().Add(*(term for term in terms if not term.could_extract_minus_sign()))
    below = sympy().Add(*(-term for term in terms if term.could_extract_minus_sign()))
    if below.is_Integer:
        return f"{expression_text(above)} > {below - 1}"
    if below.as_coeff_Add()[0] > 0:
        return f"{expression_text(above)} > {expression_text(below - 1)}"
    return f"{expression_text(above)} >= {expression_text(below)}"


def _factors(expression: Expression) -> list[Expression]:
    """What a product that is not zero consists of, without numbers and powers."""
    factors = expression.args if expression.is_Mul else (expression,)
    bases = (factor.base if factor.is_Pow else factor for factor in factors)
    return [base for base in bases if base.free_symbols]
