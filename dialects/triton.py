"""The triton dialect: tile programs one to one with Triton's language, and the host around them.

A `triton.kernel` is one `@triton.jit` function. A buffer is a `!triton.ptr`, a tile is a builtin
`tensor` of static shape. Arithmetic on tiles is `arith` and `math`, loops are `scf.for`; what those
cannot say on tensors (compare, select, convert) and all that is Triton's own is here. The host is a
`func.func` over row-major `memref`s that allocates and launches. Example, twice a vector of eight,
in two shards:

    triton.kernel @double(%x_ptr: !triton.ptr<f32>, %y_ptr: !triton.ptr<f32>,
                          %d0_start: i32, %d0_end: i32) blocks {BLOCK_P = 4 : i64} {
      %pid = triton.program_id 0 : i32
      ...
      %x = triton.load %x_ptr[%p] mask %inside other 0.0 : f32
             : !triton.ptr<f32>, tensor<4xi32>, tensor<4xi1> -> tensor<4xf32>
      %twice = arith.addf %x, %x : tensor<4xf32>
      triton.store %twice to %y_ptr[%p] mask %inside
        : tensor<4xf32>, !triton.ptr<f32>, tensor<4xi32>, tensor<4xi1>
    }
    func.func @main(%x: memref<8xf32>) -> memref<8xf32> {
      %y = triton.allocate : memref<8xf32>
      triton.launch @double(%x, %y : memref<8xf32>, memref<8xf32>) grid <[d0 by BLOCK_P]>
        bounds ["d0"] shards dense<[[0, 4], [4, 8]]> : tensor<2x2xi64>
      func.return %y : memref<8xf32>
    }

`tapestry-opt -t triton` prints such a module as Python. This file holds the tile operations;
`_triton_kernel.py` has the kernel, `_triton_host.py` what the host does.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tapestry.dialects._triton_host import (
    AliasOp,
    AllocateOp,
    GridAttr,
    GridAxis,
    LaunchOp,
    PointerType,
)
from tapestry.dialects._triton_kernel import KernelOp, block_size

__all__ = [
    "AliasOp",
    "AllocateOp",
    "ArangeOp",
    "BlockSizeOp",
    "BroadcastOp",
    "CastOp",
    "CdivOp",
    "CompareOp",
    "CoverOp",
    "DotOp",
    "ExpandDimsOp",
    "FullOp",
    "GridAttr",
    "GridAxis",
    "KernelOp",
    "LaunchOp",
    "LoadOp",
    "PointerType",
    "ProgramIdOp",
    "ReduceOp",
    "StoreOp",
    "Triton",
    "WhereOp",
    "YieldOp",
    "element_of",
    "shape_of",
    "tile_type",
]

PREDICATES = ("<", "<=", ">", ">=", "==", "!=")
"""What `triton.compare` compares by; on floats all but `!=` are false when a side is NaN."""


def tile_type(element: Attribute, shape: Sequence[int]) -> Attribute:
    """The type of a tile of `shape`; without dimensions, of a scalar."""
    return TensorType(element, shape) if shape else element


def shape_of(value: SSAValue | Attribute) -> tuple[int, ...]:
    """The shape of a tile, () for a scalar."""
    kind = value.type if isinstance(value, SSAValue) else value
    return kind.get_shape() if isinstance(kind, TensorType) else ()


def element_of(value: SSAValue | Attribute) -> Attribute:
    """The element type of a tile, or the type of a scalar."""
    kind = value.type if isinstance(value, SSAValue) else value
    return kind.get_element_type() if isinstance(kind, TensorType) else kind


@irdl_op_definition
class ProgramIdOp(IRDLOperation):
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
class CdivOp(IRDLOperation):
    """How many blocks cover a length: `tl.cdiv(length, BLOCK)`.

    Example: `%blocks = triton.cdiv %n by "BLOCK_N" : i32`
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
class ArangeOp(IRDLOperation):
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
            properties={"block": StringAttr(block)}, result_types=[TensorType(i32, [size])]
        )

    def verify_(self) -> None:
        if shape_of(self.result) != (block_size(self, self.block.data),):
            raise VerifyException(f"{self.block} is not the size of {self.result.type}")


