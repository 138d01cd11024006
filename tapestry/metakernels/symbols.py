"""Sizes that are not known yet: SymPy expressions over nonnegative integers that behave like `int`.

    >>> from tapestry.metakernels.traces import Trace
    >>> trace = Trace({"N": 24, "K": 96})
    >>> n, k = trace.symbol("N"), trace.symbol("K")
    >>> print(2 * n + k // 4, "|", n * k - k * n, "|", n * k == k * n, "|", trace.assumptions())
    2 * N + (K // 4) | 0 | True | ()
    >>> n < k, trace.assumptions()
    (True, ('K > N',))

A `Size` is an integer, its *example*, together with the expression it stands for. So the code that
applies templates runs on it as it is: arithmetic goes on with expressions, and a comparison is
decided by SymPy if it holds (or fails) for all sizes, and else by the example, which is then
recorded as an assumption (`traces`). What comes out holds for all sizes that satisfy those.

SymPy is imported when the first symbol is made. No text is ever given to it: expressions are built
operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from tapestry.metakernels.errors import SymbolicSizeError
from tapestry.zspace.points import Indeterminate

if TYPE_CHECKING:
    from tapestry.metakernels.traces import Trace

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


def symbol(name: str) -> Expression:
    """The SymPy symbol of a size: a nonnegative integer."""
    return sympy().Symbol(name, integer=True, nonnegative=True)
