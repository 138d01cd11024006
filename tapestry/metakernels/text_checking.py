"""Which names the texts of a template may use: sizes, index dimensions, inputs, functions.

>>> from tapestry.metakernels import load_library
>>> from tapestry.metakernels.parsing import parse_scalar
>>> from tapestry.metakernels.text import Text
>>> relu = TextCheck(load_library().get("relu"))
>>> try:
...     relu.body(Source(parse_scalar("max(X, 0)"), Text("max(X, 0)")), "wrap", None, folded=False)
... except UnknownNameError as error:
...     print(error)
error: template relu: wrap `max(X, 0)`: X is no input
  hint: did you mean x?

A text is an expression of sizes (`$n - 1`), of coordinates (`@row + 1`), or a body over cells
(`x * y`). `checking` says where each stands, and so which names there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tapestry.metakernels import builtins, functions
from tapestry.metakernels.blocks import check_reads
from tapestry.metakernels.bodies import FOLD
from tapestry.metakernels.constants import NAMED
from tapestry.metakernels.errors import FamilyError, ListError, UnknownNameError, nearest
from tapestry.metakernels.list_checking import inside
from tapestry.metakernels.syntax import (
    Call,
    Comprehension,
    Coordinate,
    Expr,
    Name,
    Splice,
    Tree,
    children,
    variables,
    walk,
)
from tapestry.metakernels.templates import Explaining, Source, Template


class TextCheck:
    """Raises a located WeftError for a name that a text of `template` cannot use.

    `bound` are the `$names` that are known so far: whoever checks adds to them.
    """

    def __init__(self, template: Template) -> None:
        self.template = template
        self.inputs = [entry.name for entry in template.inputs]
        self.bound: set[str] = {parameter.name for parameter in template.parameters}

    def explain(self, source: Source[Tree], what: str) -> Explaining:
        """Errors inside are of `what` in the template, at the place of the text."""
        return source.explain(f"template {self.template.name}: {what}")

    def names(self, source: Source[Tree], tree: Tree, what: str, bound: Collection[str]) -> None:
        """Every `$name` of a tree is in `bound`, and no list binds one again."""
        with self.explain(source, what):
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

    def coordinates(self, source: Source[Tree], what: str, known: Collection[str]) -> None:
        """Every `@name` is one of the index dimensions that are known here."""
        tree = source.tree
        with self.explain(source, what):
            for node in walk(tree):
                if isinstance(node, Coordinate) and node.name not in known:
                    raise UnknownNameError(
                        f"@{node.name} is no index dimension here",
                        hint=nearest(f"@{node.name}", (f"@{n}" for n in known)),
                    )

    def expression(
        self,
        source: Source[Tree],
        what: str,
        dims: Collection[str] = frozenset(),
        local: frozenset[str] = frozenset(),
    ) -> None:
        """An expression of what is bound, of `local` names, and of the coordinates `dims`."""
        self.names(source, source.tree, what, self.bound | local)
        self.coordinates(source, what, dims)
        with self.explain(source, what):
            for node in walk(source.tree):
                if isinstance(node, Call):
                    builtins.check_call(node.function, len(node.arguments))

    def constant(self, source: Source[Expr], what: str, names: Collection[str] = ()) -> None:
        """A scalar expression that reads no coordinate, and no input but the `names` it has."""
        self.coordinates(source, what, ())
        self._scalar(source, what, names)

    def body(self, source: Source[Expr], what: str, output: str | None, *, folded: bool) -> None:
        """A body of `output` (of all for None) over cells, and over what was folded if `folded`."""
        boxed = [entry.name for entry in self.template.inputs if entry.projection.tree.box]
        with self.explain(source, what):
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
        self.names(source, source.tree, what, {*self.bound, *local})
        known = (*inputs, *NAMED)
        with self.explain(source, what):
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