@irdl_op_definition
class BlockSizeOp(IRDLOperation):
    """The size of a block, as a number: `BLOCK` itself.

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
class CoverOp(IRDLOperation):
    """States that one block covers a length: `tl.static_assert(BLOCK >= length)`.

    Example: `triton.cover "BLOCK_K" 10`
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
class FullOp(IRDLOperation):
    """A tile of one value: `tl.full([BLOCK_M, BLOCK_N], value, dtype)`.

    Example: `%zero = triton.full 0.0 : f32 over ["BLOCK_M"] : tensor<64xf32>`
    """

    name = "triton.full"

    value = prop_def(FloatAttr | IntegerAttr)
    blocks = prop_def(ArrayAttr[StringAttr])
    result = result_def(TensorType)

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
class ExpandDimsOp(IRDLOperation):
    """A tile with one more dimension, of size 1: `x[:, None]`.

    Example: `%rows = triton.expand_dims %p at 1 : tensor<64xi32> -> tensor<64x1xi32>`
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
            result_types=[TensorType(element_of(source), shape)],
        )

    def verify_(self) -> None:
        shape = list(shape_of(self.source))
        shape.insert(self.axis.value.data, 1)
        if shape_of(self.result) != tuple(shape):
            raise VerifyException(f"expanding {self.source.type} does not make {self.result.type}")


@irdl_op_definition
class BroadcastOp(IRDLOperation):
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
    assembly_format = (
        "$source (`over` $blocks^)? attr-dict `:` type($source) `->` type($result)"
    )

    def __init__(
        self, source: SSAValue, shape: Sequence[int], blocks: Sequence[str] | None = None
    ) -> None:
        names = None if blocks is None else ArrayAttr([StringAttr(block) for block in blocks])
        super().__init__(
            operands=[source],
            properties={"blocks": names},
            result_types=[TensorType(element_of(source), shape)],
        )

    def verify_(self) -> None:
        small, large = shape_of(self.source), shape_of(self.result)
        fits = not small or (
            len(small) == len(large)
            and all(s in (1, n) for s, n in zip(small, large, strict=True))
        )
        if not fits or element_of(self.source) != element_of(self.result):
            raise VerifyException(f"{self.source.type} does not broadcast to {self.result.type}")
        if self.blocks is not None:
            if tuple(block_size(self, block.data) for block in self.blocks) != large:
                raise VerifyException(f"{self.blocks} is not the shape of {self.result.type}")


@irdl_op_definition
class CompareOp(IRDLOperation):
    """Cell by cell comparison, signed on integers; false on NaN except for `!=`.

    Example: `%inside = triton.compare "<" %p, %n : tensor<64xi32> -> tensor<64xi1>`
    """

    name = "triton.compare"

    predicate = prop_def(StringAttr)
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"

    def __init__(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": StringAttr(predicate)},
            result_types=[tile_type(i1, shape_of(lhs))],
        )

    def verify_(self) -> None:
        if self.predicate.data not in PREDICATES:
            raise VerifyException(f"{self.predicate} is not one of {', '.join(PREDICATES)}")
        if self.lhs.type != self.rhs.type:
            raise VerifyException(f"compares {self.lhs.type} with {self.rhs.type}")


@irdl_op_definition
class WhereOp(IRDLOperation):
    """Cell by cell choice: `tl.where(condition, lhs, rhs)`.

    Example: `%v = triton.where %inside, %x, %zero : tensor<64xi1>, tensor<64xf32>`
    """

    name = "triton.where"

    condition = operand_def()
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = (
        "$condition `,` $lhs `,` $rhs attr-dict `:` type($condition) `,` type($lhs) `,` "
        "type($rhs) `->` type($result)"
    )

    def __init__(self, condition: SSAValue, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[condition, lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        kinds = {self.lhs.type, self.rhs.type, self.result.type}
        if len(kinds) != 1 or shape_of(self.condition) != shape_of(self.lhs):
            raise VerifyException("both sides, the condition's shape and the result must agree")


@irdl_op_definition
class CastOp(IRDLOperation):
    """Conversion to another element type: `x.to(dtype)`.

    Floats round to nearest even, floats to integers truncate, integers extend their sign, i1
    extends with zero.

    Example: `%h = triton.cast %x : tensor<64xf32> -> tensor<64xf16>`
    """

    name = "triton.cast"

    source = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, element: Attribute) -> None:
        super().__init__(
            operands=[source], result_types=[tile_type(element, shape_of(source))]
        )

    def verify_(self) -> None:
        if shape_of(self.source) != shape_of(self.result):
            raise VerifyException(f"a cast does not make {self.result.type} of {self.source.type}")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Cells of a buffer at a tile of offsets: `tl.load(ptr + offsets, mask, other)`.

    Lanes that the mask leaves out hold `other`, which must be given with a mask.

    Example:

        %x = triton.load %x_ptr[%p] mask %inside other 0.0 : f32
               : !triton.ptr<f32>, tensor<64xi32>, tensor<64xi1> -> tensor<64xf32>
    """

    name = "triton.load"

    pointer = operand_def(PointerType)
    offsets = operand_def()
    mask = opt_operand_def()
    other = opt_prop_def(FloatAttr | IntegerAttr)
    result = result_def()

    assembly_format = (
        "$pointer `[` $offsets `]` (`mask` $mask^)? (`other` $other^)? attr-dict `:` "
        "type($pointer) `,` type($offsets) (`,` type($mask)^)? `->` type($result)"
    )

    def __init__(
        self,
        pointer: SSAValue,
        offsets: SSAValue,
        mask: SSAValue | None,
        other: Attribute | None,
    ) -> None:
        assert isinstance(pointer.type, PointerType)
        super().__init__(
            operands=[pointer, offsets, mask],
            properties={"other": other},
            result_types=[tile_type(pointer.type.element_type, shape_of(offsets))],
        )

    def verify_(self) -> None:
        assert isinstance(self.pointer.type, PointerType)
        shape = shape_of(self.offsets)
        if self.result.type != tile_type(self.pointer.type.element_type, shape):
            raise VerifyException(f"{self.pointer.type} does not load {self.result.type}")
        if (self.mask is None) != (self.other is None):
            raise VerifyException("a mask and what masked lanes hold go together")
        if self.mask is not None and shape_of(self.mask) != shape:
            raise VerifyException(f"a mask {self.mask.type} does not fit {self.offsets.type}")


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Write a tile to a buffer at offsets: `tl.store(ptr + offsets, value, mask)`.

    Example:

        triton.store %y to %y_ptr[%p] mask %inside
          : tensor<64xf32>, !triton.ptr<f32>, tensor<64xi32>, tensor<64xi1>
    """

    name = "triton.store"

    value = operand_def()
    pointer = operand_def(PointerType)
    offsets = operand_def()
    mask = opt_operand_def()

    assembly_format = (
        "$value `to` $pointer `[` $offsets `]` (`mask` $mask^)? attr-dict `:` type($value) `,` "
        "type($pointer) `,` type($offsets) (`,` type($mask)^)?"
    )

    def __init__(
        self, value: SSAValue, pointer: SSAValue, offsets: SSAValue, mask: SSAValue | None
    ) -> None:
        super().__init__(operands=[value, pointer, offsets, mask])

    def verify_(self) -> None:
        assert isinstance(self.pointer.type, PointerType)
        shape = shape_of(self.offsets)
        if self.value.type != tile_type(self.pointer.type.element_type, shape):
            raise VerifyException(f"{self.pointer.type} does not store {self.value.type}")
        if self.mask is not None and shape_of(self.mask) != shape:
            raise VerifyException(f"a mask {self.mask.type} does not fit {self.offsets.type}")


@irdl_op_definition
class DotOp(IRDLOperation):
    """`acc + a @ b`: `tl.dot(a, b, acc, input_precision=...)`.

    `precision` says what float32 operands may be rounded to: `ieee` (nothing), `tf32x3`, `tf32`.

    Example:

        %acc1 = triton.dot %a, %b, %acc precision "ieee"
                  : tensor<64x32xf32>, tensor<32x16xf32> -> tensor<64x16xf32>
    """

    name = "triton.dot"

    a = operand_def(TensorType)
    b = operand_def(TensorType)
    acc = operand_def(TensorType)
    precision = prop_def(StringAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$a `,` $b `,` $acc `precision` $precision attr-dict `:` type($a) `,` type($b) `,` "
        "type($acc) `->` type($result)"
    )

    def __init__(self, a: SSAValue, b: SSAValue, acc: SSAValue, precision: str) -> None:
        super().__init__(
            operands=[a, b, acc],
            properties={"precision": StringAttr(precision)},
            result_types=[acc.type],
        )

    def verify_(self) -> None:
        (m, k), (l, n) = shape_of(self.a), shape_of(self.b)
        if k != l or shape_of(self.acc) != (m, n) or self.acc.type != self.result.type:
            raise VerifyException(
                f"{self.a.type} times {self.b.type} does not make {self.result.type}"
            )
        if element_of(self.a) != element_of(self.b):
            raise VerifyException("both factors must have one element type")
        if min(m, n, k) < 16:
            raise VerifyException("every side of a dot must be at least 16")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a combiner: the combined state.

    Example: `triton.yield %m : f32`
    """

    name = "triton.yield"

    values = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue) -> None:
        super().__init__(operands=[values])


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Tiles folded along an axis, all at once, by a combiner over scalars: `tl.reduce`.

    `label` says what the combiner is, for its name in the printed module.

    The combiner must be associative and commutative: a GPU combines lanes in its own order.

    Example:

        %m = triton.reduce "max" %x along 1 : (tensor<64x16xf32>) -> tensor<64xf32> {
        ^bb0(%a: f32, %b: f32):
          %c = arith.maximumf %a, %b : f32
          triton.yield %c : f32
        }
    """

    name = "triton.reduce"

    label = prop_def(StringAttr)
    tiles = var_operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    combiner = region_def("single_block")
    outs = var_result_def()

    traits = traits_def(Pure())
    assembly_format = (
        "$label $tiles `along` $axis attr-dict `:` functional-type($tiles, $outs) $combiner"
    )

    def __init__(
        self, label: str, tiles: Sequence[SSAValue], axis: int, combiner: Region
    ) -> None:
        shape = list(shape_of(tiles[0]))
        del shape[axis]
        super().__init__(
            operands=[tiles],
            properties={"label": StringAttr(label), "axis": IntegerAttr(axis, i64)},
            regions=[combiner],
            result_types=[[tile_type(element_of(tile), shape) for tile in tiles]],
        )

    def verify_(self) -> None:
        elements = [element_of(tile) for tile in self.tiles]
        if [a.type for a in self.combiner.block.args] != elements * 2:
            raise VerifyException(f"the combiner must take two states of {elements}")
        last = self.combiner.block.last_op
        if not isinstance(last, YieldOp) or [v.type for v in last.values] != elements:
            raise VerifyException(f"the combiner must yield a state of {elements}")


Triton = Dialect(
    "triton",
    [
        KernelOp,
        ProgramIdOp,
        CdivOp,
        BlockSizeOp,
        CoverOp,
        ArangeOp,
        FullOp,
        ExpandDimsOp,
        BroadcastOp,
        CompareOp,
        WhereOp,
        CastOp,
        LoadOp,
        StoreOp,
        DotOp,
        ReduceOp,
        YieldOp,
        AllocateOp,
        AliasOp,
        LaunchOp,
    ],
    [PointerType, GridAttr],
)
