"""What can be checked of a rule before it meets a program: names, and that all of it is used.

rules.yaml:4:31: error: rule twice: produce.y: z is not bound
  hint: did you mean x?
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from tapestry.metakernels.builtins import check_call
from tapestry.metakernels.checking import pattern_names
from tapestry.metakernels.errors import (
    OperandError,
    TemplateError,
    UnknownNameError,
    WeftError,
    nearest,
)
from tapestry.metakernels.syntax import Call, Expr, Name, Tree, variables, walk
from tapestry.metakernels.templates import Source
from tapestry.rewriting.rules import Application, Number, Rule

PREDICATES: Final = {"single_use": 1, "same_type": 2}
"""Conditions on tensors, and how many they are about."""

VARIABLE: Final = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
"""`$name` alone, or inside an expression."""

_BINDING: Final = re.compile(r"(\[?)\s*(\$\w+(?:\s*,\s*\$\w+)*)\s*(\]?)")

_WORDS: Final = ("enum", "bool")
"""Kinds of parameters whose values are words, unless they are one variable."""


def bound_by(text: str) -> str | tuple[str, ...] | None:
    """The name that a matched parameter binds, or those of a list; None for an expression.

    >>> bound_by("$i"), bound_by("[$i, $j]"), bound_by("$i + 1")
    ('i', ('i', 'j'), None)
    """
    found = _BINDING.fullmatch(text)
    if found is None:
        return None
    names = tuple(name.strip()[1:] for name in found[2].split(","))
    if found[1] and found[3]:
        return names
    return names[0] if len(names) == 1 and not (found[1] or found[3]) else None


def check(rule: Rule) -> None:
    """Raise a located WeftError for the first name of `rule` that is wrong."""
    _Check(rule).run()


class _Check:
    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.matched = [name for entry in rule.matched for name in entry.results]
        self.there = (*rule.inputs, *self.matched)

    def run(self) -> None:
        self._tensors()
        self._productions()
        self._types()
        self._connected()
        self._names()

    def fail(
        self,
        message: str,
        *path: str | int,
        kind: type[WeftError] = TemplateError,
        hint: str | None = None,
    ) -> WeftError:
        place = self.rule.document.at(*path).location
        return kind(f"rule {self.rule.name}: {message}", location=place, hint=hint)

    def _tensors(self) -> None:
        """Every tensor is there, and none is made twice."""
        rule = self.rule
        made = [name for application in rule.produced for name in application.results]
        for name in (n for n in made if n in rule.inputs):
            raise self.fail(f"produce makes {name}, which is an input of the rule", "produce", name)
        for name, source in rule.aliases.items():
            if name not in self.matched:
                raise self.fail(
                    f"produce.{name} is no tensor of match", "produce", name,
                    kind=UnknownNameError, hint=nearest(name, self.matched),
                )  # fmt: skip
            if source not in (*self.there, *made) or source in rule.aliases:
                known = {*self.there, *made} - {name}
                raise self.fail(
                    f"produce.{name}: {source} is not bound", "produce", name,
                    kind=UnknownNameError, hint=nearest(source, known),
                )  # fmt: skip
        for application in rule.produced:
            for name in application.values:
                if name not in self.there and name not in made:
                    raise self.fail(
                        f"produce.{application.name}: {name} is not bound",
                        "produce", application.name,
                        kind=UnknownNameError, hint=nearest(name, (*self.there, *made)),
                    )  # fmt: skip
                if name in rule.aliases:
                    raise self.fail(
                        f"produce.{application.name}: {name} is replaced by {rule.aliases[name]}",
                        "produce", application.name, hint=f"name {rule.aliases[name]} instead",
                    )  # fmt: skip

    def _productions(self) -> None:
        """Something is replaced, and all that is produced is used."""
        rule = self.rule
        if not rule.outputs:
            raise self.fail(
                "nothing is replaced: produce has no name of match", "produce",
                hint=f"call what is produced {self.matched[-1]}",
            )  # fmt: skip
        used = {name for application in rule.produced for name in application.values}
        used.update(rule.outputs, rule.aliases.values())
        for application in rule.produced:
            path = "produce", application.name
            if not used & set(application.results):
                raise self.fail(f"produce.{application.name} is used by nothing", *path)
            if not application.values and len(application.operands):
                raise self.fail(
                    f"produce.{application.name}: a number takes its dtype from a tensor beside it",
                    *path,
                )

    def _types(self) -> None:
        for typed in self.rule.types:
            if typed.name not in self.there:
                raise self.fail(
                    f"types.{typed.name} is no tensor of match", "types", typed.name,
                    kind=UnknownNameError, hint=nearest(typed.name, self.there),
                )  # fmt: skip

    def _connected(self) -> None:
        """Matched applications hang together by shared tensors: one leads to all others."""
        waiting = {application.name: application for application in self.rule.matched}
        first = waiting.popitem()[1]
        names = {*first.values, *first.results}
        while True:
            near = [a for a in waiting.values() if names & {*a.values, *a.results}]
            if not near:
                break
            for application in near:
                names |= {*application.values, *application.results}
                del waiting[application.name]
        for name in waiting:
            raise self.fail(f"match.{name} shares no tensor with the others", "match", name)

    def _names(self) -> None:
        rule = self.rule
        bound: set[str] = set()
        for application in rule.matched:
            for text in application.arguments.values():
                names = bound_by(text.text)
                bound.update((names,) if isinstance(names, str) else names or ())
        for typed in rule.types:
            bound |= pattern_names(typed.shape.tree)
            if typed.dtype.tree.name is not None:
                bound.add(typed.dtype.tree.name)
        for typed in rule.types:
            self._expression(typed.shape, f"types.{typed.name}", bound)
        for section, entries in (("params", rule.choices), ("let", rule.lets)):
            for name, source in entries:
                self._expression(source, f"{section}.{name}", bound)
                if name in bound:
                    raise self.fail(
                        f"{section} defines {name}, which is already bound", section, name
                    )
                bound.add(name)
        for source in rule.conditions:
            self._condition(source, bound)
        for section, applications in (("match", rule.matched), ("produce", rule.produced)):
            for application in applications:
                self._arguments(application, f"{section}.{application.name}", bound)

    def _arguments(self, application: Application, what: str, bound: Collection[str]) -> None:
        for operand in application.operands:
            if not isinstance(operand, Number):
                continue
            self._bound(operand.source, what, bound)
            for node in walk(operand.source.tree):
                if isinstance(node, Name):
                    with operand.source.explain(f"rule {self.rule.name}: {what}"):
                        raise UnknownNameError(f"{node.name} is no number")
        kinds = {parameter.name: parameter.kind for parameter in application.template.parameters}
        for key, text in application.arguments.items():
            if kinds[key] in _WORDS and not VARIABLE.fullmatch(text.text):
                continue
            for name in VARIABLE.findall(text.text):
                if name[1:] not in bound:
                    raise UnknownNameError(
                        f"rule {self.rule.name}: {what}: {name} is not bound",
                        location=text.location,
                        hint=nearest(name, (f"${n}" for n in bound)),
                    )

    def _condition(self, source: Source[Expr], bound: Collection[str]) -> None:
        names = [node for node in walk(source.tree) if isinstance(node, Name)]
        if not names:
            self._expression(source, "where", bound)
            return
        with source.explain(f"rule {self.rule.name}: where"):
            assert isinstance(source.tree, Call)
            function, count = source.tree.function, len(source.tree.arguments)
            if function not in PREDICATES:
                raise UnknownNameError(
                    f"unknown condition {function}", hint=nearest(function, PREDICATES)
                )
            if count != PREDICATES[function]:
                raise OperandError(
                    f"{function} is about {PREDICATES[function]} tensors, not {count}"
                )
            for node in names:
                if node.name not in self.there:
                    raise UnknownNameError(
                        f"{node.name} is no tensor of match", hint=nearest(node.name, self.there)
                    )

    def _expression(self, source: Source[Tree], what: str, bound: Collection[str]) -> None:
        self._bound(source, what, bound)
        with source.explain(f"rule {self.rule.name}: {what}"):
            for node in walk(source.tree):
                if isinstance(node, Call):
                    check_call(node.function, len(node.arguments))

    def _bound(self, source: Source[Tree], what: str, bound: Collection[str]) -> None:
        with source.explain(f"rule {self.rule.name}: {what}"):
            for name in sorted(variables(source.tree) - set(bound)):
                raise UnknownNameError(
                    f"${name} is not bound", hint=nearest(f"${name}", (f"${n}" for n in bound))
                )
