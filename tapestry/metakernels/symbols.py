"""Sizes that are not known yet: SymPy expressions over nonnegative integers that behave like `int`.

    >>> trace = Trace({"N": 24, "K": 96})
    >>> n, k = trace.symbol("N"), trace.symbol("K")
    >>> print(2 * n + k // 4, "|", n * k - k * n, "|", n * k == k * n, "|", trace.assumptions())
    2 * N + (K // 4) | 0 | True | ()
    >>> n < k, trace.assumptions()
    (True, ('K > N',))

A `Size` is an integer, its *example*, together with the expression it stands for. So the code that
applies templates runs on it as it is: arithmetic goes on with expressions, and a comparison is
decided by SymPy if it holds (or fails) for all sizes, and else by the example, which is then
recorded as an assumption. What comes out holds for all sizes that satisfy the assumptions.

SymPy is imported when the first symbol is made. No text is ever given to it: expressions are built
operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, Self, TypeAlias

from tapestry.metakernels.errors import SymbolicSizeError
from tapestry.metakernels.symbol_text import expression_text
from tapestry.zspace.points import Indeterminate

Relation: TypeAlias = str
"""`<=`, `<` or `==`."""

Expression: TypeAlias = Any
"""A SymPy expression; SymPy has no types."""


@cache
def sympy() -> Any:
    """SymPy, imported when first needed: it takes a third of a second."""
    return import_module("sympy")


_SYMPY_NAMES: Final = {"ceil": "ceiling"}


class Size(Indeterminate):
    """An integer expression and its example value; made by `Trace.symbol` and by arithmetic."""

    expression: Expression
    trace: Trace

    def __new__(cls, example: int, expression: Expression, trace: Trace) -> Self:
        made = super().__new__(cls, example)
        made.expression = expression
        made.trace = trace
        return made

    def __str__(self) -> str:
        return self.trace.text(self.expression)

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(self.expression)

    def __reduce__(self) -> str:
        raise TypeError("a symbolic size belongs to its trace and cannot be copied")

    def __bool__(self) -> bool:
        return not self.trace.decide("==", self, 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and self.trace.decide("==", self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: int) -> bool:
        return self.trace.decide("<", self, other)

    def __le__(self, other: int) -> bool:
        return self.trace.decide("<=", self, other)

    def __gt__(self, other: int) -> bool:
        return self.trace.decide("<", other, self)

    def __ge__(self, other: int) -> bool:
        return self.trace.decide("<=", other, self)

    def __add__(self, other: int) -> int:
        return self._with(other, lambda a, b: a + b)

    def __radd__(self, other: int) -> int:
        return self._after(other, lambda a, b: a + b)

    def __sub__(self, other: int) -> int:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: int) -> int:
        return self._after(other, lambda a, b: a - b)

    def __mul__(self, other: int) -> int:
        return self._with(other, lambda a, b: a * b)

    def __rmul__(self, other: int) -> int:
        return self._after(other, lambda a, b: a * b)

    def __floordiv__(self, other: int) -> int:
        return self._with(other, lambda a, b: a // b)

    def __rfloordiv__(self, other: int) -> int:
        return self._after(other, lambda a, b: a // b)

    def __mod__(self, other: int) -> int:
        return self._with(other, lambda a, b: a % b)

    def __rmod__(self, other: int) -> int:
        return self._after(other, lambda a, b: a % b)

    def __pow__(self, other: int, modulus: int | None = None) -> Any:
        return self._with(other, lambda a, b: a**b)

    def __rpow__(self, other: int, modulus: int | None = None) -> Any:
        return self._after(other, lambda a, b: a**b)

    def __truediv__(self, other: float) -> Any:
        return Quantity.of(self) / other

    def __rtruediv__(self, other: float) -> Any:
        return other / Quantity.of(self)

    def __neg__(self) -> int:
        return self * -1

    def __pos__(self) -> int:
        return self

    def __abs__(self) -> int:
        return self if self >= 0 else -self

    def _with(self, other: object, function: Callable[[Any, Any], Any]) -> Any:
        return self._combined(self, other, function)

    def _after(self, other: object, function: Callable[[Any, Any], Any]) -> Any:
        return self._combined(other, self, function)

    def _combined(self, left: object, right: object, function: Callable[[Any, Any], Any]) -> Any:
        if isinstance(left, float) or isinstance(right, float):
            return function(Quantity.of(left), Quantity.of(right))
        if not isinstance(left, int) or not isinstance(right, int):
            return NotImplemented
        expression = function(expression_of(left), expression_of(right))
        return self.trace.size(function(plain(left), plain(right)), expression)


class Quantity(float):
    """A number in a body that depends on sizes, such as `1 / sqrt(N)`, and its example value."""

    expression: Expression
    trace: Trace | None

    def __new__(cls, example: float, expression: Expression, trace: Trace | None) -> Self:
        made = super().__new__(cls, example)
        made.expression = expression
        made.trace = trace
        return made

    @staticmethod
    def of(value: Any) -> Quantity:
        """Any number as a quantity."""
        if isinstance(value, Quantity):
            return value
        if isinstance(value, Size):
            return Quantity(float(plain(value)), value.expression, value.trace)
        number = float(value)
        exact = sympy().Integer(int(number)) if number.is_integer() else sympy().Float(number, 17)
        return Quantity(number, exact, None)

    def __str__(self) -> str:
        trace = self.trace
        return super().__repr__() if trace is None else trace.text(self.expression)

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(self.expression)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.expression == other.expression

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __add__(self, other: float) -> Quantity:
        return _quantity(lambda a, b: a + b, self, other)

    def __radd__(self, other: float) -> Quantity:
        return _quantity(lambda a, b: a + b, other, self)

    def __sub__(self, other: float) -> Quantity:
        return _quantity(lambda a, b: a - b, self, other)

    def __rsub__(self, other: float) -> Quantity:
        return _quantity(lambda a, b: a - b, other, self)

    def __mul__(self, other: float) -> Quantity:
        return _quantity(lambda a, b: a * b, self, other)

    def __rmul__(self, other: float) -> Quantity:
        return _quantity(lambda a, b: a * b, other, self)

    def __truediv__(self, other: float) -> Quantity:
        return _quantity(lambda a, b: a / b, self, other)

    def __rtruediv__(self, other: float) -> Quantity:
        return _quantity(lambda a, b: a / b, other, self)

    def __pow__(self, other: float, modulus: int | None = None) -> Any:
        return _quantity(lambda a, b: a**b, self, other)

    def __neg__(self) -> Quantity:
        return self * -1

    def at(self, values: Mapping[Expression, Expression]) -> float:
        """Its value for these sizes."""
        return float(self.expression.xreplace(values))

    def function(self, name: str, example: float) -> Quantity:
        """`name(self)`, whose example is `example`."""
        if name == "rsqrt":
            return 1 / self.function("sqrt", 1 / example)
        function: Any = getattr(sympy(), _SYMPY_NAMES.get(name, name), None)
        if function is None:
            raise SymbolicSizeError(f"{name} of the symbolic size {self} is not supported")
        return Quantity(example, function(self.expression), self.trace)


def _quantity(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Quantity:
    a, b = Quantity.of(left), Quantity.of(right)
    example = function(float.__add__(a, 0.0), float.__add__(b, 0.0))
    return Quantity(example, function(a.expression, b.expression), a.trace or b.trace)


def plain(value: int) -> int:
    """The example of a size; any other integer itself."""
    return int.__add__(value, 0) if isinstance(value, Size) else value


def expression_of(value: int) -> Expression:
    """The expression of a size, or an integer as one."""
    return value.expression if isinstance(value, Size) else sympy().Integer(value)


def ceildiv(left: int, right: int) -> int:
    """`left / right` rounded up, of which one is a size."""
    trace = next(value.trace for value in (left, right) if isinstance(value, Size))
    example = -(-plain(left) // plain(right))
    return trace.size(example, sympy().ceiling(expression_of(left) / expression_of(right)))


def extremum(name: str, values: Sequence[int]) -> int:
    """The `min` or `max` of sizes, as an expression."""
    trace = next(value.trace for value in values if isinstance(value, Size))
    example = (min if name == "min" else max)(map(plain, values))
    function = sympy().Min if name == "min" else sympy().Max
    return trace.size(example, function(*map(expression_of, values)))


def is_symbolic(value: object) -> bool:
    """Whether `value` is a size, or a number that depends on one."""
    return isinstance(value, Size | Quantity)


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


def symbol(name: str) -> Expression:
    """The SymPy symbol of a size: a nonnegative integer."""
    return sympy().Symbol(name, integer=True, nonnegative=True)
