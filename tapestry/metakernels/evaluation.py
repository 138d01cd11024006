"""Evaluates integer expressions and lists.

    >>> evaluate_expression("2 * -$a + $b", {"$a": 3, "$b": 4})
    -2
    >>> evaluate_expression("sum($n[:2]) * #n", {"$n": [3, 1, 5]})
    12
    >>> evaluate_expression("[2 * $n[$j] for $j in #n if $j != 1]", {"$n": [3, 1, 5]})
    [6, 10]

Sizes are exact integers: `/` must leave no remainder, and nothing is clamped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from tapestry.metakernels.builtins import call
from tapestry.metakernels.errors import (
    IndexOutOfRangeError,
    KindMismatchError,
    LimitError,
    ParseError,
    RankMismatchError,
    UnknownNameError,
    nearest,
)
from tapestry.metakernels.parsing import parse_expression
from tapestry.metakernels.syntax import (
    Binary,
    Call,
    Compare,
    Comprehension,
    Coordinate,
    Count,
    Element,
    Expr,
    Item,
    ListExpr,
    Name,
    Negate,
    Not,
    Number,
    Slice,
    Splice,
    String,
    Variable,
)
from tapestry.metakernels.text import Text
from tapestry.metakernels.values import (
    Names,
    Value,
    arithmetic,
    compare,
    count,
    describe,
    integer,
    negate,
    require_length,
)

MAX_REPEATS: Final = 1 << 16
"""How many elements nested comprehensions may compute together."""

Plain: TypeAlias = "int | list[Plain]"


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean: `names` for `$`, `coordinates` for `@`, and the index extents."""

    names: Names
    coordinates: Names = field(default_factory=dict[str, Value])
    extents: tuple[int, ...] = ()
    repeats: int = 1
    """How often the comprehensions around repeat what is evaluated here."""


def evaluate_expression(text: str | Text, environment: Mapping[str, object]) -> Plain:
    """The value of an integer expression; the environment's keys are written `$name`.

    Values are integers and (nested) lists of integers. Raises a `WeftError` whose `kind` says which
    rule is broken: `parse_error`, `unknown_name`, `inexact_division`, `index_out_of_range`, ...
    """
    names = {name.removeprefix("$"): _value(value, name) for name, value in environment.items()}
    return _plain(evaluate(parse_expression(text), Scope(names)))


def _value(value: object, what: str) -> Value:
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, list | tuple):
        items: list[object] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return tuple(_value(item, what) for item in items)
    raise KindMismatchError(f"{what} is {value!r}; an integer or a list of integers can be used")


def _plain(value: Value) -> Plain:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return integer(value, "the value of an expression")


def evaluate(expr: Expr, scope: Scope) -> Value:
    """The value of a tree in `scope`."""
    match expr:
        case Number(value):
            return value
        case String(value):
            return value
        case Variable(name):
            return _lookup(scope.names, name, "$")
        case Coordinate(name):
            return _lookup(scope.coordinates, name, "@")
        case Count(name):
            value = _lookup(scope.names, name, "$")
            if not isinstance(value, tuple):
                raise KindMismatchError(f"#{name} counts a list, and ${name} is {describe(value)}")
            return len(value)
        case Negate(operand):
            return negate(evaluate(operand, scope))
        case Binary(operator, left, right):
            return arithmetic(operator, evaluate(left, scope), evaluate(right, scope))
        case Compare(operator, left, right):
            return compare(operator, evaluate(left, scope), evaluate(right, scope))
        case Item(base, index):
            return _item(evaluate(base, scope), evaluate(index, scope))
        case Slice(base, low, high):
            return _slice(evaluate(base, scope), low, high, scope)
        case Call("where", (condition, left, right)):
            chosen = integer(evaluate(condition, scope), "the condition of where")
            return evaluate(left if chosen else right, scope)
        case Call(function, arguments):
            return call(function, [evaluate(a, scope) for a in arguments], scope.extents)
        case ListExpr():
            return evaluate_list(expr, scope)
        case Comprehension():
            return _comprehension(expr, scope)
        case Name() | Splice() | Not():
            raise ParseError("this belongs into a body (wrap, unwrap), not into a size")


def _lookup(names: Names, name: str, sigil: str) -> Value:
    if name not in names:
        raise UnknownNameError(
            f"{sigil}{name} is not bound",
            hint=nearest(f"{sigil}{name}", (f"{sigil}{n}" for n in names)),
        )
    return names[name]


