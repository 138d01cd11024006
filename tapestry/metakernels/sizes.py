"""Sizes as people write them outside templates: `4`, `N`, `2 * N + 1`, where names are symbols.

>>> size = parse_size("(2 * N + 1) // K")
>>> symbols_of(size), evaluate_size(size, {"N": 10, "K": 4})
(('N', 'K'), 5)
"""

from __future__ import annotations

from collections.abc import Mapping

from tapestry.metakernels import builtins
from tapestry.metakernels.errors import KindMismatchError, ParseError, UnknownNameError, nearest
from tapestry.metakernels.parsing import parse_scalar
from tapestry.metakernels.syntax import Binary, Call, Expr, Name, Negate, Number, walk
from tapestry.metakernels.text import Text
from tapestry.metakernels.values import arithmetic, integer, negate

_OPERATORS = ("+", "-", "*", "/", "//", "%", "^")
_FUNCTIONS = ("min", "max", "ceildiv")


def parse_size(text: int | str | Text) -> Expr:
    """The tree of a size; ParseError for text that is none."""
    if isinstance(text, int):
        return Number(text) if text >= 0 else Negate(Number(-text))
    tree = parse_scalar(text)
    for node in walk(tree):
        match node:
            case Number(int()) | Name() | Negate():
                pass
            case Binary(operator) if operator in _OPERATORS:
                pass
            case Call(function, arguments) if function in _FUNCTIONS:
                builtins.check_call(function, len(arguments))
            case _:
                raise ParseError(
                    f"`{text}` is no size", hint="write a number, a name, or `2 * N + K // 4`"
                )
    return tree


def symbols_of(tree: Expr) -> tuple[str, ...]:
    """The names in a size, in the order of the text."""
    return tuple(dict.fromkeys(_names(tree)))


def _names(tree: Expr) -> list[str]:
    match tree:
        case Name(name):
            return [name]
        case Negate(operand):
            return _names(operand)
        case Binary(_, left, right):
            return _names(left) + _names(right)
        case Call(_, arguments):
            return [name for argument in arguments for name in _names(argument)]
        case _:
            return []


def evaluate_size(tree: Expr, sizes: Mapping[str, int]) -> int:
    """The value of a size; UnknownNameError for a symbol that `sizes` does not have."""
    return integer(_value(tree, sizes), "a size")


def _value(tree: Expr, sizes: Mapping[str, int]) -> int:
    match tree:
        case Number(int(value)):
            return value
        case Name(name):
            if name not in sizes:
                raise UnknownNameError(f"{name} has no size", hint=nearest(name, sizes))
            return sizes[name]
        case Negate(operand):
            return integer(negate(_value(operand, sizes)), "a size")
        case Binary(operator, left, right):
            value = arithmetic(operator, _value(left, sizes), _value(right, sizes))
            return integer(value, "a size")
        case Call(function, arguments):
            given = [_value(argument, sizes) for argument in arguments]
            return integer(builtins.call(function, given, ()), "a size")
        case _:
            raise KindMismatchError("this is no size")
