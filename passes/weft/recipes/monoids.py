"""The monoids that applications fold by: each is defined once in the module.

    fold: {n: {extent: $n, monoid: total}}   ->   loom.monoid @total_f32 ... and `by @total_f32`

A monoid is called after the template's name for it and the types of its state. Two that are called
alike and differ get a number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp, StringAttr

from tapestry.algebra.literals import number_attr
from tapestry.dialects import loom
from tapestry.metakernels.errors import MonoidError
from tapestry.metakernels.expansion import MonoidBody
from tapestry.metakernels.scalars import Constant
from tapestry.passes.weft.recipes.bodies import build_region, element_type


@dataclass
class Monoids:
    """The definitions of one module: `known` by what they say, `taken` the names in use."""

    known: dict[str, str] = field(default_factory=dict[str, str])
    taken: set[str] = field(default_factory=set[str])
    made: list[loom.MonoidOp] = field(default_factory=list[loom.MonoidOp])

    @staticmethod
    def of(module: ModuleOp) -> Monoids:
        """The monoids and names that a module has."""
        monoids = Monoids()
        for op in module.body.block.ops:
            name = op.properties.get("sym_name")
            if isinstance(name, StringAttr):
                monoids.taken.add(name.data)
            if isinstance(op, loom.MonoidOp):
                monoids.known.setdefault(_text(op), op.sym_name.data)
        return monoids

    def symbol(self, monoid: MonoidBody) -> str:
        """The name of the definition of `monoid`, which is made when there is none."""
        definition = _definition(monoid)
        text = _text(definition)
        if text not in self.known:
            self.known[text] = self._name(monoid)
            definition.properties["sym_name"] = StringAttr(self.known[text])
            self.made.append(definition)
        return self.known[text]

    def _name(self, monoid: MonoidBody) -> str:
        plain = "_".join((monoid.name, *monoid.state)).replace("<", "_").replace(">", "")
        name, number = plain, 1
        while name in self.taken:
            name, number = f"{plain}_{number}", number + 1
        self.taken.add(name)
        return name

    def insert(self, module: ModuleOp) -> None:
        """Put the definitions that were made at the start of the module."""
        first = module.body.block.first_op
        for definition in self.made:
            if first is None:
                module.body.block.add_op(definition)
            else:
                module.body.block.insert_op_before(definition, first)
        self.made = []


def _definition(monoid: MonoidBody) -> loom.MonoidOp:
    zeros = [number_attr(_number(part), element_type(part.dtype)) for part in monoid.zero]
    merge = build_region(monoid.merge, (*monoid.state, *monoid.state), ())
    definition = loom.MonoidOp("_", zeros, merge, commutative=monoid.commutative)
    problems = definition.problems()
    if problems:
        raise MonoidError(f"monoids.{monoid.name}: {problems[0].message}")
    return definition


def _number(part: object) -> float:
    assert isinstance(part, Constant)
    return part.value


def _text(definition: loom.MonoidOp) -> str:
    """What a definition says, without its name."""
    other = definition.clone()
    other.properties["sym_name"] = StringAttr("_")
    for argument in other.merge.block.args:
        argument.name_hint = None
    for op in other.merge.walk():
        for result in op.results:
            result.name_hint = None
    return str(other)


def name_of(monoid: str | MonoidBody, monoids: Monoids) -> str:
    """The name that operations fold by."""
    return monoid if isinstance(monoid, str) else monoids.symbol(monoid)
