"""Templates: one operator each, read from a document into trees, with every name checked.

    relu:
      inputs: {x: {shape: "[$d...]", dtype: number}}
      index: "[$d...]"
      wrap: "max(x, 0)"

A template says how shapes are matched (`inputs`), which index space the operation runs over
(`index` and `fold`), what a point computes (`wrap`, `unwrap`) and where it is written (`outputs`).
Without `wrap` it moves data only; with `steps` it is made of other templates.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tapestry.diagnostics import Location
from tapestry.metakernels.documents import Entries, Node, text_of
from tapestry.metakernels.errors import TemplateError, WeftError
from tapestry.metakernels.models import OutputModel, TemplateModel, check_template
from tapestry.metakernels.parameters import Parameter, parse_kind
from tapestry.metakernels.parsing import (
    parse_dtype,
    parse_dtype_value,
    parse_expression,
    parse_list,
    parse_pattern,
    parse_projection,
    parse_scalar,
)
from tapestry.metakernels.syntax import DtypeBinding, Expr, ListExpr, Pattern, ProjectionExpr
from tapestry.metakernels.text import Text

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Source(Generic[_T_co]):
    """A tree and the text it was read from."""

    tree: _T_co
    text: Text

    @contextmanager
    def explain(self, what: str) -> Generator[None]:
        """Errors raised inside say that they are about `what`, and where that stands."""
        try:
            yield
        except WeftError as error:
            raise error.within(f"{what} `{self.text}`", self.text.location) from None


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor that is read: what its shape looks like, and which cell each point reads."""

    name: str
    shape: Source[Pattern]
    projection: Source[ProjectionExpr]
    dtype: Source[DtypeBinding]


@dataclass(frozen=True, slots=True)
class Output:
    """A tensor that is written; its shape is that of the mapped index unless given."""

    name: str
    shape: Source[ListExpr] | None
    projection: Source[ProjectionExpr]
    dtype: Source[Expr] | None


@dataclass(frozen=True, slots=True)
class Fold:
    """A folded index dimension (or several, when its extent is a list)."""

    label: str
    extent: Source[Expr]
    monoid: str


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
    parameters: tuple[Parameter, ...]
    inputs: tuple[Input, ...]
    lets: tuple[tuple[str, Source[Expr]], ...]
    requirements: tuple[Source[Expr], ...]
    index: Source[ListExpr] | None
    folds: tuple[Fold, ...]
    wrap: Bodies
    unwrap: Bodies
    outputs: tuple[Output, ...]
    steps: tuple[Step, ...]
    view: str | None
    examples: tuple[Example, ...]
    document: Entries

    @property
    def monoid(self) -> str | None:
        """What the fold dimensions are folded by; None when there are none."""
        return self.folds[0].monoid if self.folds else None


def read_template(name: str, document: Node) -> Template:
    """The template that `document` describes; a located WeftError says what is wrong with it."""
    if not isinstance(document, Entries):
        raise TemplateError(
            f"template {name} must be a mapping with keys such as inputs and index",
            location=document.location,
        )
    model = check_template(document, name)
    template = _Builder(name, document, model).build()
    # Late, because the checks read templates.
    from tapestry.metakernels.checking import check

    check(template)
    return template


class _Builder:
    """Parses the texts of one template."""

    def __init__(self, name: str, document: Entries, model: TemplateModel) -> None:
        self.name = name
        self.document = document
        self.model = model

    def build(self) -> Template:
        model = self.model
        return Template(
            name=self.name,
            location=self.document.location,
            doc=model.doc.strip(),
            formula=model.formula.strip(),
            parameters=tuple(self._parameter(name) for name in model.params),
            inputs=tuple(self._input(name) for name in model.inputs),
            lets=tuple((name, self._source(parse_expression, "let", name)) for name in model.let),
            requirements=tuple(
                self._source(parse_expression, "require", position)
                for position in range(len(model.require))
            ),
            index=None if model.index is None else self._source(parse_list, "index"),
            folds=tuple(
                Fold(name, self._source(parse_expression, "fold", name, "extent"), fold.monoid)
                for name, fold in model.fold.items()
            ),
            wrap=self._bodies("wrap", model.wrap),
            unwrap=self._bodies("unwrap", model.unwrap),
            outputs=tuple(self._output(name, output) for name, output in model.outputs.items()),
            steps=tuple(self._step(name) for name in model.steps),
            view=model.view,
            examples=tuple(
                Example(e.params, e.inputs, e.dtypes, e.outputs) for e in model.examples
            ),
            document=self.document,
        )

    def _source(
        self, parse: Callable[[Text], _T], *path: str | int, default: str | None = None
    ) -> Source[_T]:
        text = text_of(self.document.at(*path))
        if default is not None:
            text = Text(default, text.location, exact=False)
        try:
            return Source(parse(text), text)
        except WeftError as error:
            raise error.within(f"template {self.name}", text.location) from None

    def _optional(
        self, parse: Callable[[Text], _T], given: bool, default: str, *path: str
    ) -> Source[_T]:
        return self._source(parse, *path, default=None if given else default)

    def _parameter(self, name: str) -> Parameter:
        model = self.model.params[name]
        location = self.document.at("params", name).location
        kind, length = parse_kind(model.type, self.document.at("params", name, "type").location)
        parameter = Parameter(
            name, kind, location, length, tuple(model.values), model.axis_of, default=None
        )
        if "default" not in model.model_fields_set:
            return parameter
        try:
            default = parameter.convert(model.default)
        except WeftError as error:
            place = self.document.at("params", name, "default").location
            raise error.within(f"template {self.name}: default", place) from None
        return Parameter(name, kind, location, length, parameter.values, model.axis_of, default)

    def _input(self, name: str) -> Input:
        given = self.model.inputs[name].model_fields_set
        path = ("inputs", name)
        return Input(
            name,
            self._source(parse_pattern, *path, "shape"),
            self._optional(parse_projection, "ipf" in given, "[...]", *path, "ipf"),
            self._optional(parse_dtype, "dtype" in given, "any", *path, "dtype"),
        )

    def _output(self, name: str, model: OutputModel) -> Output:
        path = ("outputs", name)
        return Output(
            name,
            None if model.shape is None else self._source(parse_list, *path, "shape"),
            self._optional(
                parse_projection, "ipf" in model.model_fields_set, "[...]", *path, "ipf"
            ),
            None if model.dtype is None else self._source(parse_dtype_value, *path, "dtype"),
        )

    def _bodies(self, key: str, model: str | list[str] | dict[str, str] | None) -> Bodies:
        if model is None:
            return ()
        if isinstance(model, str):
            return ((None, self._source(parse_scalar, key)),)
        if isinstance(model, list):
            return tuple((None, self._source(parse_scalar, key, i)) for i in range(len(model)))
        return tuple((name, self._source(parse_scalar, key, name)) for name in model)

    def _step(self, name: str) -> Step:
        entries = self.document.at("steps", name)
        assert isinstance(entries, Entries)
        arguments = {
            str(key.value): text_of(value) for key, value in entries.entries if key.value != "op"
        }
        return Step(name, self.model.steps[name].op, arguments, entries.location)
