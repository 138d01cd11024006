"""Tensor descriptors: blocks of a matrix that hardware moves as a whole (TMA on Hopper).

    %d = triton.describe %x_ptr at %base shape %m, %k stride 4096 blocks ["BLOCK_M", "BLOCK_K"] ...
    %x = triton.load_block %d[%row, %column] : !triton.descriptor<bf16>, i32, i32 -> ...

What of a block lies outside the shape is zero when it is loaded, and is not stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, IntegerType, StringAttr, TensorType, i64
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    param_def,
    prop_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from tapestry.algebra.dtypes import byte_size
from tapestry.dialects._triton_kernel import block_size
from tapestry.dialects._triton_types import PointerType, shape_of, tile_type

ALIGNMENT = 16
"""How many bytes rows of what a descriptor describes are multiples of, and where they start."""


@irdl_attr_definition
class DescriptorType(ParametrizedAttribute, TypeAttribute):
    """A matrix of elements in memory, moved in blocks: `!triton.descriptor<bf16>`."""

    name = "triton.descriptor"

    element_type: Attribute = param_def()


@irdl_op_definition
class DescribeOp(IRDLOperation):
    """A matrix at `base` cells from a pointer, and the blocks that it is moved in.

    `tl.make_tensor_descriptor(ptr + base, [rows, columns], [stride, 1], [BLOCK_M, BLOCK_K])`

    Example:

        %d = triton.describe %x_ptr at %zero shape %rows, %columns stride 4096
               blocks ["BLOCK_M", "BLOCK_K"]
               : !triton.ptr<bf16>, i32, i32, i32 -> !triton.descriptor<bf16>
    """

    name = "triton.describe"

    pointer = operand_def(PointerType)
    base = operand_def(IntegerType)
    rows = operand_def(IntegerType)
    columns = operand_def(IntegerType)
    stride = prop_def(IntegerAttr)
    blocks = prop_def(ArrayAttr[StringAttr])
    result = result_def(DescriptorType)

    assembly_format = (
        "$pointer `at` $base `shape` $rows `,` $columns `stride` $stride `blocks` $blocks "
        "attr-dict `:` type($pointer) `,` type($base) `,` type($rows) `,` type($columns) `->` "
        "type($result)"
    )

    def __init__(
        self,
        pointer: SSAValue,
        base: SSAValue,
        shape: tuple[SSAValue, SSAValue],
        stride: int,
        blocks: Sequence[str],
    ) -> None:
        assert isinstance(pointer.type, PointerType)
        super().__init__(
            operands=[pointer, base, *shape],
            properties={
                "stride": IntegerAttr(stride, i64),
                "blocks": ArrayAttr([StringAttr(block) for block in blocks]),
            },
            result_types=[DescriptorType(pointer.type.element_type)],
        )

    def verify_(self) -> None:
        assert isinstance(self.pointer.type, PointerType)
        element = self.pointer.type.element_type
        if self.result.type != DescriptorType(element):
            raise VerifyException(f"{self.pointer.type} is not described by {self.result.type}")
        if len(self.blocks) != 2:
            raise VerifyException("blocks are matrices: two sizes")
        row = block_size(self, self.blocks.data[1].data) * byte_size(element)
        if row < ALIGNMENT or self.stride.value.data * byte_size(element) % ALIGNMENT:
            raise VerifyException(f"rows, of blocks as well, take multiples of {ALIGNMENT} bytes")


@irdl_op_definition
class LoadBlockOp(IRDLOperation):
    """The block of a described matrix that starts at a row and a column: `d.load([m, k])`.

    Example:

        %x = triton.load_block %d[%m, %k]
               : !triton.descriptor<bf16>, i32, i32 -> tensor<128x64xbf16>
    """

    name = "triton.load_block"

    descriptor = operand_def(DescriptorType)
    row = operand_def(IntegerType)
    column = operand_def(IntegerType)
    result = result_def(TensorType)

    assembly_format = (
        "$descriptor `[` $row `,` $column `]` attr-dict `:` type($descriptor) `,` type($row) `,` "
        "type($column) `->` type($result)"
    )

    def __init__(
        self, descriptor: SSAValue, row: SSAValue, column: SSAValue, shape: Sequence[int]
    ) -> None:
        assert isinstance(descriptor.type, DescriptorType)
        super().__init__(
            operands=[descriptor, row, column],
            result_types=[tile_type(descriptor.type.element_type, shape)],
        )

    def verify_(self) -> None:
        _check_block(self.descriptor, self.result)


@irdl_op_definition
class StoreBlockOp(IRDLOperation):
    """Write a tile to a block of a described matrix: `d.store([m, n], value)`.

    Example:

        triton.store_block %y to %d[%m, %n]
          : tensor<128x64xbf16>, !triton.descriptor<bf16>, i32, i32
    """

    name = "triton.store_block"

    value = operand_def(TensorType)
    descriptor = operand_def(DescriptorType)
    row = operand_def(IntegerType)
    column = operand_def(IntegerType)

    assembly_format = (
        "$value `to` $descriptor `[` $row `,` $column `]` attr-dict `:` type($value) `,` "
        "type($descriptor) `,` type($row) `,` type($column)"
    )

    def __init__(
        self, value: SSAValue, descriptor: SSAValue, row: SSAValue, column: SSAValue
    ) -> None:
        super().__init__(operands=[value, descriptor, row, column])

    def verify_(self) -> None:
        _check_block(self.descriptor, self.value)


def _check_block(descriptor: SSAValue, tile: SSAValue) -> None:
    """Raise VerifyException unless a tile is a block of a descriptor."""
    assert isinstance(descriptor.type, DescriptorType)
    made = descriptor.owner
    shape = shape_of(tile)
    if isinstance(made, DescribeOp):
        shape = tuple(block_size(made, block.data) for block in made.blocks)
    if tile.type != tile_type(descriptor.type.element_type, shape):
        raise VerifyException(f"{tile.type} is not a block of {descriptor.type}")
