"""Builds the nodes of `syntax` while the grammar is read, bottom-up and without recursion.

    >>> TreeBuilder().binary(Number(1), "+", Number(2))
    Binary(operator='+', left=Number(value=1), right=Number(value=2))

Each method is named like the rule (or alias) of `grammar.lark` whose children it receives.
"""

from __future__ import annotations

from typing import Final

from tapestry.metakernels.errors import ParseError
from tapestry.metakernels.syntax import (
    Anything,
    Binary,
    Call,
    Clause,
    Compare,
    Comprehension,
    Coordinate,
    Count,
    Dimension,
    DtypeBinding,
    Element,
    Exactly,
    Expr,
    Group,
    Item,
    ListExpr,
    Name,
    Negate,
    Not,
    Number,
    Pattern,
    PatternItem,
    ProjectionExpr,
    Sequence,
    Slice,
    Splice,
    String,
    Variable,
)

MAX_DIGITS: Final = 18
"""Digits of a number; sizes fit into 64 bits."""

_Bound = tuple[str, str | None]


class TreeBuilder:
    """Callbacks for `grammar.lark`; names that are tokens still have their sigil."""

    def pattern(self, *items: PatternItem | None) -> Pattern:
        return Pattern(tuple(item for item in items if item is not None))

    def bound(self, name: str, each: str | None) -> _Bound:
        return (name[1:], None if each is None else each[1:])

    def bound_each(self, name: str) -> _Bound:
        return (name[2:], "i")

    def dimension(self, bound: _Bound) -> Dimension:
        return Dimension(*bound)

    def sequence(self, bound: _Bound, pin: Expr | None) -> Sequence:
        return Sequence(*bound, pin)

    def any_sequence(self) -> Sequence:
        return Sequence(None)

    def group(self, bound: _Bound, *items: PatternItem) -> Group:
        name, each = bound
        return Group(name, items, each)

    def exactly(self, size: Expr) -> Exactly:
        return Exactly(size)

    def anything(self) -> Anything:
        return Anything()

    def list(self, *elements: Element | None) -> ListExpr:
        return ListExpr(tuple(element for element in elements if element is not None))

    def comprehension(
        self, value: Expr, variable: str, extent: Expr, condition: Expr | None
    ) -> ListExpr:
        return ListExpr((Element(Comprehension(value, variable[1:], extent, condition), True),))

    def labelled(self, label: str, element: Element) -> Element:
        return Element(element.value, element.spread, element.count, str(label))

    def single(self, value: Expr) -> Element:
        return Element(value)

    def spread(self, value: Expr, count: Expr | None) -> Element:
        return Element(value, spread=True, count=count)

    def spread_slice(self, value: Expr, low: Expr | None, high: Expr | None) -> Element:
        """`1...[:$axis]...` is `1...{$axis}`, and `1...[$axis + 1:]...` takes the ranks left."""
        if low is None and high is not None:
            return Element(value, spread=True, count=high)
        if low is not None and high is None:
            return Element(value, spread=True)
        raise ParseError(
            "a repeated element is cut to `[:count]` or `[start:]`",
            hint="write `value...{count}` for a fixed number of elements",
        )

    def ones(self) -> Element:
        return Element(Number(1), spread=True)

    def marker(self, sign: str) -> Element:
        return Element("+" if sign == "+" else "-")

    def marker_spread(self, sign: str, count: Expr | None) -> Element:
        return Element("+" if sign == "+" else "-", spread=True, count=count)

    def projection(
        self, rows: ListExpr, sign: str | None, offset: ListExpr | None, box: ListExpr | None
    ) -> ProjectionExpr:
        if sign == "-":
            raise ParseError("an offset is added to the rows with `+`", hint="negate its elements")
        return ProjectionExpr(rows, offset, box)

    def clause(self, variable: str, extent: Expr) -> Clause:
        return Clause(variable[1:], extent)

    def compare(self, left: Expr, operator: str, right: Expr) -> Compare:
        return Compare(str(operator), left, right)

    def binary(self, left: Expr, operator: str, right: Expr) -> Binary:
        return Binary(str(operator), left, right)

    def either(self, left: Expr, right: Expr) -> Binary:
        return Binary("or", left, right)

    def both(self, left: Expr, right: Expr) -> Binary:
        return Binary("and", left, right)

    def inverted(self, operand: Expr) -> Not:
        return Not(operand)

    def signed(self, sign: str, operand: Expr) -> Negate:
        if sign == "+":
            raise ParseError("there is no unary `+`", hint="leave it out")
        return Negate(operand)

    def subscript(self, base: Expr, index: Expr) -> Item:
        return Item(base, index)

    def slice(self, base: Expr, low: Expr | None, high: Expr | None) -> Slice:
        return Slice(base, low, high)

    def number(self, digits: str) -> Number:
        if len(digits) > MAX_DIGITS:
            raise ParseError(f"a number has at most {MAX_DIGITS} digits")
        return Number(int(digits))

    def fraction(self, text: str) -> Number:
        return Number(float(text.removeprefix(".")))  # YAML writes `.inf`

    def string(self, text: str) -> String:
        return String(text[1:-1])

    def variable(self, name: str) -> Variable:
        return Variable(name[1:])

    def each(self, name: str) -> Item:
        return Item(Variable(name[2:]), Variable("i"))

    def count(self, name: str) -> Count:
        return Count(name[1:])

    def coordinate(self, name: str) -> Coordinate:
        return Coordinate(name[1:])

    def splice(self, name: str) -> Splice:
        return Splice(str(name))

    def name(self, name: str) -> Name:
        return Name(str(name))

    def call(self, function: str, *arguments: Expr | None) -> Call:
        return Call(str(function), tuple(a for a in arguments if a is not None))

    def call_else(self, function: str, *arguments: Expr) -> Call:
        return Call(str(function), arguments[:-1], arguments[-1])

    def predicate(self, function: str, *tensors: str) -> Call:
        return Call(str(function), tuple(Name(str(tensor)) for tensor in tensors))

    def dtype_binding(self, name: str, constraint: str | None) -> DtypeBinding:
        return DtypeBinding(name[1:], "any" if constraint is None else str(constraint))

    def dtype_constraint(self, constraint: str) -> DtypeBinding:
        return DtypeBinding(None, str(constraint))
