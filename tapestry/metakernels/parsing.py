"""From text to the trees of `syntax`: patterns, expressions, lists, projections, dtypes, bodies.

    >>> parse_pattern("[$batch..., $n]").items
    (Sequence(name='batch', each=None, pin=None), Dimension(name='n', each=None))
    >>> try:
    ...     parse_pattern("[$a, ]")
    ... except ParseError as error:
    ...     print(error.message)
    cannot read the pattern `[$a, ]`: unexpected `]` at column 6

The grammar (`grammar.lark`) is LALR(1); its tables are beside it (`tables.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final, TypeVar, cast

from lark import Lark, Token, UnexpectedInput, UnexpectedToken

from tapestry.metakernels.errors import LimitError, ParseError
from tapestry.metakernels.syntax import (
    Clause,
    DtypeBinding,
    Expr,
    ListExpr,
    Pattern,
    ProjectionExpr,
    Tree,
    Variable,
    depth,
)
from tapestry.metakernels.tables import STARTS, parser_of
from tapestry.metakernels.text import Text
from tapestry.metakernels.trees import TreeBuilder

MAX_LENGTH: Final = 2000
"""Characters in one expression."""

MAX_DEPTH: Final = 100
"""Levels of the tree of one expression, which parentheses that only group leave no trace in."""

_EXPECTED: Final = {
    "pattern": "a size (`$name`), a number, `=(expression)`, `_` or `...`",
    "list": "an expression such as `2 * $n`, or `...`",
    "projection": "an expression such as `2 * $n` or `@row`, `+`, `-` or `...`",
    "clause": "a number of members such as `$k in len($n)`",
    "dtype": "`$t`, `$t: float`, or one of float, int, number, any and the dtypes",
}

_T = TypeVar("_T", bound=Tree)


class _Callbacks:
    """What lark calls: the builder's methods by rule name, with the children as one list."""

    def __init__(self, builder: TreeBuilder) -> None:
        self._builder = builder

    def __getattr__(self, name: str) -> Callable[[list[Any]], object]:
        method: Callable[..., object] = getattr(self._builder, name)
        return lambda children: method(*children)


@cache
def _grammar() -> Lark:
    return parser_of(_Callbacks(TreeBuilder()))


@lru_cache(maxsize=4096)
def _parse(start: str, text: str) -> Tree:
    read = cast("Callable[..., Tree]", _grammar().parse)  # pyright: ignore[reportUnknownMemberType]
    return read(text, start=start)


def parse(start: str, source: str | Text, kind: type[_T]) -> _T:
    """The tree of `source` read by the grammar's rule `start`; it must be a `kind`."""
    text = Text.of(source)
    what = f"cannot read the {STARTS[start]} `{_shortened(text.text)}`"
    if len(text.text) > MAX_LENGTH:
        raise LimitError(
            f"{what}: it has {len(text.text)} characters, more than {MAX_LENGTH}",
            location=text.location,
            hint="name its parts in `let`",
        )
    try:
        tree = _parse(start, text.text)
    except UnexpectedInput as error:
        raise _syntax_error(error, start, what, text) from None
    except ParseError as error:
        raise error.within(what, text.location) from None
    if depth(tree) > MAX_DEPTH:
        raise LimitError(
            f"{what}: it nests deeper than {MAX_DEPTH} levels",
            location=text.location,
            hint="name its parts in `let`",
        )
    assert isinstance(tree, kind)
    return tree


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def _syntax_error(error: UnexpectedInput, start: str, what: str, text: Text) -> ParseError:
    token = cast(Token, cast(Any, error).token) if isinstance(error, UnexpectedToken) else None
    at_end = token is not None and token.type == "$END"
    offset = len(text.text) if at_end else (error.pos_in_stream or 0)
    if at_end:
        found = "unexpected end"
    else:
        found = (
            f"unexpected `{text.text[offset] if token is None else token}` at column {offset + 1}"
        )
    hint = _hint(error, start, text.text, offset)
    return ParseError(f"{what}: {found}", location=text.at(offset), hint=hint)


def _hint(error: UnexpectedInput, start: str, text: str, offset: int) -> str | None:
    if text[max(0, offset - 1) : offset + 1] == ">:" or text[offset : offset + 2] == ">:":
        return "the shape of the box is written after `:>`"
    if start != "pattern" and text[offset : offset + 1] == "=":
        return "equality is written `==`"
    if text[max(0, offset - 1) : offset + 1] == "**":
        return "a power is written `^`"
    if text[offset:].startswith("if "):
        return "a choice is written `where(condition, a, b)`"
    accepted: set[str] = set(
        getattr(error, "accepts", None) or getattr(error, "allowed", None) or ()
    )
    if accepted == {"LSQB"}:
        return "it is written in brackets: `[...]`"
    if {"VARIABLE", "NAME", "INT"} & accepted:
        return f"expected {_EXPECTED.get(start, 'a value')}"
    closing = [
        mark for name, mark in (("RSQB", "]"), ("RPAR", ")"), ("RBRACE", "}")) if name in accepted
    ]
    if closing:
        return f"expected `,`, an operator or `{closing[0]}`"
    return None


def parse_pattern(text: str | Text) -> Pattern:
    """The pattern of a shape, as in `inputs.*.shape`; ParseError when it is not one."""
    return parse("pattern", text, Pattern)


def parse_expression(text: str | Text) -> Expr:
    """An integer expression, such as `2 * $pad + 1` or `sum($n[:$k])`."""
    return cast(Expr, parse("expr", text, object))  # pyright: ignore[reportArgumentType]


def parse_list(text: str | Text) -> ListExpr:
    """A list with splices and fills, such as `[$batch..., 1...{2}]`."""
    return parse("list", text, ListExpr)


def parse_projection(text: str | Text) -> ProjectionExpr:
    """The projection of an input or output, in cursor or affine form."""
    return parse("projection", text, ProjectionExpr)


def parse_clause(text: str | Text) -> Clause:
    """What `for` says: `$k in len($n)`."""
    return parse("clause", text, Clause)


def parse_variable(text: str | Text) -> str:
    """The name in what `each` says: `$i`."""
    tree = parse_expression(text)
    if isinstance(tree, Variable):
        return tree.name
    source = Text.of(text)
    raise ParseError(
        f"`{_shortened(source.text)}` is no name for the position in a list",
        location=source.location,
        hint="each: $i",
    )


def parse_dtype(text: str | Text) -> DtypeBinding:
    """What an input's `dtype` binds and allows: `$t`, `$t: float`, `int`."""
    return parse("dtype", text, DtypeBinding)


def parse_dtype_value(text: str | Text) -> Expr:
    """A computed dtype: `f32`, `$t` or `promote($a, $b)`."""
    return cast(Expr, parse("dtype_value", text, object))  # pyright: ignore[reportArgumentType]


def parse_scalar(text: str | Text) -> Expr:
    """A scalar expression, as in `wrap` and `unwrap`."""
    return cast(Expr, parse("scalar", text, object))  # pyright: ignore[reportArgumentType]


def parse_condition(text: str | Text) -> Expr:
    """A condition of a rewrite rule: `$n > 1`, or `single_use(y)` about a tensor."""
    return cast(Expr, parse("condition", text, object))  # pyright: ignore[reportArgumentType]
