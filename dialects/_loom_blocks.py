"""`loom.read`: a cell of a block, at computed places inside a declared box.

    ins(%ids : (d0, d1) -> (d0), %table : (d0, d1) -> (0, d1) :> [50, 1])
    wrap (%id: i64, %rows: !loom.block<[50, 1], f32>) {
      %zero = arith.constant 0 : i64
      %v = loom.read %rows[%id, %zero] : f32

The box is what the projection says: a shard selects it whole, so sharding stays sound whatever the
indices turn out to be. Indices count from the box's first cell.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, i64
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    param_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tapestry.algebra.dtypes import body_type
from tapestry.zspace import Point, Projection


@irdl_attr_definition
class BlockType(ParametrizedAttribute, TypeAttribute):
    """The cells that a point selects, where they are more than one: `!loom.block<[50, 1], f32>`."""

    name = "loom.block"

    extents: ArrayAttr[IntAttr] = param_def()
    element_type: Attribute = param_def()

    @classmethod
    def of(cls, shape: Sequence[int], element_type: Attribute) -> BlockType:
        """The type of blocks of a shape."""
        return cls(ArrayAttr([IntAttr(extent) for extent in shape]), element_type)

    @property
    def shape(self) -> Point:
        """How many cells it has along each dimension of the tensor."""
        return tuple(extent.data for extent in self.extents)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE,
                lambda: parser.parse_integer(allow_boolean=False, allow_negative=False),
            )
            parser.parse_punctuation(",", " before the element type of a block")
            element = parser.parse_type()
        return (ArrayAttr([IntAttr(extent) for extent in shape]), element)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{list(self.shape)}, ")
            printer.print_attribute(self.element_type)


def argument_type(projection: Projection, element_type: Attribute) -> Attribute:
    """What a body takes of an input: a cell, or a block where a point selects a box."""
    cell = body_type(element_type)
    return cell if projection.is_unit else BlockType.of(projection.shape, cell)


def element_of(argument: Attribute) -> Attribute:
    """The type of the cells that a body's argument holds."""
    return argument.element_type if isinstance(argument, BlockType) else argument


@irdl_op_definition
class ReadOp(IRDLOperation):
    """The cell of a block at an index per dimension, counted from the block's first cell.

    Outside the block it is the value after `else`; without one, that is an error when it is run.

    Example: `%v = loom.read %rows[%id, %zero] else %nothing : f32`
    """

    name = "loom.read"

    block = operand_def(BlockType)
    indices = var_operand_def(i64)
    otherwise = opt_operand_def()
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        block: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        otherwise: SSAValue | Operation | None = None,
    ) -> None:
        value = SSAValue.get(block, type=BlockType)
        super().__init__(
            operands=[value, indices, otherwise], result_types=[value.type.element_type]
        )

    @property
    def box(self) -> BlockType:
        """The type of the block that is read."""
        assert isinstance(self.block.type, BlockType)
        return self.block.type

    @classmethod
    def parse(cls, parser: Parser) -> ReadOp:
        operand = parser.parse_unresolved_operand()
        # Blocks are arguments, so the name is known: the syntax does not repeat its type.
        known = parser.ssa_values.get(operand.operand_name)
        block = None if known is None else known[operand.index]
        if block is None or not isinstance(block.type, BlockType):
            message = "only a block is read; it is an argument of the body"
            parser.raise_error(message, operand.span.start, operand.span.end)
        indices = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parser.parse_operand(i64), " to index a block"
        )
        otherwise = None
        if parser.parse_optional_keyword("else") is not None:
            otherwise = parser.parse_operand(block.type.element_type)
        parser.parse_punctuation(":", " before the type of the cell")
        position = parser.pos
        kind = parser.parse_type()
        if kind != block.type.element_type:
            message = f"the block holds {block.type.element_type}, not {kind}"
            parser.raise_error(message, position, parser.pos)
        return cls(block, indices, otherwise)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.block)
        printer.print_string("[")
        printer.print_list(self.indices, printer.print_operand)
        printer.print_string("]")
        if self.otherwise is not None:
            printer.print_string(" else ")
            printer.print_operand(self.otherwise)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        rank = len(self.box.shape)
        if len(self.indices) != rank:
            raise VerifyException(f"the block has rank {rank}, but {len(self.indices)} indices")
        element = self.box.element_type
        if self.result.type != element:
            raise VerifyException(f"it makes {self.result.type} of a block of {element}")
        if self.otherwise is not None and self.otherwise.type != element:
            raise VerifyException(
                f"outside the block it is {self.otherwise.type}, but the block holds {element}"
            )
