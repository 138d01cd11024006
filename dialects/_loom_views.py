"""Tensors that are other tensors seen differently: views, reshapes, assemblies.

    %t = loom.view %x : (d0, d1) -> (d1, d0)
           : !loom.tensor<[0, 0] : [2, 3], f32> -> !loom.tensor<[0, 0] : [3, 2], f32>
    %r = loom.reshape %t : !loom.tensor<[0, 0] : [3, 2], f32> -> !loom.tensor<[0] : [6], f32>

None of them moves data while readers can take them in their projections.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
)
from xdsl.ir import (
    SSAValue,
)
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    Pure,
)

from tapestry.dialects import _loom_syntax as syntax
from tapestry.dialects import _loom_verify as rules
from tapestry.dialects._checked import CheckedOperation
from tapestry.dialects._dominance import DefinedBeforeUse
from tapestry.dialects._loom_types import (
    TensorType,
    projections_attr,
    tensor_type,
)
from tapestry.dialects.zspace import ProjectionAttr
from tapestry.issues import Problem
from tapestry.zspace import AffineMap, Projection


@irdl_op_definition
class ViewOp(CheckedOperation):
    """A tensor whose cell at `p` is the source's cell at `map(p)`: slice, transpose, broadcast.

    Example:

        %t = loom.view %x : (d0, d1) -> (d1, d0)
               : !loom.tensor<[0, 0] : [2, 3], f32> -> !loom.tensor<[0, 0] : [3, 2], f32>

    Steps and reversals scale rows, a broadcast dimension is read by no row, a squeezed one by a
    constant, and on a diagonal two rows move together:

        %s = loom.view %x : (d0) -> (1, 2 - 2 * d0)
               : !loom.tensor<[0, 0] : [2, 3], f32> -> !loom.tensor<[0] : [2], f32>
        %d = loom.view %x : (d0) -> (d0, d0)
               : !loom.tensor<[0, 0] : [2, 3], f32> -> !loom.tensor<[0] : [2], f32>
    """

    name = "loom.view"

    source = operand_def(TensorType)
    projection = prop_def(ProjectionAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure(), DefinedBeforeUse())

    def __init__(self, source: SSAValue, projection: Projection, result: TensorType) -> None:
        super().__init__(
            operands=[source],
            properties={"projection": ProjectionAttr(projection)},
            result_types=[result],
        )

    @classmethod
    def parse(cls, parser: Parser) -> ViewOp:
        source, projection = syntax.parse_projected(parser)
        attributes = parser.parse_optional_attr_dict()
        (value,), (result,) = syntax.parse_types(parser, [source], results=1)
        op = cls(value, projection, cast(TensorType, result))
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_string(f" : {self.projection.data}")
        syntax.print_attributes(printer, self)
        syntax.print_types(printer, self)

    @property
    def subject(self) -> str:
        return "the view"

    def problems(self) -> list[Problem]:
        return rules.view_problems(self)


@irdl_op_definition
class ReshapeOp(CheckedOperation):
    """The same cells in row-major order, under another shape.

    Example:

        %r = loom.reshape %x : !loom.tensor<[0, 0] : [2, 6], f32> -> !loom.tensor<[0] : [12], f32>
    """

    name = "loom.reshape"

    source = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure(), DefinedBeforeUse())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, result: TensorType) -> None:
        super().__init__(operands=[source], result_types=[result])

    @property
    def subject(self) -> str:
        return "the reshape"

    def problems(self) -> list[Problem]:
        return rules.reshape_problems(self)


@irdl_op_definition
class AssembleOp(CheckedOperation):
    """One tensor from parts, which tile the result's range exactly: concatenate, pad, interleave.

    A part stands where its own range is, or `at` where a placement puts its cells: its cell at `p`
    is the result's cell at `placement(p)`.

    Example:

        %y = loom.assemble %a, %b : !loom.tensor<[0] : [3], f32>, !loom.tensor<[3] : [8], f32>
               -> !loom.tensor<[0] : [8], f32>

        %z = loom.assemble %even at (d0) -> (2 * d0), %odd at (d0) -> (2 * d0 + 1)
               : !loom.tensor<[0] : [4], f32>, !loom.tensor<[0] : [4], f32>
               -> !loom.tensor<[0] : [8], f32>
    """

    name = "loom.assemble"

    placements = opt_prop_def(ArrayAttr[ProjectionAttr])
    parts = var_operand_def(TensorType)
    result = result_def(TensorType)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure(), DefinedBeforeUse())

    def __init__(
        self,
        parts: Sequence[SSAValue],
        result: TensorType,
        placements: Sequence[AffineMap] | None = None,
    ) -> None:
        """Without `placements`, every part stands where it is."""
        rank = result.box.rank
        plain = placements is None or all(p == AffineMap.identity(rank) for p in placements)
        projections = None if plain else projections_attr(map(Projection.cells, placements or ()))
        super().__init__(
            operands=[parts], properties={"placements": projections}, result_types=[result]
        )

    @property
    def placed(self) -> tuple[AffineMap, ...]:
        """Per part, where in the result its cells are."""
        if self.placements is None:
            identity = AffineMap.identity(tensor_type(self.result).box.rank)
            return (identity,) * len(self.parts)
        return tuple(p.data.map for p in self.placements)

    @classmethod
    def parse(cls, parser: Parser) -> AssembleOp:
        return syntax.parse_assemble(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_assemble(self, printer)

    @property
    def subject(self) -> str:
        return "the assembly"

    def problems(self) -> list[Problem]:
        return rules.assemble_problems(self)