def _comprehension(expr: Comprehension, scope: Scope) -> Value:
    """A value for each number below the extent that fulfils the condition, in order."""
    extent = integer(evaluate(expr.extent, scope), "the extent of a list")
    if extent < 0:
        raise IndexOutOfRangeError(f"a list for ${expr.variable} in {extent}: that is negative")
    repeats = scope.repeats * max(extent, 1)
    if repeats > MAX_REPEATS:
        raise LimitError(f"nested lists would compute {repeats} elements, more than {MAX_REPEATS}")
    values: list[Value] = []
    for number in range(require_length(extent)):
        names = {**scope.names, expr.variable: number}
        inside = replace(scope, names=names, repeats=repeats)
        if expr.condition is None or integer(evaluate(expr.condition, inside), "the condition"):
            values.append(evaluate(expr.value, inside))
    return tuple(values)


def _item(base: Value, index: Value) -> Value:
    if not isinstance(base, tuple):
        raise KindMismatchError(f"{describe(base)} is no list and has no elements")
    if isinstance(index, tuple):
        return tuple(_item(base, each) for each in index)
    position = count(index, "the position of an element")
    if not 0 <= position < len(base):
        raise IndexOutOfRangeError(
            f"element {position} of {describe(base)}, which has {len(base)} (counted from 0)"
        )
    return base[position]


def _slice(base: Value, low: Expr | None, high: Expr | None, scope: Scope) -> Value:
    if not isinstance(base, tuple):
        raise KindMismatchError(f"{describe(base)} is no list and has no slices")
    start = 0 if low is None else count(evaluate(low, scope), "the start of a slice")
    end = len(base) if high is None else count(evaluate(high, scope), "the end of a slice")
    if not 0 <= start <= end <= len(base):
        raise IndexOutOfRangeError(
            f"slice [{start}:{end}] of {describe(base)}, which has {len(base)} elements",
            hint="slices are half-open, ordered and never clamped",
        )
    return base[start:end]


def evaluate_list(expr: ListExpr, scope: Scope, rank: int | None = None) -> tuple[Value, ...]:
    """The elements of a list; its open fill, if any, makes it `rank` long."""
    return tuple(value for value, _ in evaluate_elements(expr, scope, rank))


def evaluate_elements(
    expr: ListExpr, scope: Scope, rank: int | None = None
) -> list[tuple[Value, Element]]:
    """Each element of a list with the tree it came from."""
    runs = [(_run(element, scope), element) for element in expr.elements]
    fills = [element for run, element in runs if run is None]
    if len(fills) > 1:
        raise RankMismatchError(
            "a list has at most one `...` without a length", hint="write `value...{count}`"
        )
    fixed = require_length(sum(len(run) for run, _ in runs if run is not None))
    result: list[tuple[Value, Element]] = []
    for run, element in runs:
        if run is None:
            run = (_single(element, scope),) * _open_length(rank, fixed)
        result.extend((value, element) for value in run)
    return result


def _open_length(rank: int | None, fixed: int) -> int:
    if rank is None:
        raise RankMismatchError(
            "`...` has no rank to fill up to here", hint="write `value...{count}`"
        )
    if rank < fixed:
        raise RankMismatchError(
            f"a list of rank {rank} already has {fixed} elements without its `...`"
        )
    return rank - fixed


def _single(element: Element, scope: Scope) -> Value:
    if element.value == "+" or element.value == "-":
        raise ParseError(f"`{element.value}` alone is a row of a projection in cursor form")
    return evaluate(element.value, scope)


def _run(element: Element, scope: Scope) -> tuple[Value, ...] | None:
    """The values of one element; None when it fills what is left of the rank."""
    value = _single(element, scope)
    if not element.spread:
        return (value,)
    length = None if element.count is None else fill_count(element.count, scope)
    if isinstance(value, tuple):
        if length is not None and length != len(value):
            raise RankMismatchError(f"{describe(value)} has {len(value)} elements, not {length}")
        return value
    return None if length is None else (value,) * length


def fill_count(length_of: Expr, scope: Scope) -> int:
    """The `n` of `value...{n}`."""
    length = count(evaluate(length_of, scope), "the length of a fill")
    if length < 0:
        raise RankMismatchError(f"a fill has length {length}, which is negative")
    return require_length(length)
