"""Rules as data: the applications that are matched, and those that take their place.

    match:   {t: {op: transpose, x: x, perm: $p}, y: {op: transpose, x: t, perm: $q}}
    produce: {y: {op: transpose, x: x, perm: "$p[$q]"}}

`x` is an input of this rule: used, and made by nothing. `y` is an output: matched, and produced.
`t` is matched only; it stays in the program when something else uses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias, TypeVar

from tapestry.diagnostics import Location
from tapestry.metakernels.documents import Entries
from tapestry.metakernels.errors import WeftError
from tapestry.metakernels.syntax import Call, DtypeBinding, Expr, Name, Pattern, walk
from tapestry.metakernels.templates import Input, Source, Template
from tapestry.metakernels.text import Text


class RuleError(WeftError):
    """A rule that may not be used: one of its obligations does not hold."""

    kind = "rule"


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor, by its name in the rule."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number in the place of a tensor, as an expression over sizes and parameters.

    Matched, it is a tensor with that number in every cell; produced, one of rank 0, whose dtype is
    that of the tensors beside it.
    """

    source: Source[Expr]


Operand: TypeAlias = Value | Number

SINGLE: Final = -1
"""The size of what is one tensor and no list."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Application:
    """A metakernel applied: operands in the order of its inputs, parameters as text.

    `sizes` says per input how many operands are its list; `SINGLE` is one that is no list, and an
    optional input that is left out is an empty one. `count` is the length of a list of results.
    """

    name: str
    template: Template
    operands: tuple[Operand, ...]
    sizes: tuple[int, ...]
    count: int
    arguments: Mapping[str, Text]
    location: Location

    @property
    def results(self) -> tuple[str, ...]:
        """The names of its tensors: `y`; `y.values`, `y.positions`; or `y.0`, `y.1` of a list."""
        outputs = self.template.outputs
        if any(output.each is not None for output in outputs):
            return tuple(f"{self.name}.{position}" for position in range(self.count))
        if len(outputs) > 1:
            return tuple(f"{self.name}.{output.name}" for output in outputs)
        return (self.name,)

    @property
    def entries(self) -> tuple[Input, ...]:
        """The input that each operand is for."""
        counted = zip(self.template.inputs, self.sizes, strict=True)
        return tuple(entry for entry, size in counted for _ in range(abs(size)))

    def per_input(self, operands: Sequence[T]) -> list[T | Sequence[T]]:
        """What stands for the operands, one entry per input; a list is one entry."""
        pending = iter(operands)
        return [
            next(pending) if size == SINGLE else [next(pending) for _ in range(size)]
            for size in self.sizes
        ]

    @property
    def values(self) -> tuple[str, ...]:
        """The names of the tensors that it is applied to."""
        return tuple(operand.name for operand in self.operands if isinstance(operand, Value))


@dataclass(frozen=True, slots=True)
class Typed:
    """What the shape and the dtype of a tensor look like."""

    name: str
    shape: Source[Pattern]
    dtype: Source[DtypeBinding]


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule in which every name is known, and whose productions come after what they use.

    `aliases` are outputs that are a tensor which is there already.
    """

    name: str
    location: Location
    doc: str
    matched: tuple[Application, ...]
    types: tuple[Typed, ...]
    choices: tuple[tuple[str, Source[Expr]], ...]
    lets: tuple[tuple[str, Source[Expr]], ...]
    conditions: tuple[Source[Expr], ...]
    produced: tuple[Application, ...]
    aliases: Mapping[str, str]
    exact: bool
    document: Entries

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The tensors that the matched applications use and do not make, in order."""
        made = {name for application in self.matched for name in application.results}
        used = [name for application in self.matched for name in application.values]
        return tuple(dict.fromkeys(name for name in used if name not in made))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The tensors that are matched and produced, in the order of the match."""
        produced = {name for application in self.produced for name in application.results}
        produced.update(self.aliases)
        matched = (name for application in self.matched for name in application.results)
        return tuple(name for name in matched if name in produced)

    @cached_property
    def used(self) -> tuple[str, ...]:
        """The tensors of the match that take part in what is produced."""
        made = {name for application in self.produced for name in application.results}
        used = [name for application in self.produced for name in application.values]
        used += self.aliases.values()
        return tuple(dict.fromkeys(name for name in used if name not in made))

    @cached_property
    def single_uses(self) -> frozenset[str]:
        """The tensors of which the conditions say that they have one use."""
        return frozenset(
            argument.name
            for source in self.conditions
            for node in walk(source.tree)
            if isinstance(node, Call) and node.function == "single_use"
            for argument in node.arguments
            if isinstance(argument, Name)
        )

    @cached_property
    def removed(self) -> tuple[Application, ...]:
        """The matched applications that are gone once the rule was applied, whatever is around."""
        kept = {name for application in self.produced for name in application.values}
        kept.update(self.aliases.values())
        gone: list[Application] = []
        for application in reversed(self.matched):
            users = [user for user in self.matched if set(user.values) & set(application.results)]
            replaced = set(application.results) <= set(self.outputs)
            dies = (
                set(application.results) <= self.single_uses
                and all(user in gone for user in users)
                and not kept & set(application.results)
            )
            if replaced or (users and dies):
                gone.append(application)
        return tuple(reversed(gone))
