"""Templates: one operator each, read from a document into trees, with every name checked.

    relu:
      inputs: {x: {shape: "[$d...]", dtype: number}}
      index: "[$d...]"
      wrap: "max(x, 0)"

A template says how shapes are matched (`inputs`), which index space the operation runs over
(`index` and `fold`), what a point computes (`wrap`, `unwrap`) and where it is written (`outputs`).
Without `wrap` it moves data only; with `steps` it is made of other templates; with `for` it is a
family of operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from tapestry.diagnostics import Location
from tapestry.metakernels.documents import Entries
from tapestry.metakernels.errors import WeftError
from tapestry.metakernels.parameters import Parameter
from tapestry.metakernels.syntax import (
    Clause,
    DtypeBinding,
    Expr,
    ListExpr,
    Pattern,
    ProjectionExpr,
    variables,
)
from tapestry.metakernels.text import Text

_T_co = TypeVar("_T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Source(Generic[_T_co]):
    """A tree and the text it was read from."""

    tree: _T_co
    text: Text

    def explain(self, what: str) -> Explaining:
        """Errors raised inside say that they are about `what`, and where that stands."""
        return Explaining(self.text, what)


@dataclass(frozen=True, slots=True)
class Explaining:
    """Gives the errors raised inside a text to explain; entered for every text of a template."""

    text: Text
    what: str

    def __enter__(self) -> None:
        """Nothing is to be prepared."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if isinstance(error, WeftError):
            raise error.within(f"{self.what} `{self.text}`", self.text.location) from None


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor that is read: what its shape looks like, and which cell each point reads.

    `fill` is what is read outside the tensor; without one, all reads are inside. With `each` it is
    a list of tensors, and `each` names the position in it. `when` picks what a member of a family
    reads. An optional input may be left out.
    """

    name: str
    shape: Source[Pattern]
    projection: Source[ProjectionExpr]
    dtype: Source[DtypeBinding]
    fill: Source[Expr] | None = None
    each: str | None = None
    when: Source[Expr] | None = None
    optional: bool = False

    @property
    def counted(self) -> str | None:
        """The name whose `#` says how many tensors there are, unless it is always one."""
        return self.name if self.optional else self.each


@dataclass(frozen=True, slots=True)
class Output:
    """A tensor that is written; its shape is that of the mapped index unless given.

    With `each` it is a list of `count` tensors, and `when` picks which of them a member writes.
    """

    name: str
    shape: Source[ListExpr] | None
    projection: Source[ProjectionExpr]
    dtype: Source[Expr] | None
    each: str | None = None
    count: Source[Expr] | None = None
    when: Source[Expr] | None = None


@dataclass(frozen=True, slots=True)
class Fold:
    """A folded index dimension (or several, when its extent is a list), or the scanned one."""

    label: str
    extent: Source[Expr]
    monoid: str


@dataclass(frozen=True, slots=True)
class MonoidDefinition:
    """A way to fold that the template defines: per part of the state, its zero and its merge."""

    name: str
    location: Location
    zero: tuple[Source[Expr], ...]
    merge: tuple[Source[Expr], ...]
    commutative: bool


@dataclass(frozen=True, slots=True)
class External:
    """A kernel that is registered by name, and the parameters that it is called with."""

    kernel: str
    parameters: tuple[tuple[str, Source[Expr]], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One application of a composite: `arguments` are its inputs and parameters, as text."""

    name: str
    op: str
    arguments: Mapping[str, Text]
    location: Location


@dataclass(frozen=True, slots=True)
class Example:
    """An application that a test runs: values are nested lists of numbers."""

    parameters: Mapping[str, Any]
    inputs: Mapping[str, Any]
    dtypes: Mapping[str, str]
    outputs: Mapping[str, Any]


Bodies = tuple[tuple[str | None, Source[Expr]], ...]
"""Scalar bodies, each with the output it is for (None when they are listed in order)."""


@dataclass(frozen=True, eq=False)
class Template:
    """One operator. Everything in it is parsed, and every name it uses is bound."""

    name: str
    location: Location
    doc: str
    formula: str
    source: str
    parameters: tuple[Parameter, ...]
    inputs: tuple[Input, ...]
    lets: tuple[tuple[str, Source[Expr]], ...]
    requirements: tuple[Source[Expr], ...]
    family: tuple[Source[Clause], ...]
    index: Source[ListExpr] | None
    folds: tuple[Fold, ...]
    scans: tuple[Fold, ...]
    domain: tuple[Source[Expr], ...]
    monoids: tuple[MonoidDefinition, ...]
    external: External | None
    wrap: Bodies
    unwrap: Bodies
    outputs: tuple[Output, ...]
    steps: tuple[Step, ...]
    view: str | None
    examples: tuple[Example, ...]
    document: Entries

    @cached_property
    def member_names(self) -> frozenset[str]:
        """The names that each member of a family has its own values for."""
        names = {source.tree.variable for source in self.family}
        for _ in self.lets:
            names |= {name for name, source in self.lets if variables(source.tree) & names}
        return frozenset(names)

    @cached_property
    def member_lets(self) -> tuple[tuple[str, Source[Expr]], ...]:
        """The lets that each member computes, in an order in which they can be."""
        pending = {name: source for name, source in self.lets if name in self.member_names}
        ordered: list[tuple[str, Source[Expr]]] = []
        while pending:
            free = [n for n, source in pending.items() if not variables(source.tree) & set(pending)]
            ordered.extend((name, pending.pop(name)) for name in free or tuple(pending))
        return tuple(ordered)

    @cached_property
    def member_requirements(self) -> tuple[Source[Expr], ...]:
        """The requirements that must hold for each member."""
        return tuple(r for r in self.requirements if variables(r.tree) & self.member_names)

    @property
    def monoid(self) -> str | None:
        """What is folded or scanned by; None when nothing is."""
        return next((fold.monoid for fold in (*self.scans, *self.folds)), None)
