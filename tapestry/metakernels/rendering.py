"""Writes trees back as text, with the names that are known replaced by their values.

    >>> from tapestry.metakernels.parsing import parse_pattern
    >>> describe_pattern(parse_pattern("[$batch..., $row, $inner]"), {"batch": (2, 3), "inner": 5})
    '[2, 3, $row, 5]'

Messages use it to say what would fit.
"""

from __future__ import annotations

from tapestry.metakernels.syntax import (
    Anything,
    Binary,
    Call,
    Compare,
    Comprehension,
    Coordinate,
    Count,
    Dimension,
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
    Sequence,
    Slice,
    Splice,
    String,
    Variable,
)
from tapestry.metakernels.values import Names, describe


def describe_pattern(pattern: Pattern, names: Names) -> str:
    """A pattern as people write it, known names replaced by their sizes."""
    return f"[{_items(pattern.items, names)}]"


def _items(items: tuple[PatternItem, ...], names: Names) -> str:
    return ", ".join(text for item in items if (text := _item(item, names)))


def _item(item: PatternItem, names: Names) -> str:
    match item:
        case Dimension(name, each):
            if name in names:
                return describe(names[name])
            return f"${name}" if each is None else f"${name}[${each}]"
        case Sequence(name, _, pin):
            value = None if name is None else names.get(name)
            if isinstance(value, tuple):
                return ", ".join(map(describe, value))
            length = "" if pin is None else f"{{{describe_expression(pin)}}}"
            return "..." if name is None else f"${name}...{length}"
        case Group(name, inner):
            return _items(inner, names) if name in names else f"${name}=({_items(inner, names)})"
        case Exactly(Number(value)):
            return str(value)
        case Exactly(size):
            return f"=({describe_expression(size)})"
        case Anything():
            return "_"


def describe_expression(expr: Expr) -> str:
    """An expression as text; operators are parenthesized where they nest."""
    match expr:
        case Number(value) | String(value):
            return repr(value)
        case Variable(name):
            return f"${name}"
        case Count(name):
            return f"#{name}"
        case Coordinate(name):
            return f"@{name}"
        case Name(name):
            return name
        case Splice(name):
            return f"{name}..."
        case Negate(operand):
            return f"-{_nested(operand)}"
        case Not(operand):
            return f"not {_nested(operand)}"
        case Binary(operator, left, right) | Compare(operator, left, right):
            return f"{_nested(left)} {operator} {_nested(right)}"
        case Item(base, index):
            return f"{_nested(base)}[{describe_expression(index)}]"
        case Slice(base, low, high):
            return f"{_nested(base)}[{_optional(low)}:{_optional(high)}]"
        case Call(function, arguments, otherwise):
            parts = [*map(describe_expression, arguments)]
            parts += [] if otherwise is None else [f"else={describe_expression(otherwise)}"]
            return f"{function}({', '.join(parts)})"
        case Comprehension(value, variable, extent, condition):
            chosen = "" if condition is None else f" if {describe_expression(condition)}"
            which = f"for ${variable} in {describe_expression(extent)}{chosen}"
            return f"[{describe_expression(value)} {which}]"
        case ListExpr((Element(Comprehension() as inner, True, None, None),)):
            return describe_expression(inner)
        case ListExpr(elements):
            return f"[{', '.join(map(_element, elements))}]"


def _nested(expr: Expr) -> str:
    text = describe_expression(expr)
    return f"({text})" if isinstance(expr, Binary | Compare | Negate | Not) else text


def _optional(expr: Expr | None) -> str:
    return "" if expr is None else describe_expression(expr)


def _element(element: Element) -> str:
    value = element.value
    text = value if isinstance(value, str) else describe_expression(value)
    text += "..." if element.spread else ""
    text += "" if element.count is None else f"{{{describe_expression(element.count)}}}"
    return text if element.label is None else f"{element.label} = {text}"
