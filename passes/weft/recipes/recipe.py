"""What an application becomes, prepared once and stamped out for every application alike.

A recipe lists the loom operations that a template gives for some operand types, result types and
parameters. Values are numbers: the operands first, then the results of the operations in order.
Stamping a recipe makes fresh operations and checks nothing again; `making` makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    LocationAttr,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue


@dataclass(frozen=True, slots=True)
class OpRecipe:
    """One operation; `label` is what its label adds to that of the application."""

    kind: type[Operation]
    operands: tuple[int, ...]
    result_types: tuple[Attribute, ...]
    properties: Mapping[str, Attribute]
    bodies: tuple[BodyRecipe | None, ...] = ()
    label: str | None = None


@dataclass(frozen=True, slots=True)
class BodyRecipe:
    """A region of one block; its arguments are the first values."""

    types: tuple[Attribute, ...]
    names: tuple[str | None, ...]
    ops: tuple[OpRecipe, ...]

    @staticmethod
    def of(region: Region) -> BodyRecipe:
        """The recipe of a region of one block."""
        block = region.block
        numbers: dict[SSAValue, int] = {argument: n for n, argument in enumerate(block.args)}
        ops: list[OpRecipe] = []
        for op in block.ops:
            operands = tuple(numbers[value] for value in op.operands)
            ops.append(OpRecipe(type(op), operands, tuple(op.result_types), op.properties))
            for result in op.results:
                numbers[result] = len(numbers)
        return BodyRecipe(
            tuple(argument.type for argument in block.args),
            tuple(argument.name_hint for argument in block.args),
            tuple(ops),
        )

    def stamp(self, location: LocationAttr) -> Region:
        """A fresh region."""
        block = Block(arg_types=self.types)
        for argument, name in zip(block.args, self.names, strict=True):
            argument.name_hint = name
        values: list[SSAValue] = list(block.args)
        for recipe in self.ops:
            op = recipe.kind.create(
                operands=[values[n] for n in recipe.operands],
                result_types=recipe.result_types,
                properties=recipe.properties,
                location=location,
            )
            block.add_op(op)
            values.extend(op.results)
        return Region(block)


@dataclass(frozen=True, slots=True)
class Recipe:
    """The operations of an application, and which values its results are."""

    ops: tuple[OpRecipe, ...]
    results: tuple[int, ...]

    def stamp(
        self, operands: Sequence[SSAValue], label: str, location: LocationAttr
    ) -> tuple[list[Operation], list[SSAValue]]:
        """Fresh operations on `operands`, and the values of the results."""
        values = list(operands)
        made: list[Operation] = []
        for recipe in self.ops:
            properties = recipe.properties
            name = label if not recipe.label else f"{label}_{recipe.label}"
            if recipe.bodies:
                properties = {**properties, "label": StringAttr(name)}
            op = recipe.kind.create(
                operands=[values[n] for n in recipe.operands],
                result_types=recipe.result_types,
                properties=properties,
                location=location,
                regions=[
                    Region() if body is None else body.stamp(location) for body in recipe.bodies
                ],
            )
            for result in op.results:
                result.name_hint = name
            made.append(op)
            values.extend(op.results)
        return made, [values[n] for n in self.results]
