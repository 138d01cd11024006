"""What xDSL says of text that is no program, with its place and what would be right.

    said = explained(error, operations=lambda dialect: ["weft.apply", ...])
    said.message, said.hint     'Operation weft.aply is not registered', 'did you mean weft.apply?'

xDSL marks what comes after the name of an operation that it does not know, and says nothing where a
text ends too early.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias, cast

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span

from tapestry.diagnostics import Location
from tapestry.pipelines import nearest

_Span: TypeAlias = "Span[str] | Span[bytes]"

_UNKNOWN = re.compile(r"Operation (\S+) is not registered")


@dataclass(frozen=True)
class SyntaxMessage:
    """A message, the place that it is about, what would be right, and the line with a mark."""

    message: str
    hint: str | None
    location: Location
    shown: str


def explained(error: ParseError, operations: Callable[[str], Iterable[str]]) -> SyntaxMessage:
    """An error of xDSL's parser; `operations` gives the names of a dialect's, or those of all."""
    span, message, hint = error.span, error.msg.strip(), None
    content = span.input.content
    text = content if isinstance(content, str) else content.decode("latin-1")
    unknown = _UNKNOWN.match(message)
    if unknown is not None:
        name = unknown[1]
        # The mark is at what comes after the name; or at the name, where that is quoted.
        before = text[: span.start].rstrip().removesuffix('"')
        at = len(before) - len(name) if before.endswith(name) else text.find(name, span.start)
        span = span if at < 0 else Span(at, at + len(name), cast("Input[str]", span.input))
        hint = nearest(name, operations(name.split(".")[0]))
    elif not text[span.start :].strip():
        message = f"the text ends here{', ' if message else ''}{message}"
        hint = "a `}` is missing, or the rest of the file" if "block" in message else None
    return SyntaxMessage(message, hint, _location(span), _shown(span))


def _location(span: _Span) -> Location:
    place = span.get_location()
    return Location(str(place.file), place.line, place.col)


def _shown(span: _Span) -> str:
    lines = span.print_with_context(None).splitlines()[1:]
    return "\n".join(line.rstrip() for line in lines if line.strip())
