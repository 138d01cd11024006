"""What an application becomes, prepared once and stamped out for every application alike.

A recipe is the list of loom operations that a template gives for some operand types, result types and
parameters: their properties, and bodies as prototypes that are cloned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr, SymbolRefAttr, i32
from xdsl.ir import Attribute, Block, LocationAttr, Operation, Region, SSAValue

from tapestry.dialects import loom
from tapestry.dialects.zspace import ProjectionAttr, RangeAttr
from tapestry.metakernels.errors import UnsupportedError
from tapestry.metakernels.expansion import (
    Composite,
    Expansion,
    MapFold,
    Move,
    Opaque,
    Reshape,
    TensorSpec,
)
from tapestry.passes.weft._bodies import build_region, element_type
from tapestry.zspace import AffineMap, Projection, Range


@dataclass(frozen=True, slots=True)
class BodyRecipe:
    """A body as a list of operations; operands are numbers of values, arguments first."""

    arguments: tuple[tuple[Attribute, str | None], ...]
    ops: tuple[tuple[type[Operation], tuple[int, ...], tuple[Attribute, ...], Mapping[str, Attribute]], ...]

    @staticmethod
    def of(region: Region) -> BodyRecipe:
        """The recipe of a region of one block."""
        block = region.block
        numbers: dict[SSAValue, int] = {argument: n for n, argument in enumerate(block.args)}
        ops: list[
            tuple[type[Operation], tuple[int, ...], tuple[Attribute, ...], Mapping[str, Attribute]]
        ] = []
        for op in block.ops:
            operands = tuple(numbers[value] for value in op.operands)
            ops.append((type(op), operands, tuple(op.result_types), op.properties))
            for result in op.results:
                numbers[result] = len(numbers)
        return BodyRecipe(tuple((a.type, a.name_hint) for a in block.args), tuple(ops))

    def stamp(self, location: LocationAttr) -> Region:
        """A fresh region."""
        block = Block(arg_types=[element for element, _ in self.arguments])
        values: list[SSAValue] = list(block.args)
        for value, (_, name) in zip(values, self.arguments, strict=True):
            value.name_hint = name
        for kind, operands, result_types, properties in self.ops:
            op = kind.create(
                operands=[values[n] for n in operands],
                result_types=result_types,
                properties=properties,
                location=location,
            )
            block.add_op(op)
            values.extend(op.results)
        return Region(block)
