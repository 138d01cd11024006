r"""Reads rules from documents: every metakernel is found, every name is bound, nothing is a cycle.

    >>> from tapestry.metakernels import load_library
    >>> text = '''
    ... relu_twice:
    ...   match: {r: {op: relu, x: x}, y: {op: relu, x: r}}
    ...   produce: {y: {op: relu, x: x}}
    ... '''
    >>> (rule,) = read_rules(text, "rules.yaml", load_library())
    >>> rule.inputs, rule.outputs
    (('x',), ('y',))

In an application, a key that is an input of the metakernel names a tensor (or is a number), and one
that is a parameter holds an expression; `$name` alone, in `match`, binds the parameter's value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final, TypeVar

from tapestry.metakernels import Library
from tapestry.metakernels.documents import Entries, Items, Leaf, Node, read_file, read_yaml, text_of
from tapestry.metakernels.dtypes import allowed
from tapestry.metakernels.errors import (
    LimitError,
    OperandError,
    ParameterError,
    TemplateError,
    UnknownNameError,
    WeftError,
    nearest,
)
from tapestry.metakernels.parsing import (
    parse_condition,
    parse_dtype,
    parse_expression,
    parse_pattern,
    parse_scalar,
)
from tapestry.metakernels.templates import Source, Template
from tapestry.metakernels.text import Text
from tapestry.rewriting.checking import VARIABLE, check
from tapestry.rewriting.models import RuleModel, check_rule
from tapestry.rewriting.rules import SINGLE, Application, Number, Operand, Rule, Typed, Value

MAX_APPLICATIONS: Final = 64
"""Applications that one side of a rule may have."""

RULES: Final = Path(__file__).parents[1] / "metakernels" / "rules"
"""The folder of the rules that come with Tapestry."""

_T = TypeVar("_T")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.([A-Za-z_][A-Za-z0-9_]*|[0-9]{1,3}))?")


def load_rules(file: str, library: Library) -> tuple[Rule, ...]:
    """The rules of a file, or those that come with Tapestry under that name (`identities`)."""
    path = Path(file)
    if not path.exists() and path.suffix == "" and len(path.parts) == 1:
        shipped = RULES / f"{file}.yaml"
        if not shipped.exists():
            known = [each.stem for each in RULES.glob("*.yaml")]
            raise UnknownNameError(f"there are no rules {file}", hint=nearest(file, known))
        path = shipped
    return _read_all(read_file(path), library)


def read_rules(text: str, file: str, library: Library) -> tuple[Rule, ...]:
    """The rules in YAML `text`; `file` names it in messages."""
    return _read_all(read_yaml(text, file), library)


def _read_all(document: Entries, library: Library) -> tuple[Rule, ...]:
    return tuple(read_rule(str(key.value), node, library) for key, node in document.entries)


def read_rule(name: str, document: Node, library: Library) -> Rule:
    """The rule that `document` describes; a located WeftError says what is wrong with it."""
    if not isinstance(document, Entries):
        raise TemplateError(
            f"rule {name} must be a mapping with the keys match and produce",
            location=document.location,
        )
    return _Reader(name, document, check_rule(document, name), library).rule()


class _Reader:
    """Parses the texts of one rule."""

    def __init__(self, name: str, document: Entries, model: RuleModel, library: Library) -> None:
        self.name = name
        self.document = document
        self.model = model
        self.library = library

    def rule(self) -> Rule:
        for section in ("match", "produce"):
            entries = self.document.at(section)
            if isinstance(entries, Entries) and len(entries.entries) > MAX_APPLICATIONS:
                raise self.fail(
                    f"{section} has more than {MAX_APPLICATIONS} applications",
                    section, kind=LimitError,
                )  # fmt: skip
        matched = self._sorted("match", [self._application("match", n) for n in self.model.match])
        aliases: dict[str, str] = {}
        produced: list[Application] = []
        for name in self.model.produce:
            entry = self.document.at("produce", name)
            if isinstance(entry, Leaf):
                aliases[name] = entry.text
            else:
                produced.append(self._application("produce", name))
        rule = Rule(
            name=self.name,
            location=self.document.location,
            doc=self.model.doc.strip(),
            matched=matched,
            types=tuple(self._typed(name) for name in self.model.types),
            choices=tuple(
                (name, self._source(parse_expression, "params", name, "choose"))
                for name in self.model.params
            ),
            lets=tuple(
                (name, self._source(parse_expression, "let", name)) for name in self.model.let
            ),
            conditions=tuple(
                self._source(parse_condition, "where", position)
                for position in range(len(self.model.where))
            ),
            produced=self._sorted("produce", produced),
            aliases=aliases,
            exact=self.model.exact,
            document=self.document,
        )
        check(rule)
        return rule

    def fail(
        self,
        message: str,
        *path: str | int,
        kind: type[WeftError] = TemplateError,
        hint: str | None = None,
    ) -> WeftError:
        place = self.document.at(*path).location
        return kind(f"rule {self.name}: {message}", location=place, hint=hint)

    def _source(self, parse: Callable[[Text], _T], *path: str | int) -> Source[_T]:
        return self._parsed(parse, text_of(self.document.at(*path)))

    def _parsed(self, parse: Callable[[Text], _T], text: Text) -> Source[_T]:
        try:
            return Source(parse(text), text)
        except WeftError as error:
            raise error.within(f"rule {self.name}", text.location) from None

    def _typed(self, name: str) -> Typed:
        entry, given = self.document.at("types", name), self.model.types[name].model_fields_set
        if not isinstance(entry, Entries):
            shape, dtype = text_of(entry), None
        else:
            shape = text_of(entry.at("shape")) if "shape" in given else None
            dtype = text_of(entry.at("dtype")) if "dtype" in given else None
        anything = Text("[...]", entry.location, exact=False)
        typed = Typed(
            name,
            self._parsed(parse_pattern, shape or anything),
            self._parsed(parse_dtype, dtype or Text("any", entry.location, exact=False)),
        )
        with typed.dtype.explain(f"rule {self.name}: types.{name}"):
            allowed(typed.dtype.tree.constraint)
        return typed

    # Applications.

    def _application(self, section: str, name: str) -> Application:
        entries = self.document.at(section, name)
        if not isinstance(entries, Entries) or not isinstance(entries.at("op"), Leaf):
            raise self.fail(
                f"{section}.{name} must be an application", section, name, hint="{op: relu, x: x}"
            )
        where = f"{section}.{name}"
        op = text_of(entries.at("op")).text
        try:
            template = self.library.get(op)
        except UnknownNameError as error:
            raise self.fail(
                f"{where}: {error.message}", section, name, "op",
                kind=UnknownNameError, hint=error.hint,
            ) from None  # fmt: skip
        operands: dict[str, tuple[Operand, ...]] = {}
        lists = [entry.name for entry in template.inputs if entry.each is not None]
        optional = [entry.name for entry in template.inputs if entry.optional]
        arguments: dict[str, Text] = {}
        inputs = [entry.name for entry in template.inputs]
        parameters = [parameter.name for parameter in template.parameters]
        for key, value in entries.entries:
            if key.value in inputs:
                what = f"{where}: {key.value}"
                given = value.items if isinstance(value, Items) and key.value in lists else (value,)
                operands[str(key.value)] = tuple(self._operand(node, what) for node in given)
                if key.value in lists and not isinstance(value, Items):
                    raise TemplateError(
                        f"rule {self.name}: {what} is a list of tensors",
                        location=value.location,
                        hint=f"a list of one is written [{text_of(value)}]",
                    )
            elif key.value in parameters:
                arguments[str(key.value)] = text_of(value)
            elif key.value != "op":
                raise UnknownNameError(
                    f"rule {self.name}: {where}: {op} has no input or parameter {key.value}",
                    location=key.location,
                    hint=nearest(str(key.value), (*inputs, *parameters)),
                )
        for missing in (n for n in inputs if n not in operands and n not in optional):
            raise self.fail(
                f"{where}: input {missing} of {op} is not given", section, name, kind=OperandError
            )
        self._check_parameters(template, arguments, section, name)
        return Application(
            name,
            template,
            operands=tuple(operand for n in inputs for operand in operands.get(n, ())),
            sizes=tuple(
                len(operands.get(n, ())) if n in lists or n not in operands else SINGLE
                for n in inputs
            ),
            count=self._count(name),
            arguments=arguments,
            location=entries.location,
        )

    def _count(self, name: str) -> int:
        """How long the list `name` is, by the tensors of it that the rule names: `y.0`, `y.1`."""
        named = re.compile(rf"{re.escape(name)}\.([0-9]{{1,3}})")
        found = [named.fullmatch(text) for text in self._texts(self.document)]
        return 1 + max((int(match[1]) for match in found if match is not None), default=0)

    def _texts(self, node: Node) -> Iterator[str]:
        """All keys and values of a document."""
        match node:
            case Leaf(_, text):
                yield text
            case Items(items):
                for item in items:
                    yield from self._texts(item)
            case Entries(entries):
                for key, value in entries:
                    yield key.text
                    yield from self._texts(value)

    def _operand(self, node: Node, what: str) -> Operand:
        if isinstance(node, Items | Entries):
            raise TemplateError(
                f"rule {self.name}: {what} must be the name of a tensor, or a number",
                location=node.location,
            )
        text = text_of(node)
        if _NAME.fullmatch(text.text):
            return Value(text.text)
        return Number(self._parsed(parse_scalar, text))

    def _check_parameters(
        self, template: Template, arguments: Mapping[str, Text], section: str, name: str
    ) -> None:
        for parameter in template.parameters:
            if parameter.name not in arguments and parameter.default is None:
                raise self.fail(
                    f"{section}.{name}: parameter {parameter.name} of {template.name} is not given",
                    section, name, kind=ParameterError,
                    hint=f"{parameter.name}: ${parameter.name} stands for any value"
                    if section == "match"
                    else f"{parameter.name}: ...",
                )  # fmt: skip
        for parameter in template.parameters:
            text = arguments.get(parameter.name)
            if text is None or VARIABLE.fullmatch(text.text):
                continue
            if parameter.kind in ("int", "int[]"):
                self._parsed(parse_expression, text)

    def _sorted(self, section: str, applications: Sequence[Application]) -> tuple[Application, ...]:
        """The applications, each after those whose results it uses."""
        makers = {name: a.name for a in applications for name in a.results}
        by_name = {application.name: application for application in applications}
        graph = {
            application.name: [makers[name] for name in application.values if name in makers]
            for application in applications
        }
        try:
            return tuple(by_name[name] for name in TopologicalSorter(graph).static_order())
        except CycleError as error:
            cycle: list[str] = error.args[1]
            raise self.fail(
                f"{section} is a cycle: {' -> '.join(cycle)}", section, cycle[0]
            ) from None
