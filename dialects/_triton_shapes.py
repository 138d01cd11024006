"""Where a program is and how big its tiles are: program ids, blocks, new and reshaped tiles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tapestry.dialects._triton_kernel import block_size
from tapestry.dialects._triton_plain import PlainOp
from tapestry.dialects._triton_types import element_of, shape_of, tile_type


@irdl_op_definition
class ProgramIdOp(PlainOp):
    """Which program of the grid this is: `tl.program_id(axis)`.

    Example: `%pid = triton.program_id 0 : i32`
    """

    name = "triton.program_id"

    axis = prop_def(IntegerAttr)
    result = result_def(i32)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$axis attr-dict"

    def __init__(self, axis: int) -> None:
        super().__init__(properties={"axis": IntegerAttr(axis, i32)}, result_types=[i32])


@irdl_op_definition
class CdivOp(PlainOp):
    """How many blocks cover a length: `tl.cdiv(length, BLOCK)`.

    Example: `%blocks = triton.cdiv %n by "BLOCK_N" : i32 -> i32`
    """

    name = "triton.cdiv"

    length = operand_def(IntegerType)
    block = prop_def(StringAttr)
    result = result_def(IntegerType)

    traits = traits_def(Pure())
    assembly_format = "$length `by` $block attr-dict `:` type($length) `->` type($result)"

    def __init__(self, length: SSAValue, block: str) -> None:
        super().__init__(
            operands=[length],
            properties={"block": StringAttr(block)},
            result_types=[length.type],
        )


@irdl_op_definition
class SwizzleOp(PlainOp):
    """Which block of rows and columns a program takes: `tl.swizzle2d(i, j, rows, columns, GROUP)`.

    Blocks are numbered row by row; those of a group of rows are taken column by column.

    Example:

        %m, %n = triton.swizzle %i, %j of %rows, %columns by "GROUP_M"
                   : i32, i32, i32, i32 -> i32, i32
    """

    name = "triton.swizzle"

    row = operand_def(IntegerType)
    column = operand_def(IntegerType)
    rows = operand_def(IntegerType)
    columns = operand_def(IntegerType)
    group = prop_def(StringAttr)
    new_row = result_def(IntegerType)
    new_column = result_def(IntegerType)

    traits = traits_def(Pure())
    assembly_format = (
        "$row `,` $column `of` $rows `,` $columns `by` $group attr-dict `:` type($row) `,` "
        "type($column) `,` type($rows) `,` type($columns) `->` type($new_row) `,` "
        "type($new_column)"
    )

    def __init__(
        self, row: SSAValue, column: SSAValue, rows: SSAValue, columns: SSAValue, group: str
    ) -> None:
        super().__init__(
            operands=[row, column, rows, columns],
            properties={"group": StringAttr(group)},
            result_types=[row.type, column.type],
        )

    def verify_(self) -> None:
        block_size(self, self.group.data)
        if len({value.type for value in (*self.operands, *self.results)}) != 1:
            raise VerifyException("all numbers of a swizzle are of one type")


@irdl_op_definition
class BlockSizeOp(PlainOp):
    """The size of a block, or another constant of the schedule, as a number: `BLOCK` itself.

    Example: `%step = triton.block_size "BLOCK_K" : i32`
    """

    name = "triton.block_size"

    block = prop_def(StringAttr)
    result = result_def(IntegerType)

    traits = traits_def(Pure())
    assembly_format = "$block attr-dict `:` type($result)"

    def __init__(self, block: str, kind: Attribute = i32) -> None:
        super().__init__(properties={"block": StringAttr(block)}, result_types=[kind])

    def verify_(self) -> None:
        block_size(self, self.block.data)


@irdl_op_definition
class CoverOp(PlainOp):
    """States that one block covers a length: `tl.static_assert(BLOCK >= length)`.

    Example: `triton.cover "BLOCK_K" 10 : i64`
    """

    name = "triton.cover"

    block = prop_def(StringAttr)
    length = prop_def(IntegerAttr)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$block $length attr-dict"

    def __init__(self, block: str, length: int) -> None:
        super().__init__(
            properties={"block": StringAttr(block), "length": IntegerAttr(length, i64)}
        )

    def verify_(self) -> None:
        if block_size(self, self.block.data) < self.length.value.data:
            raise VerifyException(f"{self.block} does not cover {self.length.value.data}")


@irdl_op_definition
class ArangeOp(PlainOp):
    """The positions in a block: `tl.arange(0, BLOCK)`.

    Example: `%lanes = triton.arange "BLOCK_M" : tensor<64xi32>`
    """

    name = "triton.arange"

    block = prop_def(StringAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$block attr-dict `:` type($result)"

    def __init__(self, block: str, size: int) -> None:
        super().__init__(
            properties={"block": StringAttr(block)}, result_types=[tile_type(i32, [size])]
        )

    def verify_(self) -> None:
        if shape_of(self.result) != (block_size(self, self.block.data),):
            raise VerifyException(f"{self.block} is not the size of {self.result.type}")


@irdl_op_definition
class FullOp(PlainOp):
    """A tile of one value: `tl.full([BLOCK_M, BLOCK_N], value, dtype)`; a number over no blocks.

    Example: `%zero = triton.full 0.0 : f32 over ["BLOCK_M"] : tensor<64xf32>`
    """

    name = "triton.full"

    value = prop_def(FloatAttr | IntegerAttr)
    blocks = prop_def(ArrayAttr[StringAttr])
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$value `over` $blocks attr-dict `:` type($result)"

    def __init__(self, value: Attribute, blocks: Sequence[str], kind: Attribute) -> None:
        super().__init__(
            properties={"value": value, "blocks": ArrayAttr([StringAttr(b) for b in blocks])},
            result_types=[kind],
        )

    def verify_(self) -> None:
        sizes = tuple(block_size(self, block.data) for block in self.blocks)
        if shape_of(self.result) != sizes or element_of(self.result) != self.value.type:
            raise VerifyException(f"{self.blocks} of {self.value} is not {self.result.type}")


@irdl_op_definition
class ExpandDimsOp(PlainOp):
    """A tile with one more dimension, of size 1: `x[:, None]`.

    Example: `%rows = triton.expand_dims %p at 1 : i64 : tensor<64xi32> -> tensor<64x1xi32>`
    """

    name = "triton.expand_dims"

    source = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$source `at` $axis attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, axis: int) -> None:
        shape = list(shape_of(source))
        shape.insert(axis, 1)
        super().__init__(
            operands=[source],
            properties={"axis": IntegerAttr(axis, i64)},
            result_types=[tile_type(element_of(source), shape)],
        )

    def verify_(self) -> None:
        shape = list(shape_of(self.source))
        shape.insert(self.axis.value.data, 1)
        if shape_of(self.result) != tuple(shape):
            raise VerifyException(f"expanding {self.source.type} does not make {self.result.type}")


@irdl_op_definition
class TransposeOp(PlainOp):
    """A tile of two dimensions with these exchanged.

    Example: `%t = triton.transpose %x : tensor<64x32xf16> -> tensor<32x64xf16>`
    """

    name = "triton.transpose"

    source = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue) -> None:
        kind = tile_type(element_of(source), shape_of(source)[::-1])
        super().__init__(operands=[source], result_types=[kind])

    def verify_(self) -> None:
        shape = shape_of(self.source)
        alike = element_of(self.source) == element_of(self.result)
        if len(shape) != 2 or shape_of(self.result) != shape[::-1] or not alike:
            raise VerifyException(f"{self.source.type} transposed is not {self.result.type}")


@irdl_op_definition
class BroadcastOp(PlainOp):
    """A scalar or a tile with dimensions of size 1, repeated to a larger tile.

    Triton broadcasts in arithmetic by itself: the printer says `tl.broadcast_to` only where the
    shape matters, and then with the names in `blocks`.

    Example: `%full = triton.broadcast %rows : tensor<64x1xf32> -> tensor<64x32xf32>`
    """

    name = "triton.broadcast"

    source = operand_def()
    blocks = opt_prop_def(ArrayAttr[StringAttr])
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$source (`over` $blocks^)? attr-dict `:` type($source) `->` type($result)"

    def __init__(
        self, source: SSAValue, shape: Sequence[int], blocks: Sequence[str] | None = None
    ) -> None:
        names = None if blocks is None else ArrayAttr([StringAttr(block) for block in blocks])
        super().__init__(
            operands=[source],
            properties={"blocks": names},
            result_types=[tile_type(element_of(source), shape)],
        )

    def verify_(self) -> None:
        small, large = shape_of(self.source), shape_of(self.result)
        fits = not small or (
            len(small) == len(large) and all(s in (1, n) for s, n in zip(small, large, strict=True))
        )
        if not fits or element_of(self.source) != element_of(self.result):
            raise VerifyException(f"{self.source.type} does not broadcast to {self.result.type}")
        if self.blocks is None:
            return
        if tuple(block_size(self, block.data) for block in self.blocks) != large:
            raise VerifyException(f"{self.blocks} is not the shape of {self.result.type}")
