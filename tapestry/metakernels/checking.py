"""What can be checked of a template before it is applied: names, and which keys go together.

    template sum: wrap `X`: X is no input
      hint: did you mean x?

Ranks, sizes and dtypes depend on the operands and are checked by `expansion`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tapestry.metakernels.bodies import FOLD
from tapestry.metakernels.domains import check_row
from tapestry.metakernels.dtypes import allowed
from tapestry.metakernels.errors import (
    ScanError,
    TemplateError,
    nearest,
)
from tapestry.metakernels.list_checking import ListCheck, inside
from tapestry.metakernels.monoids import MONOIDS, check_definition, parts_of
from tapestry.metakernels.syntax import (
    Dimension,
    Element,
    Exactly,
    Group,
    Name,
    Pattern,
    Sequence,
    Splice,
    Variable,
    walk,
)
from tapestry.metakernels.templates import Bodies, Fold, Template
from tapestry.metakernels.text_checking import TextCheck

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def labels(elements: Iterable[Element]) -> list[str]:
    """The labels that an index list gives: `$x`, `$x...` and `y = expr`."""
    found: list[str] = []
    for element in elements:
        if element.label is not None:
            found.append(element.label)
        elif isinstance(element.value, Variable):
            found.append(element.value.name)
    return found


def pattern_names(pattern: Pattern) -> frozenset[str]:
    """The names that a pattern binds."""
    return frozenset(
        node.name
        for node in walk(pattern)
        if isinstance(node, Dimension | Sequence | Group) and node.name is not None
    )


def check(template: Template) -> None:
    """Raise a located WeftError for the first rule that `template` breaks."""
    _Check(template).run()


class _Check:
    def __init__(self, template: Template) -> None:
        self.template = template
        self.inputs = [entry.name for entry in template.inputs]
        self.texts = TextCheck(template)
        self.lists = ListCheck(template)
        self.shared: frozenset[str] | set[str] = frozenset()
        """What is known before the members of a family have their own numbers."""

    def run(self) -> None:
        self._check_names()
        self.lists.run()
        self._check_patterns()
        self._check_lets()
        self._check_parts()
        self._check_monoids()
        self._check_index()
        self._check_outputs()
        self._check_bodies()
        self._check_steps()

    def _fail(self, message: str, *path: str, hint: str | None = None) -> TemplateError:
        place = self.template.document.at(*path).location
        return TemplateError(f"template {self.template.name}: {message}", location=place, hint=hint)

    def _check_names(self) -> None:
        sections = ("params", "inputs", "let", "fold", "scan", "monoids", "outputs", "steps")
        named = {section: self.template.document.at(section).plain() for section in sections}
        for section, entries in named.items():
            for name in entries if isinstance(entries, dict) else ():
                if not _NAME.fullmatch(name) or (section == "inputs" and name == FOLD):
                    raise self._fail(f"{name} cannot be a name in {section}", section, name)
        for parameter in self.template.parameters:
            if parameter.inserted and parameter.axis_of is None:
                raise self._fail(
                    f"{parameter.name} is inserted, and no axis",
                    "params", parameter.name, "inserted",
                    hint="axis_of says into which input",
                )  # fmt: skip
            if parameter.axis_of is not None:
                if parameter.axis_of not in self.inputs:
                    raise self._fail(
                        f"axis_of names {parameter.axis_of}, which is no input",
                        "params", parameter.name, "axis_of",
                        hint=nearest(parameter.axis_of, self.inputs),
                    )  # fmt: skip
                if parameter.kind not in ("int", "int[]"):
                    raise self._fail(
                        f"parameter {parameter.name} is an axis, so its type is int or int[]",
                        "params", parameter.name,
                    )  # fmt: skip

    def _check_patterns(self) -> None:
        for entry in self.template.inputs:
            self.texts.bound |= pattern_names(entry.shape.tree)
            with self.texts.explain(entry.dtype, f"inputs.{entry.name}.dtype"):
                allowed(entry.dtype.tree.constraint)
            if entry.dtype.tree.name is not None:
                self.texts.bound.add(entry.dtype.tree.name)

    def _check_lets(self) -> None:
        self.texts.bound |= self.lists.counted(self.texts.bound)
        matched = frozenset(self.texts.bound)
        lets = {name for name, _ in self.template.lets}
        for entry in self.template.inputs:
            for item in walk(entry.shape.tree):
                pin = item.pin if isinstance(item, Sequence) else None
                size = item.size if isinstance(item, Exactly) else pin
                if size is not None:
                    known = matched | lets | inside(entry)
                    self.texts.names(entry.shape, size, f"inputs.{entry.name}.shape", known)
        common = lets - self.template.member_names
        for source in self.template.family:
            self.texts.expression(source, "for", local=frozenset(common))
            self.texts.bound |= self.lists.member(source, self.texts.bound)
        for name, source in self.template.lets:
            if name in matched:
                raise self._fail(f"let defines {name}, which is already bound", "let", name)
            self.texts.expression(source, f"let {name}")
            self.texts.bound.add(name)
        for source in self.template.requirements:
            self.texts.expression(source, "require")
        self.shared = self.texts.bound - self.template.member_names

    def _check_parts(self) -> None:
        """Which of the three sorts of template this is, and whether its keys fit that sort."""
        template = self.template
        point = [
            key
            for key, given in (
                ("index", template.index is not None),
                ("fold", bool(template.folds)),
                ("scan", bool(template.scans)),
                ("domain", bool(template.domain)),
                ("external", template.external is not None),
                ("wrap", bool(template.wrap)),
                ("unwrap", bool(template.unwrap)),
            )
            if given
        ]
        if template.family:
            point.append("for")
        for key, given in (("steps", bool(template.steps)), ("view", template.view is not None)):
            if given and point:
                raise self._fail(f"{point[0]} and {key} exclude each other", point[0])
        if template.steps and template.view is not None:
            raise self._fail("view and steps exclude each other", "view")
        if template.view is not None and (
            len(template.inputs) != 1
            or len(template.outputs) != 1
            or template.outputs[0].shape is None
        ):
            raise self._fail("view: reshape needs one input and one output with its shape", "view")
        if template.external is not None and (template.wrap or template.monoid is not None):
            raise self._fail("external excludes wrap, fold and scan", "external")
        if not template.steps and template.view is None and template.index is None:
            raise self._fail("index is missing", hint='for example index: "[$d...]"')

    def _check_index(self) -> None:
        template = self.template
        known = labels(template.index.tree.elements) if template.index is not None else []
        if template.index is not None:
            self.texts.expression(template.index, "index")
        known += [scan.label for scan in template.scans]
        kept = frozenset(known)
        known += [fold.label for fold in template.folds]
        for label in known:
            if known.count(label) > 1:
                raise self._fail(f"two index dimensions are called @{label}", "index")
        self._check_folds("fold", template.folds)
        self._check_folds("scan", template.scans)
        if template.scans and len(merged := (*template.scans, *template.folds)) > 1:
            raise ScanError(
                f"template {template.name}: an operation scans along one dimension, and folds "
                f"none: {merged[0].label} is scanned, and {merged[1].label} stands beside it",
                location=template.document.at("scan").location,
                hint="write the other as a step of its own",
            )
        for name, source in () if template.external is None else template.external.parameters:
            self.texts.expression(source, f"external.parameters.{name}")
        for row in template.domain:
            self.texts.expression(row, "domain", frozenset(known))
            with self.texts.explain(row, "domain"):
                check_row(row.tree)
        for entry in template.inputs:
            local = inside(entry)
            self.texts.expression(
                entry.projection, f"inputs.{entry.name}.ipf", frozenset(known), local
            )
            if entry.fill is not None:
                self.texts.constant(entry.fill, f"inputs.{entry.name}.bounds.clip")
            if entry.when is not None:
                self.texts.expression(entry.when, f"inputs.{entry.name}.when", local=local)
        for output in template.outputs:
            local = inside(output)
            self.texts.expression(output.projection, f"outputs.{output.name}.ipf", kept, local)
            if output.when is not None:
                self.texts.expression(output.when, f"outputs.{output.name}.when", local=local)
            if output.shape is not None:
                what = f"outputs.{output.name}.shape"
                self.texts.names(output.shape, output.shape.tree, what, self.shared | local)
                self.texts.expression(output.shape, what, local=local)
            if output.count is not None:
                what = f"outputs.{output.name}.count"
                self.texts.names(output.count, output.count.tree, what, self.shared)
                self.texts.expression(output.count, what)
        for bodies, where in ((template.wrap, frozenset(known)), (template.unwrap, kept)):
            for _, source in bodies:
                self.texts.coordinates(source, "a body", where)

    def _check_monoids(self) -> None:
        names = [fold.monoid for fold in (*self.template.folds, *self.template.scans)]
        for definition in self.template.monoids:
            check_definition(definition, names, self.texts.constant)

    def _check_folds(self, section: str, folds: Iterable[Fold]) -> None:
        own = self.template.monoids
        for fold in folds:
            self.texts.expression(fold.extent, f"{section}.{fold.label}.extent")
            if parts_of(fold.monoid, own) is None:
                raise self._fail(
                    f"unknown monoid {fold.monoid}", section, fold.label, "monoid",
                    hint=nearest(fold.monoid, (*MONOIDS, *(monoid.name for monoid in own))),
                )  # fmt: skip
            if section == "fold" and fold.monoid != self.template.folds[0].monoid:
                raise self._fail(
                    f"fold dimensions of one operation share one monoid, and {fold.label} has "
                    f"{fold.monoid} beside {self.template.folds[0].monoid}",
                    "fold", fold.label, "monoid",
                    hint="write the second fold as another step",
                )  # fmt: skip

    def _check_bodies(self) -> None:
        template = self.template
        monoid = template.monoid
        if template.unwrap and monoid is None:
            raise self._fail(
                "unwrap follows a fold or scan, and there is none", "unwrap",
                hint="write it into wrap",
            )  # fmt: skip
        if monoid is not None and not template.wrap:
            section = "fold" if template.folds else "scan"
            raise self._fail(f"a {section} needs wrap: what is folded", section)
        parts = None if monoid is None else parts_of(monoid, template.monoids)
        if parts is not None and len(template.wrap) != parts:
            raise self._fail(
                f"the state of {monoid} has {parts} parts, and wrap gives {len(template.wrap)}",
                "wrap",
                hint='for example wrap: ["x", "@n"]' if parts == 2 else None,
            )
        if monoid is None:
            self._one_per_output(template.wrap, "wrap")
        elif any(name is not None for name, _ in template.wrap):
            raise self._fail("what is folded is one expression or a list of parts", "wrap")
        self._one_per_output(template.unwrap, "unwrap")
        for name, source in template.wrap:
            self.texts.body(source, "wrap", name, folded=False)
        for name, source in template.unwrap:
            self.texts.body(source, "unwrap", name, folded=True)
        if template.wrap:
            read = {
                node.name
                for _, source in (*template.wrap, *template.unwrap)
                for node in walk(source.tree)
                if isinstance(node, Name | Splice)
            }
            for entry in self.template.inputs:
                if entry.name not in read and entry.when is None:
                    raise self._fail(
                        f"input {entry.name} is read by no body", "inputs", entry.name,
                        hint="when: 0 says that its shape alone is used",
                    )  # fmt: skip

    def _one_per_output(self, bodies: Bodies, key: str) -> None:
        outputs = [output.name for output in self.template.outputs]
        if not bodies:
            return
        named = [name for name, _ in bodies if name is not None]
        if named and sorted(named) != sorted(outputs):
            raise self._fail(
                f"{key} is for {', '.join(named)}, and the outputs are {', '.join(outputs)}", key
            )
        if len(bodies) != len(outputs):
            raise self._fail(f"{key} has {len(bodies)} expressions for {len(outputs)} outputs", key)

    def _check_outputs(self) -> None:
        if not self.template.outputs:
            raise self._fail("outputs is empty", "outputs", hint="leave it out for one `result`")
        for output in self.template.outputs:
            if output.dtype is not None:
                what = f"outputs.{output.name}.dtype"
                self.texts.names(
                    output.dtype, output.dtype.tree, what, self.shared | inside(output)
                )

    def _check_steps(self) -> None:
        names = [step.name for step in self.template.steps]
        for name in names:
            if name in self.inputs:
                raise self._fail(f"step {name} has the name of an input", "steps", name)
        if not names:
            return
        for output in self.template.outputs:
            if output.name not in names and len(self.template.outputs) > 1:
                raise self._fail(
                    f"no step is called {output.name}", "outputs", output.name,
                    hint=nearest(output.name, names),
                )  # fmt: skip
