"""Matches the patterns of input shapes: which sizes and lists their names stand for.

    >>> match_pattern("[$batch..., $n]", [2, 3, 4])
    Match(dims={'$n': (2, 4)}, groups={'$batch': (0, 2, [2, 3])})

Patterns of several inputs are solved together: one with two sequences of unknown length waits until
another pattern, a parameter or a `let` fixes one of them.
"""

from __future__ import annotations

from collections.abc import Sequence as Shape
from dataclasses import dataclass
from typing import NamedTuple

from tapestry.metakernels.errors import (
    KindMismatchError,
    RankMismatchError,
    SizeMismatchError,
    UnderdeterminedPatternError,
)
from tapestry.metakernels.evaluation import Scope, evaluate, fill_count
from tapestry.metakernels.parsing import parse_pattern
from tapestry.metakernels.rendering import describe_pattern
from tapestry.metakernels.syntax import (
    Anything,
    Dimension,
    Exactly,
    Expr,
    Group,
    Pattern,
    PatternItem,
    Sequence,
    variables,
)
from tapestry.metakernels.text import Text
from tapestry.metakernels.values import Value, describe, integer


class Match(NamedTuple):
    """What the names of one pattern matched, and where.

    `dims` gives each single name its (position, size), `groups` each sequence or group its
    (start, end, sizes).
    """

    dims: dict[str, tuple[int, int]]
    groups: dict[str, tuple[int, int, list[int]]]


@dataclass(frozen=True, slots=True)
class Binding:
    """What a name stands for, and what bound it (`X`, `the parameter axis`)."""

    value: Value
    source: str


class Bindings:
    """The names bound so far; binding one twice requires equal values."""

    def __init__(self) -> None:
        self._bound: dict[str, Binding] = {}
        self.values: dict[str, Value] = {}

    def bind(self, name: str, value: Value, source: str) -> None:
        """`$name` is `value`, says `source`; SizeMismatchError when another said otherwise."""
        known = self._bound.get(name)
        if known is None:
            self._bound[name] = Binding(value, source)
            self.values[name] = value
        elif isinstance(known.value, tuple) != isinstance(value, tuple):
            raise KindMismatchError(
                f"${name} is {describe(value)} in {source} but {describe(known.value)} in "
                f"{known.source}: it is a size in one and a list in the other"
            )
        elif known.value != value:
            raise SizeMismatchError(
                f"${name} is {describe(value)} in {source} but {describe(known.value)} in "
                f"{known.source}; a name bound twice must be equal (rule 1)"
            )

    def knows(self, expr: Expr) -> bool:
        """Whether every name that `expr` reads is bound."""
        return variables(expr) <= self.values.keys()

    @property
    def scope(self) -> Scope:
        """The scope that evaluates expressions over these names."""
        return Scope(self.values)


class Matcher:
    """One pattern against one shape, with the bindings that other patterns share."""

    def __init__(
        self, pattern: Pattern, shape: Shape[int], source: str, bindings: Bindings
    ) -> None:
        self.pattern = pattern
        self.shape = tuple(shape)
        self.source = source
        self.bindings = bindings
        self.match = Match({}, {})
        self._computed: list[tuple[Expr, int]] = []

    def advance(self) -> bool:
        """Match if the lengths of all sequences (or of all but one) are known; whether it did."""
        lengths = [self._length(item) for item in _leaves(self.pattern.items)]
        if lengths.count(None) > 1:
            return False
        fixed = sum(length for length in lengths if length is not None)
        is_open = None in lengths
        left = len(self.shape) - fixed
        if left < 0 or (left > 0 and not is_open):
            raise RankMismatchError(
                f"{self.source} has rank {len(self.shape)} (shape {describe(self.shape)}), but "
                f"{self.wanted()} has rank {'at least ' if is_open else ''}{fixed}"
            )
        end = self._assign(self.pattern.items, 0, left)
        assert end == len(self.shape)
        return True

    def wanted(self) -> str:
        """The pattern with what is known filled in: `[2, 3, $inner, $col]`."""
        return describe_pattern(self.pattern, self.bindings.values)

    def check_computed(self) -> None:
        """Require the sizes given by `=(expr)`, once every name is bound."""
        for expr, position in self._computed:
            wanted = integer(evaluate(expr, self.bindings.scope), "a size")
            if self.shape[position] != wanted:
                raise SizeMismatchError(
                    f"dimension {position} of {self.source} has size {self.shape[position]}, "
                    f"and {wanted} is required (shape {describe(self.shape)})"
                )

    def _length(self, item: PatternItem) -> int | None:
        if not isinstance(item, Sequence):
            return 1
        if item.pin is not None:
            return (
                fill_count(item.pin, self.bindings.scope) if self.bindings.knows(item.pin) else None
            )
        known = None if item.name is None else self.bindings.values.get(item.name)
        return len(known) if isinstance(known, tuple) else None

    def _assign(self, items: tuple[PatternItem, ...], position: int, left: int) -> int:
        for item in items:
            match item:
                case Dimension(name):
                    size = self.shape[position]
                    self.bindings.bind(name, size, self.source)
                    self.match.dims.setdefault(f"${name}", (position, size))
                    position += 1
                case Sequence(name):
                    length = self._length(item)
                    end = position + (left if length is None else length)
                    self._bind_group(name, position, end)
                    position = end
                case Group(name, inner):
                    end = self._assign(inner, position, left)
                    self._bind_group(name, position, end)
                    position = end
                case Exactly(size):
                    self._computed.append((size, position))
                    position += 1
                case Anything():
                    position += 1
        return position

    def _bind_group(self, name: str | None, start: int, end: int) -> None:
        if name is None:
            return
        sizes = self.shape[start:end]
        self.bindings.bind(name, sizes, self.source)
        self.match.groups.setdefault(f"${name}", (start, end, list(sizes)))


def _leaves(items: tuple[PatternItem, ...]) -> list[PatternItem]:
    leaves: list[PatternItem] = []
    for item in items:
        leaves.extend(_leaves(item.items) if isinstance(item, Group) else (item,))
    return leaves


def underdetermined(matcher: Matcher) -> UnderdeterminedPatternError:
    """The error for a pattern whose lengths nothing determines."""
    return UnderdeterminedPatternError(
        f"{matcher.source}: {matcher.wanted()} has several sequences of unknown length and can be "
        f"matched to shape {describe(matcher.shape)} in several ways",
        hint="pin one of them, as in `$name...{$axis}`, or bind it in another input",
    )


def match_pattern(text: str | Text, shape: Shape[int]) -> Match:
    """Match one pattern against one shape; a `WeftError` says why it does not fit."""
    matcher = Matcher(parse_pattern(text), shape, "the shape", Bindings())
    if not matcher.advance():
        raise underdetermined(matcher)
    matcher.check_computed()
    return matcher.match
