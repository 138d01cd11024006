"""What can be checked of lists of tensors, optional inputs and families before they are applied.

    template concat: $n[$j] in the shape of tensors, whose `each` is $i
      hint: write $n[$i]

Names inside an entry with `each: $i` include `$i`; outside, `#i` counts the tensors.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from tapestry.diagnostics import Location
from tapestry.metakernels.errors import ListError, WeftError
from tapestry.metakernels.syntax import Clause, Dimension, Group, Sequence, walk
from tapestry.metakernels.templates import Input, Output, Source, Template

_NONE: Final[frozenset[str]] = frozenset()


def inside(entry: Input | Output) -> frozenset[str]:
    """The name that is known inside the entry of a list only: that of the position."""
    return _NONE if entry.each is None else frozenset((entry.each,))


class ListCheck:
    """Checks one template; `fail` makes the error at a path in it."""

    def __init__(self, template: Template) -> None:
        self.template = template

    def _fail(self, message: str, *path: str, hint: str | None = None) -> WeftError:
        place = self._place(*path)
        return ListError(f"template {self.template.name}: {message}", location=place, hint=hint)

    def _place(self, *path: str) -> Location:
        return self.template.document.at(*path).location

    def run(self) -> None:
        """Raise for the first rule that is broken."""
        listed: dict[str, bool] = {}
        for entry in self.template.inputs:
            if entry.optional and entry.each is not None:
                raise self._fail(
                    f"{entry.name} is a list, which is left out by giving none",
                    "inputs", entry.name, "optional",
                    hint="leave `optional` or `each` out",
                )  # fmt: skip
            for node in walk(entry.shape.tree):
                if not isinstance(node, Dimension | Sequence | Group) or node.name is None:
                    continue
                self._check_element(entry, node)
                if listed.setdefault(node.name, node.each is not None) != (node.each is not None):
                    raise self._fail(
                        f"${node.name} is one value in one place and ${node.name}[...], an element "
                        "of a list, in another",
                        "inputs", entry.name, "shape",
                    )  # fmt: skip
        for output in self.template.outputs:
            self._check_count(output)

    def _check_element(self, entry: Input, node: Dimension | Sequence | Group) -> None:
        if node.each is None or node.each == entry.each:
            return
        written = f"${node.name}[${node.each}]"
        if entry.each is None:
            raise self._fail(
                f"{written} is for lists, and {entry.name} is one tensor",
                "inputs", entry.name, "shape",
                hint=f"each: ${node.each}",
            )  # fmt: skip
        raise self._fail(
            f"{written} in the shape of {entry.name}, whose `each` is ${entry.each}",
            "inputs", entry.name, "shape",
            hint=f"write ${node.name}[${entry.each}]",
        )  # fmt: skip

    def _check_count(self, output: Output) -> None:
        if output.each is None:
            if output.count is not None:
                raise self._fail(
                    f"{output.name} is one tensor, and `count` is for lists",
                    "outputs", output.name, "count",
                    hint="each: $i",
                )  # fmt: skip
            return
        if self.template.steps:
            return
        lists = {entry.each for entry in self.template.inputs}
        if output.count is None and output.each not in lists:
            raise self._fail(
                f"how many tensors {output.name} has is not given",
                "outputs", output.name, "each",
                hint='for example count: "len($n)"',
            )  # fmt: skip

    def counted(self, bound: Collection[str]) -> set[str]:
        """The names that `#` counts tensors by; none of them is a size as well."""
        found: set[str] = set()
        for entry in self.template.inputs:
            if entry.counted is None:
                continue
            if entry.counted in bound:
                raise self._fail(
                    f"#{entry.counted} counts the tensors of {entry.name}, and ${entry.counted} is "
                    "bound to something else",
                    "inputs", entry.name,
                    hint="give one of them another name",
                )  # fmt: skip
            found.add(entry.counted)
        for output in self.template.outputs:
            if output.each is not None:
                if output.each in bound:
                    raise self._fail(
                        f"${output.each} is bound already", "outputs", output.name, "each"
                    )
                found.add(output.each)
        return found

    def member(self, source: Source[Clause], bound: Collection[str]) -> set[str]:
        """The number of the members that a clause of `for` gives; those after it may use it."""
        name = source.tree.variable
        if name in bound:
            raise ListError(
                f"template {self.template.name}: for: ${name} is bound already",
                location=source.text.location,
            )
        return {name}
