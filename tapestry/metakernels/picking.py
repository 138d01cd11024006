"""Which tensors a member of a family reads and writes: those for which `when` holds.

    inputs: {tensors: {each: $i, when: "$i == $k", ...}}

A condition of that form picks one tensor without trying every position.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tapestry.metakernels.evaluation import Scope, evaluate
from tapestry.metakernels.syntax import Compare, Expr, Variable, variables
from tapestry.metakernels.templates import Input, Output
from tapestry.metakernels.values import Names, integer


@dataclass(frozen=True, slots=True)
class Group:
    """Consecutive tensors, from the number `first` on, of one entry of `section`."""

    entry: Input | Output
    section: str
    first: int
    count: int

    def picked(self, names: Names) -> Iterable[int]:
        """The numbers of the tensors that a member with these names takes."""
        numbers = range(self.first, self.first + self.count)
        when, each = self.entry.when, self.entry.each
        if when is None:
            return numbers
        with when.explain(f"{self.section}.{self.entry.name}.when"):
            if each is None:
                return numbers if _holds(when.tree, names) else ()
            place = _only_place(when.tree, each)
            if place is not None:
                position = integer(evaluate(place, Scope(names)), "the position in a list")
                return (self.first + position,) if 0 <= position < self.count else ()
            inside = ({**names, each: position} for position in range(self.count))
            return [n for n, local in zip(numbers, inside, strict=True) if _holds(when.tree, local)]


def _holds(condition: Expr, names: Names) -> bool:
    return bool(integer(evaluate(condition, Scope(names)), "the condition"))


def _only_place(condition: Expr, each: str) -> Expr | None:
    """The `place` of a condition `$each == place`, when it does not depend on the position."""
    if not isinstance(condition, Compare) or condition.operator != "==":
        return None
    for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
        if one == Variable(each) and each not in variables(other):
            return other
    return None


def group(entries: Iterable[Input | Output], section: str) -> tuple[Group, ...]:
    """The entries of tensors in order, those of one list together."""
    groups: list[Group] = []
    for number, entry in enumerate(entries):
        last = groups[-1] if groups else None
        if last is not None and last.entry is entry:
            groups[-1] = replace(last, count=last.count + 1)
        else:
            groups.append(Group(entry, section, number, 1))
    return tuple(groups)
