"""ZSpace attributes: ranges, projections, partitions and domains of `tapestry.zspace` in IR.

    #zspace.range<[0, -1] : [10, 12]>
    #zspace.projection<(d0, d1) -> (2 * d0 - 1, d1) :> [3, 1]>
    #zspace.partition<grid [[0, 5, 10], [0, 12]]>
    #zspace.partition<ranges [[0, 0] : [5, 12], [5, 0] : [10, 12]]>
    #zspace.domain<(d0, d1) : d0 - d1 >= 0, -d0 + d1 + 2 >= 0>

An attribute holds the value itself, `RangeAttr(Range.of((10, 12))).data`, so comparing and hashing
attributes is comparing and hashing the geometry.

A projection's box, `:> [3, 1]`, is left out when it is one cell. Index dimensions print as `d0`,
`d1` and so on; any distinct names are read. A row is a sum of constants and multiples in any
order: `2 * d0 - d1 + 3` and `3 + d0 * 2 - d1` are one row; `d0 >= d1` is `d0 - d1 >= 0`.

Other dialects write the same text inside their own syntax with the `parse_*` and `print_*`
functions. What is malformed is an error at its place in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from xdsl.ir import Data, Dialect
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tapestry.zspace import AffineMap, Domain, Partition, Point, Projection, Range, ZSpaceError

_T = TypeVar("_T")

_RANGE_TEXT = re.compile(r"\[([-\d,\s]*)\]\s*:\s*\[([-\d,\s]*)\]")
_PROJECTION_TEXT = re.compile(
    r"\([\w\s,]*\)\s*->\s*\([-+*\w\s,]*\)(?:\s*:>\s*\[[\d,\s]*\]|(?!\s*(?::>|//)))"
)
_PROJECTIONS: dict[str, Projection] = {}
"""Projections by text: a program repeats a few of them on thousands of operations."""

_PROJECTIONS_KEPT = 4096


def _require_i64(numbers: Iterable[int]) -> None:
    """Coordinates are 64-bit integers: in IR, in kernels and in arrays."""
    for number in numbers:
        if not -(1 << 63) <= number < 1 << 63:
            raise VerifyException(f"{number} does not fit a 64-bit coordinate")


def parse_range(parser: AttrParser) -> Range:
    """Parse `[start] : [end]`."""
    at = parser.pos
    match = _RANGE_TEXT.match(parser.lexer.input.content, at)
    if match is not None:
        try:
            made = Range(_point(match[1]), _point(match[2]))
        except ValueError:
            pass  # The token parser below finds out where it is wrong.
        else:
            _skip_to(parser, match.end())
            return made
    start = _parse_point(parser, " to start a range, such as [0, 0] : [10, 12]")
    parser.parse_punctuation(":", " between the start and the end of a range")
    end = _parse_point(parser, " to end a range, such as [0, 0] : [10, 12]")
    return _located(parser, at, lambda: Range(start, end))


def parse_projection(parser: AttrParser) -> Projection:
    """Parse `(dims) -> (rows)`, optionally followed by `:> [shape]`."""
    at = parser.pos
    match = _PROJECTION_TEXT.match(parser.lexer.input.content, at)
    if match is None:
        return _parse_projection(parser, at)
    known = _PROJECTIONS.get(match[0])
    if known is not None:
        _skip_to(parser, match.end())
        return known
    made = _parse_projection(parser, at)
    if len(_PROJECTIONS) >= _PROJECTIONS_KEPT:
        _PROJECTIONS.clear()
    _PROJECTIONS[match[0]] = made
    return made


def parse_partition(parser: AttrParser) -> Partition:
    """Parse `grid [[cuts], ...]` or `ranges [range, ...]`."""
    at = parser.pos
    kind = parser.parse_keyword_in(("grid", "ranges"), " to start a partition")
    if kind == "grid":
        cuts = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE,
            lambda: _parse_point(parser, " to list the cuts of a dimension, such as [0, 5, 10]"),
        )
        return _located(parser, at, lambda: Partition.grid(cuts))
    ranges = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_range(parser))
    return _located(parser, at, lambda: Partition.explicit(ranges))


def parse_domain(parser: AttrParser, names: Sequence[str]) -> Domain:
    """Parse `row >= row, ...` over index dimensions with the given names."""
    at = parser.pos
    numbers = {name: number for number, name in enumerate(names)}
    rows = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, lambda: _parse_inequality(parser, numbers)
    )
    return _located(
        parser, at, lambda: Domain.of([row for row, _ in rows], [b for _, b in rows], len(numbers))
    )


def print_range(value: Range, printer: Printer) -> None:
    """Print the text that `parse_range` reads."""
    printer.print_string(str(value))


def print_projection(value: Projection, printer: Printer) -> None:
    """Print the text that `parse_projection` reads."""
    printer.print_string(str(value))


def print_partition(value: Partition, printer: Printer) -> None:
    """Print the text that `parse_partition` reads."""
    printer.print_string(str(value))


@irdl_attr_definition
class RangeAttr(Data[Range]):
    """A range: `#zspace.range<[0, 0] : [10, 12]>`."""

    name = "zspace.range"

    def verify(self) -> None:
        _require_i64((*self.data.start, *self.data.end))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Range:
        with parser.in_angle_brackets():
            return parse_range(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_range(self.data, printer)


@irdl_attr_definition
class ProjectionAttr(Data[Projection]):
    """A projection: `#zspace.projection<(d0, d1) -> (d0, 0) :> [1, 5]>`."""

    name = "zspace.projection"

    def verify(self) -> None:
        mapping = self.data.map
        _require_i64((*self.data.shape, *mapping.offset))
        _require_i64(factor for terms in mapping.terms for factor, _ in terms)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Projection:
        with parser.in_angle_brackets():
            return parse_projection(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_projection(self.data, printer)


@irdl_attr_definition
class PartitionAttr(Data[Partition]):
    """A partition: `#zspace.partition<grid [[0, 5, 10], [0, 12]]>`, or `ranges [...]`."""

    name = "zspace.partition"

    def verify(self) -> None:
        for cuts in self.data.cuts or ():
            _require_i64(cuts)
        for box in self.data.boxes or ():
            _require_i64((*box.start, *box.end))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Partition:
        with parser.in_angle_brackets():
            return parse_partition(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_partition(self.data, printer)


@irdl_attr_definition
class DomainAttr(Data[Domain]):
    """The points where rows are not negative: `#zspace.domain<(d0, d1) : d0 - d1 >= 0>`."""

    name = "zspace.domain"

    def verify(self) -> None:
        _require_i64(self.data.rows.offset)
        _require_i64(factor for terms in self.data.rows.terms for factor, _ in terms)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Domain:
        with parser.in_angle_brackets():
            names: dict[str, int] = {}
            parser.parse_comma_separated_list(
                parser.Delimiter.PAREN,
                lambda: _parse_name(parser, names),
                " to name the index dimensions of a domain, such as (d0, d1) : d0 - d1 >= 0",
            )
            parser.parse_punctuation(":", " before the rows of a domain")
            return parse_domain(parser, list(names))

    def print_parameter(self, printer: Printer) -> None:
        names = ", ".join(f"d{dim}" for dim in range(self.data.rank))
        with printer.in_angle_brackets():
            printer.print_string(f"({names}) : {self.data}")


ZSpace = Dialect("zspace", [], [RangeAttr, ProjectionAttr, PartitionAttr, DomainAttr])


def _parse_inequality(parser: AttrParser, names: dict[str, int]) -> tuple[list[int], int]:
    """`row >= row` as the row, and the constant, that must not be negative."""
    left, low = _parse_row(parser, names)
    parser.parse_punctuation(">", " in a row of a domain, such as d0 - d1 >= 0")
    parser.parse_punctuation("=", " in a row of a domain, such as d0 - d1 >= 0")
    right, high = _parse_row(parser, names)
    return [a - b for a, b in zip(left, right, strict=True)], low - high


def _parse_projection(parser: AttrParser, at: int) -> Projection:
    names: dict[str, int] = {}
    parser.parse_comma_separated_list(
        parser.Delimiter.PAREN,
        lambda: _parse_name(parser, names),
        " to name the index dimensions of a projection, such as (d0, d1) -> (d0, 0)",
    )
    parser.parse_punctuation("->", " after the index dimensions of a projection")
    rows = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN,
        lambda: _parse_row(parser, names),
        " to hold one row per tensor dimension, such as (d0, 0)",
    )
    mapping = AffineMap.of([row for row, _ in rows], [b for _, b in rows], len(names))
    # A colon alone belongs to whatever follows the projection.
    if not parser.lexer.input.content.startswith(":>", parser.pos):
        return Projection.cells(mapping)
    parser.parse_punctuation(":")
    parser.parse_punctuation(">")
    shape = _parse_point(parser, " to give the shape of the box, such as [1, 5]")
    return _located(parser, at, lambda: Projection(mapping, shape))


def _parse_name(parser: AttrParser, names: dict[str, int]) -> None:
    at = parser.pos
    name = parser.parse_identifier(" to name an index dimension")
    if name in names:
        parser.raise_error(f"index dimension {name} is named twice", at, at + len(name))
    names[name] = len(names)


def _parse_row(parser: AttrParser, names: dict[str, int]) -> tuple[list[int], int]:
    """One row as (coefficient per index dimension, constant)."""
    row = [0] * len(names)
    constant = 0
    sign = -1 if parser.parse_optional_punctuation("-") else 1
    while True:
        factor, dim = _parse_term(parser, names)
        if dim is None:
            constant += sign * factor
        else:
            row[dim] += sign * factor
        if parser.parse_optional_punctuation("+"):
            sign = 1
        elif parser.parse_optional_punctuation("-"):
            sign = -1
        else:
            return row, constant


def _parse_term(parser: AttrParser, names: dict[str, int]) -> tuple[int, int | None]:
    """`3`, `d0`, `2 * d0` or `d0 * 2` as (factor, index dimension)."""
    factor = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    if factor is None:
        dim = _parse_dim(parser, names)
        if not parser.parse_optional_punctuation("*"):
            return 1, dim
        at = parser.pos
        factor = parser.parse_optional_integer(allow_boolean=False)
        if factor is None:
            parser.raise_error("a row multiplies an index dimension by an integer only", at)
        return factor, dim
    if parser.parse_optional_punctuation("*"):
        return factor, _parse_dim(parser, names)
    return factor, None


def _parse_dim(parser: AttrParser, names: dict[str, int]) -> int:
    at = parser.pos
    name = parser.parse_identifier(" or integer in a row, such as 2 * d0 - d1 + 3")
    dim = names.get(name)
    if dim is None:
        parser.raise_error(
            f"{name} is not an index dimension here: they are ({', '.join(names)})",
            at,
            at + len(name),
        )
    return dim


def _parse_point(parser: AttrParser, context: str) -> Point:
    return tuple(
        parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False), context
        )
    )


def _point(text: str) -> Point:
    return tuple(map(int, text.split(","))) if text.strip() else ()


def _skip_to(parser: AttrParser, position: int) -> None:
    """Go on at `position`, given that the current token is one character before it."""
    parser.lexer.pos = position
    parser.parse_characters(parser.lexer.input.content[parser.pos])


def _located(parser: AttrParser, at: int, make: Callable[[], _T]) -> _T:
    """`make()`, its ZSpaceError turned into one at the text from `at` to here."""
    try:
        return make()
    except ZSpaceError as error:
        text = parser.lexer.input.content[at : parser.pos].rstrip()
        parser.raise_error(str(error), at, at + len(text))
