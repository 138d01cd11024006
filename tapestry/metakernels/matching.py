"""Matches the patterns of input shapes: which sizes and lists their names stand for.

    >>> match_pattern("[$batch..., $n]", [2, 3, 4])
    Match(dims={'$n': (2, 4)}, groups={'$batch': (0, 2, [2, 3])})

Patterns of several inputs are solved together: one with two sequences of unknown length waits until
another pattern, a parameter or a `let` fixes one of them.

For a list of tensors, `$n[$i]` binds element i of the list `$n`, one per tensor; a name without
`[$i]` must be equal in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    walk,
)
from tapestry.metakernels.text import Text
from tapestry.metakernels.values import Names, Value, describe, integer


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
        self._elements: dict[str, dict[int, Binding]] = {}
        self.values: dict[str, Value] = {}

    def element(self, name: str, position: int) -> Value | None:
        """What `$name[position]` is, if that is known yet."""
        known = self.values.get(name)
        if isinstance(known, tuple):
            return known[position] if position < len(known) else None
        binding = self._elements.get(name, {}).get(position)
        return None if binding is None else binding.value

    def bind_element(self, name: str, place: Place, value: Value, source: str) -> None:
        """`$name[position]` is `value`; `$name` is bound once all its elements are."""
        known = self._bound.get(name)
        if known is not None:
            if not isinstance(known.value, tuple) or len(known.value) != place.count:
                raise KindMismatchError(
                    f"${name} is {describe(known.value)} in {known.source}, and ${name}[$"
                    f"{place.each}] needs a list of {place.count}"
                )
            element = self._elements.get(name, {}).get(
                place.position, Binding(known.value[place.position], known.source)
            )
            self._require_equal(f"{name}[{place.position}]", element, value, source)
            return
        elements = self._elements.setdefault(name, {})
        element = elements.setdefault(place.position, Binding(value, source))
        self._require_equal(f"{name}[{place.position}]", element, value, source)
        if len(elements) == place.count:
            ordered = tuple(elements[position].value for position in range(place.count))
            self.bind(name, ordered, elements[0].source)

    def bind(self, name: str, value: Value, source: str) -> None:
        """`$name` is `value`, says `source`; SizeMismatchError when another said otherwise."""
        known = self._bound.get(name)
        if known is None:
            self._bound[name] = Binding(value, source)
            self.values[name] = value
        else:
            self._require_equal(name, known, value, source)

    def _require_equal(self, name: str, known: Binding, value: Value, source: str) -> None:
        if isinstance(known.value, tuple) != isinstance(value, tuple):
            raise KindMismatchError(
                f"${name} is {describe(value)} in {source} but {describe(known.value)} in "
                f"{known.source}: it is a size in one and a list in the other"
            )
        if known.value != value:
            raise SizeMismatchError(
                f"${name} is {describe(value)} in {source} but {describe(known.value)} in "
                f"{known.source}; a name bound twice must be equal (rule 1)"
            )

    def knows(self, expr: Expr, local: Names | None = None) -> bool:
        """Whether every name that `expr` reads is bound, here or in `local`."""
        return variables(expr) <= self.values.keys() | (local or {}).keys()

    @property
    def scope(self) -> Scope:
        """The scope that evaluates expressions over these names."""
        return Scope(self.values)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a list a tensor is: `each` names the position, `count` is the length."""

    each: str
    position: int
    count: int

    @property
    def names(self) -> Names:
        """The position by its name."""
        return {self.each: self.position}


