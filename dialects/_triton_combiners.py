"""Tiles combined along an axis by a combiner over scalars: folded to one cell, or scanned."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr, TensorType, i64
from xdsl.ir import Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tapestry.dialects._triton_types import element_of, shape_of, tile_type


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


class CombineOp(IRDLOperation):
    """What `triton.reduce` and `triton.scan` share: tiles, an axis, and an associative combiner.

    `label` says what the combiner is, for its name in the printed module.
    """

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
        self,
        label: str,
        tiles: Sequence[SSAValue],
        axis: int,
        combiner: Region,
        shape: Sequence[int],
    ) -> None:
        super().__init__(
            operands=[tiles],
            properties={"label": StringAttr(label), "axis": IntegerAttr(axis, i64)},
            regions=[combiner],
            result_types=[[tile_type(element_of(tile), shape) for tile in tiles]],
        )

    def verify_(self) -> None:
        elements = [element_of(tile) for tile in self.tiles]
        state = ", ".join(map(str, elements))
        if [a.type for a in self.combiner.block.args] != elements * 2:
            raise VerifyException(f"the combiner must take two states of ({state})")
        last = self.combiner.block.last_op
        if not isinstance(last, YieldOp) or [v.type for v in last.values] != elements:
            raise VerifyException(f"the combiner must yield a state of ({state})")


@irdl_op_definition
class ReduceOp(CombineOp):
    """Tiles folded along an axis, all at once, by a combiner over scalars: `tl.reduce`.

    The combiner must be associative and commutative: a GPU combines lanes in its own order.

    Example:

        %m = triton.reduce "max" %x along 1 : i64 : (tensor<64x16xf32>) -> tensor<64xf32> {
        ^bb0(%a: f32, %b: f32):
          %c = arith.maximumf %a, %b : f32
          triton.yield %c : f32
        }
    """

    name = "triton.reduce"

    def __init__(self, label: str, tiles: Sequence[SSAValue], axis: int, combiner: Region) -> None:
        shape = list(shape_of(tiles[0]))
        del shape[axis]
        super().__init__(label, tiles, axis, combiner, shape)


@irdl_op_definition
class ScanOp(CombineOp):
    """The running states of tiles along an axis, each with its own cell: `tl.associative_scan`.

    The combiner must be associative; lanes are combined in order, so it need not commute.

    Example:

        %m = triton.scan "max" %x along 1 : i64 : (tensor<64x16xf32>) -> tensor<64x16xf32> {
        ^bb0(%a: f32, %b: f32):
          %c = arith.maximumf %a, %b : f32
          triton.yield %c : f32
        }
    """

    name = "triton.scan"

    def __init__(self, label: str, tiles: Sequence[SSAValue], axis: int, combiner: Region) -> None:
        super().__init__(label, tiles, axis, combiner, shape_of(tiles[0]))

    def verify_(self) -> None:
        super().verify_()
        if [tile.type for tile in self.tiles] != [out.type for out in self.outs]:
            raise VerifyException("a scan keeps the types of its tiles")
