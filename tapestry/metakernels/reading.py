"""Reads templates from documents: the texts become trees, and what can be checked is.

    >>> from tapestry.metakernels.documents import read_yaml
    >>> text = 'relu: {inputs: {x: {shape: "[$d...]"}}, index: "[$d...]", wrap: "max(x, 0)"}'
    >>> relu = read_template("relu", read_yaml(text, "ops.yaml").at("relu"))
    >>> relu.name, [entry.name for entry in relu.inputs], str(relu.location)
    ('relu', ['x'], 'ops.yaml:1:7')

Every error has the place of the key or text that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from tapestry.metakernels.checking import check
from tapestry.metakernels.documents import Entries, Node, text_of
from tapestry.metakernels.errors import TemplateError, WeftError
from tapestry.metakernels.models import (
    ExternalModel,
    FoldModel,
    MonoidModel,
    OutputModel,
    TemplateModel,
    check_template,
)
from tapestry.metakernels.parameters import Parameter, parse_kind
from tapestry.metakernels.parsing import (
    parse_clause,
    parse_dtype,
    parse_dtype_value,
    parse_expression,
    parse_list,
    parse_pattern,
    parse_projection,
    parse_scalar,
    parse_variable,
)
from tapestry.metakernels.syntax import Clause, Expr
from tapestry.metakernels.templates import (
    Bodies,
    Example,
    External,
    Fold,
    Input,
    MonoidDefinition,
    Output,
    Source,
    Step,
    Template,
)
from tapestry.metakernels.text import Text

_T = TypeVar("_T")


def read_template(name: str, document: Node) -> Template:
    """The template that `document` describes; a located WeftError says what is wrong with it."""
    if not name.isidentifier():
        raise TemplateError(
            f"a metakernel cannot be named {name!r}",
            location=document.location,
            hint="letters, digits and underscores: it is a function in Python",
        )
    if not isinstance(document, Entries):
        raise TemplateError(
            f"template {name} must be a mapping with keys such as inputs and index",
            location=document.location,
        )
    model = check_template(document, name)
    template = _Builder(name, document, model).build()
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
            source=model.source.strip(),
            parameters=tuple(self._parameter(name) for name in model.params),
            inputs=tuple(self._input(name) for name in model.inputs),
            lets=tuple((name, self._source(parse_expression, "let", name)) for name in model.let),
            requirements=tuple(
                self._source(parse_expression, "require", position)
                for position in range(len(model.require))
            ),
            family=self._family(),
            index=None if model.index is None else self._source(parse_list, "index"),
            folds=self._folds("fold", model.fold),
            scans=self._folds("scan", model.scan),
            domain=tuple(
                self._source(parse_expression, "domain", row) for row in range(len(model.domain))
            ),
            monoids=tuple(self._monoid(name, entry) for name, entry in model.monoids.items()),
            external=None if model.external is None else self._external(model.external),
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
            name,
            kind,
            location,
            length,
            tuple(model.values),
            model.axis_of,
            inserted=model.inserted,
        )
        if kind == "enum" and not model.values:
            raise TemplateError(
                f"template {self.name}: parameter {name} is an enum without values",
                location=location,
                hint="values: [first, second]",
            )
        if "default" not in model.model_fields_set:
            return parameter
        try:
            default = parameter.convert(model.default)
        except WeftError as error:
            place = self.document.at("params", name, "default").location
            raise error.within(f"template {self.name}: default", place) from None
        return replace(parameter, default=default)

    def _family(self) -> tuple[Source[Clause], ...]:
        clauses = self.model.family
        if isinstance(clauses, str):
            return (self._source(parse_clause, "for"),)
        return tuple(self._source(parse_clause, "for", number) for number in range(len(clauses)))

    def _input(self, name: str) -> Input:
        model = self.model.inputs[name]
        given = model.model_fields_set
        path = ("inputs", name)
        return Input(
            name,
            self._source(parse_pattern, *path, "shape"),
            self._optional(parse_projection, "ipf" in given, "[...]", *path, "ipf"),
            self._optional(parse_dtype, "dtype" in given, "any", *path, "dtype"),
            None if model.bounds is None else self._source(parse_scalar, *path, "bounds", "clip"),
            None if model.each is None else self._source(parse_variable, *path, "each").tree,
            None if model.when is None else self._source(parse_expression, *path, "when"),
            model.optional,
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
            None if model.each is None else self._source(parse_variable, *path, "each").tree,
            None if model.count is None else self._source(parse_expression, *path, "count"),
            None if model.when is None else self._source(parse_expression, *path, "when"),
        )

    def _folds(self, section: str, models: Mapping[str, FoldModel]) -> tuple[Fold, ...]:
        return tuple(
            Fold(name, self._source(parse_expression, section, name, "extent"), fold.monoid)
            for name, fold in models.items()
        )

    def _monoid(self, name: str, model: MonoidModel) -> MonoidDefinition:
        def parts(key: str, given: str | list[str]) -> tuple[Source[Expr], ...]:
            path = ("monoids", name, key)
            if isinstance(given, str):
                return (self._source(parse_scalar, *path),)
            return tuple(self._source(parse_scalar, *path, part) for part in range(len(given)))

        location = self.document.at("monoids", name).location
        zero, merge = parts("zero", model.zero), parts("merge", model.merge)
        return MonoidDefinition(name, location, zero, merge, model.commutative)

    def _external(self, model: ExternalModel) -> External:
        path = ("external", "parameters")
        names = model.parameters
        given = tuple((name, self._source(parse_expression, *path, name)) for name in names)
        return External(model.kernel, given)

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
