"""Constants whose cells are all equal, seen through views and written into bodies.

    %half = loom.constant 0.5 : !loom.tensor<[0] : [8], f32>
    %y = loom.operation @scale over <[0] : [8]> [map]
           ins(%x : (d0) -> (d0), %half : (d0) -> (d0)) ...
           wrap (%a: f32, %h: f32) { %p = arith.mulf %a, %h : f32  loom.yield %p : f32 }

becomes

    %y = loom.operation @scale over <[0] : [8]> [map] ins(%x : (d0) -> (d0)) ...
           wrap (%a: f32) { %h = arith.constant 0.5 : f32  %p = arith.mulf %a, %h : f32 ... }
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.dialects.complex import ComplexNumberAttr
from xdsl.ir import Block, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.algebra.dtypes import body_type, is_complex
from tapestry.algebra.literals import number_attr
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, tensor_type
from tapestry.passes.loom.rebuilding.operations import reads_of, rebuild
from tapestry.zspace import Range


class FoldViewOfEqualCells(RewritePattern):
    """A view or reshape of a constant with equal cells is such a constant.

    Always legal: whichever cells are chosen, they are that one.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: loom.ViewOp | loom.ReshapeOp, rewriter: PatternRewriter
    ) -> None:
        source = op.source.owner
        if isinstance(source, loom.ConstantOp) and source.splat is not None:
            constant = loom.ConstantOp.of(source.splat, tensor_type(op.result))
            constant.location = source.location
            rewriter.replace(op, constant)


class WriteEqualCellsIntoBody(RewritePattern):
    """An operation that reads a constant with equal cells holds the number in its body instead.

    Legal for cells that are read one by one, all of them inside the constant: whichever the
    projection selects is that number.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        ins, extras = reads_of(op)
        new_ins = _written(op.wrap_block, ins, op.index, 0, rewriter)
        new_extras = extras
        if op.unwrap_block is not None:
            states = len(op.unwrap_block.args) - len(extras)
            kept = op.kept_range(op.index)
            new_extras = _written(op.unwrap_block, extras, kept, states, rewriter)
        if len(new_ins) != len(ins) or len(new_extras) != len(extras):
            rebuild(op, rewriter, ins=new_ins, extras=new_extras)


def _written(
    block: Block, reads: list[Read], index: Range, first: int, rewriter: PatternRewriter
) -> list[Read]:
    """The reads that remain; the block's argument `first + i` belongs to read `i`."""
    kept: list[Read] = []
    for read in reads:
        value, projection, _ = read
        argument = block.args[first + len(kept)]
        constant = _constant(value)
        inside = tensor_type(value).box.contains_range(projection.apply_range(index))
        if constant is None or constant.type != argument.type or not inside:
            kept.append(read)
            continue
        op = arith.ConstantOp(constant)
        op.result.name_hint = argument.name_hint
        rewriter.insert(op, InsertPoint.at_start(block))
        argument.replace_all_uses_with(op.result)
        block.erase_arg(argument)
    return kept


def _constant(value: SSAValue) -> FloatAttr | IntegerAttr | None:
    """The number that every cell of `value` is, where a body can hold it."""
    owner = value.owner
    cell = owner.splat if isinstance(owner, loom.ConstantOp) else None
    if cell is None:
        return None
    element = body_type(tensor_type(value).element_type)
    if is_complex(element):
        return None
    number = number_attr(cell.item(), element)
    return None if isinstance(number, ComplexNumberAttr) else number
