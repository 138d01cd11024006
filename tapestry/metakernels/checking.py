"""What can be checked of a template before it is applied: names, and which keys go together.

    template sum: wrap `X`: X is no input
      hint: did you mean x?

Ranks, sizes and dtypes depend on the operands and are checked by `expansion`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from tapestry.metakernels import builtins, functions
from tapestry.metakernels.blocks import check_reads
from tapestry.metakernels.bodies import FOLD
from tapestry.metakernels.constants import NAMED
from tapestry.metakernels.domains import check_row
from tapestry.metakernels.dtypes import allowed
from tapestry.metakernels.errors import (
    FamilyError,
    ListError,
    ScanError,
    TemplateError,
    UnknownNameError,
    nearest,
)
from tapestry.metakernels.list_checking import ListCheck, inside
from tapestry.metakernels.monoids import MONOIDS, check_definition, parts_of
from tapestry.metakernels.syntax import (
    Call,
    Comprehension,
    Coordinate,
    Dimension,
    Element,
    Exactly,
    Expr,
    Group,
    Name,
    Pattern,
    Sequence,
    Splice,
    Tree,
    Variable,
    children,
    variables,
    walk,
)
from tapestry.metakernels.templates import Bodies, Explaining, Fold, Source, Template

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
        self.bound: set[str] = {parameter.name for parameter in template.parameters}
        self.inputs = [entry.name for entry in template.inputs]
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
            self.bound |= pattern_names(entry.shape.tree)
            with self._explain(entry.dtype, f"inputs.{entry.name}.dtype"):
                allowed(entry.dtype.tree.constraint)
            if entry.dtype.tree.name is not None:
                self.bound.add(entry.dtype.tree.name)

    def _check_lets(self) -> None:
        self.bound |= self.lists.counted(self.bound)
        matched = frozenset(self.bound)
        lets = {name for name, _ in self.template.lets}
        for entry in self.template.inputs:
            for item in walk(entry.shape.tree):
                pin = item.pin if isinstance(item, Sequence) else None
                size = item.size if isinstance(item, Exactly) else pin
                if size is not None:
                    known = matched | lets | inside(entry)
                    self._names(entry.shape, size, f"inputs.{entry.name}.shape", known)
        common = lets - self.template.member_names
        for source in self.template.family:
            self._expression(source, "for", local=frozenset(common))
            self.bound |= self.lists.member(source, self.bound)
        for name, source in self.template.lets:
            if name in matched:
                raise self._fail(f"let defines {name}, which is already bound", "let", name)
            self._expression(source, f"let {name}")
            self.bound.add(name)
        for source in self.template.requirements:
            self._expression(source, "require")
        self.shared = self.bound - self.template.member_names

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
            self._expression(template.index, "index")
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
            self._expression(source, f"external.parameters.{name}")
        for row in template.domain:
            self._expression(row, "domain", frozenset(known))
            with self._explain(row, "domain"):
                check_row(row.tree)
        for entry in template.inputs:
            local = inside(entry)
            self._expression(entry.projection, f"inputs.{entry.name}.ipf", frozenset(known), local)
            if entry.fill is not None:
                self._constant(entry.fill, f"inputs.{entry.name}.bounds.clip")
            if entry.when is not None:
                self._expression(entry.when, f"inputs.{entry.name}.when", local=local)
        for output in template.outputs:
            local = inside(output)
            self._expression(output.projection, f"outputs.{output.name}.ipf", kept, local)
            if output.when is not None:
                self._expression(output.when, f"outputs.{output.name}.when", local=local)
            if output.shape is not None:
                what = f"outputs.{output.name}.shape"
                self._names(output.shape, output.shape.tree, what, self.shared | local)
                self._expression(output.shape, what, local=local)
            if output.count is not None:
                what = f"outputs.{output.name}.count"
                self._names(output.count, output.count.tree, what, self.shared)
                self._expression(output.count, what)
        for bodies, where in ((template.wrap, frozenset(known)), (template.unwrap, kept)):
            for _, source in bodies:
                self._coordinates(source, "a body", where)

    def _check_monoids(self) -> None:
        names = [fold.monoid for fold in (*self.template.folds, *self.template.scans)]
        for definition in self.template.monoids:
            check_definition(definition, names, self._constant)

    def _check_folds(self, section: str, folds: Iterable[Fold]) -> None:
        own = self.template.monoids
        for fold in folds:
            self._expression(fold.extent, f"{section}.{fold.label}.extent")
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
            self._body(source, "wrap", name, folded=False)
        for name, source in template.unwrap:
            self._body(source, "unwrap", name, folded=True)
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
                self._names(output.dtype, output.dtype.tree, what, self.shared | inside(output))

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

    def _explain(self, source: Source[Tree], what: str) -> Explaining:
        return source.explain(f"template {self.template.name}: {what}")

    def _names(self, source: Source[Tree], tree: Tree, what: str, bound: Collection[str]) -> None:
        with self._explain(source, what):
            for node in walk(tree):
                if isinstance(node, Comprehension) and node.variable in self.bound:
                    raise ListError(
                        f"${node.variable} is bound already, and the list binds it again",
                        hint="give one of them another name",
                    )
            for name in sorted(variables(tree) - set(bound)):
                if name in self.template.member_names and name in self.bound:
                    raise FamilyError(
                        f"${name} is each member's own, and this is shared by all of them",
                        hint="index, ipf, when and the bodies may use it",
                    )
                raise UnknownNameError(
                    f"${name} is not bound", hint=nearest(f"${name}", (f"${n}" for n in bound))
                )

    def _coordinates(self, source: Source[Tree], what: str, known: Collection[str]) -> None:
        tree = source.tree
        with self._explain(source, what):
            for node in walk(tree):
                if isinstance(node, Coordinate) and node.name not in known:
                    raise UnknownNameError(
                        f"@{node.name} is no index dimension here",
                        hint=nearest(f"@{node.name}", (f"@{n}" for n in known)),
                    )

    def _expression(
        self,
        source: Source[Tree],
        what: str,
        coordinates: Collection[str] = frozenset(),
        local: frozenset[str] = frozenset(),
    ) -> None:
        self._names(source, source.tree, what, self.bound | local)
        self._coordinates(source, what, coordinates)
        with self._explain(source, what):
            for node in walk(source.tree):
                if isinstance(node, Call):
                    builtins.check_call(node.function, len(node.arguments))

    def _constant(self, source: Source[Expr], what: str, names: Collection[str] = ()) -> None:
        """A scalar expression that reads no coordinate, and no input but the `names` it has."""
        self._coordinates(source, what, ())
        self._scalar(source, what, names)

    def _body(self, source: Source[Expr], what: str, output: str | None, *, folded: bool) -> None:
        boxed = [entry.name for entry in self.template.inputs if entry.projection.tree.box]
        with self._explain(source, what):
            check_reads(source.tree, self.inputs, boxed)
        local = {
            name for o in self.template.outputs if output in (None, o.name) for name in inside(o)
        }
        self._scalar(source, what, (*self.inputs, FOLD) if folded else self.inputs, local)

    def _scalar(
        self,
        source: Source[Expr],
        what: str,
        inputs: Collection[str],
        local: Collection[str] = (),
    ) -> None:
        self._names(source, source.tree, what, {*self.bound, *local})
        known = (*inputs, *NAMED)
        with self._explain(source, what):
            for node in _computed(source.tree):
                if isinstance(node, Call):
                    spliced = any(isinstance(a, Splice) for a in node.arguments)
                    functions.check_call(node.function, None if spliced else len(node.arguments))
                elif isinstance(node, Name | Splice) and node.name not in known:
                    hint = nearest(node.name, known)
                    if node.name in self.inputs:
                        hint = "a number is needed here, which no input is"
                    elif node.name == FOLD:
                        hint = "the folded value is read in unwrap"
                    raise UnknownNameError(f"{node.name} is no input", hint=hint)


def _computed(tree: Tree) -> Iterable[Tree]:
    """The trees inside a body that compute values: not the dtypes that some functions take."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        inside = list(children(node))
        if isinstance(node, Call) and node.function in functions.DTYPE_ARGUMENTS:
            del inside[functions.DTYPE_ARGUMENTS[node.function]]
        pending.extend(inside)