class Matcher:
    """One pattern against one shape, with the bindings that other patterns share.

    `place` says which tensor of a list this is.
    """

    def __init__(
        self,
        pattern: Pattern,
        shape: Shape[int],
        source: str,
        bindings: Bindings,
        place: Place | None = None,
    ) -> None:
        self.pattern = pattern
        self.shape = tuple(shape)
        self.source = source
        self.bindings = bindings
        self.place = place
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
        try:
            end = self._assign(self.pattern.items, 0, left)
        except SizeMismatchError as error:
            hint = error.hint or f"a shape that fits: {self.wanted()}"
            raise SizeMismatchError(error.message, hint=hint) from None
        assert end == len(self.shape)
        return True

    def wanted(self) -> str:
        """The pattern with what is known filled in: `[2, 3, $inner, $col]`."""
        return describe_pattern(self.pattern, self._known())

    def check_computed(self) -> None:
        """Require the sizes given by `=(expr)`, once every name is bound."""
        for expr, position in self._computed:
            wanted = integer(evaluate(expr, self._scope), "a size")
            if self.shape[position] != wanted:
                raise SizeMismatchError(
                    f"dimension {position} of {self.source} has size {self.shape[position]}, "
                    f"and {wanted} is required (shape {describe(self.shape)})"
                )

    def _length(self, item: PatternItem) -> int | None:
        if not isinstance(item, Sequence):
            return 1
        if item.pin is not None:
            known = self.bindings.knows(item.pin, self._local)
            return fill_count(item.pin, self._scope) if known else None
        value = None if item.name is None else self._value(item.name, item.each)
        return len(value) if isinstance(value, tuple) else None

    @property
    def _local(self) -> Names:
        return {} if self.place is None else self.place.names

    @property
    def _scope(self) -> Scope:
        return Scope({**self.bindings.values, **self._local})

    def _value(self, name: str, each: str | None) -> Value | None:
        """What a name of the pattern stands for in this tensor, if that is known."""
        if self.place is None or each is None:
            return self.bindings.values.get(name)
        return self.bindings.element(name, self.place.position)

    def _known(self) -> Mapping[str, Value]:
        """The names of the pattern, as far as they are known, for this tensor."""
        known = {**self.bindings.values, **self._local}
        for item in walk(self.pattern):
            if isinstance(item, Dimension | Sequence | Group) and item.name and item.each:
                value = self._value(item.name, item.each)
                known.pop(item.name, None)
                if value is not None:
                    known[item.name] = value
        return known

    def _bind(self, name: str, each: str | None, value: Value) -> None:
        if self.place is None or each is None:
            self.bindings.bind(name, value, self.source)
        else:
            self.bindings.bind_element(name, self.place, value, self.source)

    def _assign(self, items: tuple[PatternItem, ...], position: int, left: int) -> int:
        for item in items:
            match item:
                case Dimension(name, each):
                    size = self.shape[position]
                    self._bind(name, each, size)
                    self.match.dims.setdefault(f"${name}", (position, size))
                    position += 1
                case Sequence(name, each):
                    length = self._length(item)
                    end = position + (left if length is None else length)
                    self._bind_group(name, each, position, end)
                    position = end
                case Group(name, inner, each):
                    end = self._assign(inner, position, left)
                    self._bind_group(name, each, position, end)
                    position = end
                case Exactly(size):
                    self._computed.append((size, position))
                    position += 1
                case Anything():
                    position += 1
        return position

    def _bind_group(self, name: str | None, each: str | None, start: int, end: int) -> None:
        if name is None:
            return
        sizes = self.shape[start:end]
        self._bind(name, each, sizes)
        self.match.groups.setdefault(f"${name}", (start, end, list(sizes)))


def _leaves(items: tuple[PatternItem, ...]) -> list[PatternItem]:
    leaves: list[PatternItem] = []
    for item in items:
        leaves.extend(_leaves(item.items) if isinstance(item, Group) else (item,))
    return leaves


def element_names(pattern: Pattern) -> list[str]:
    """The names that a pattern binds with `[$i]`: lists, with an element for each tensor."""
    return [
        item.name
        for item in walk(pattern)
        if isinstance(item, Dimension | Sequence | Group)
        and item.name is not None
        and item.each is not None
    ]


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
