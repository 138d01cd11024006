"""Functions, views, assemblies and constants over complex tensors, on the parts."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from tapestry.algebra.functions import pairs_of
from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType, tensor_type
from tapestry.passes.loom.complex_numbers.bodies import is_split, joined, part_type, parts_of
from tapestry.zspace import AffineMap, Projection, Range


def paired(kind: TensorType) -> TensorType:
    """The type of complex cells as real ones, with a dimension of the two parts innermost."""
    part = part_type(kind.element_type)
    assert part is not None
    return TensorType.of(kind.box.product(Range.of((2,))), part)


def _place(rank: int, part: int) -> AffineMap:
    """Where a part of a cell is among pairs: `(d0) -> (d0, 1)` of a line."""
    rows = [[int(row == column) for column in range(rank)] for row in range(rank + 1)]
    return AffineMap.of(rows, [0] * rank + [part], inputs=rank)


def _views(pairs: SSAValue, whole: TensorType) -> tuple[loom.ViewOp, loom.ViewOp]:
    """Both parts of a tensor of pairs."""
    kind = part_type(whole)
    assert isinstance(kind, TensorType)
    rank = whole.box.rank
    real, imaginary = (
        loom.ViewOp(pairs, Projection.cells(_place(rank, part)), kind) for part in (0, 1)
    )
    return real, imaginary


def _crossing(kind: Attribute) -> Attribute:
    """What a function takes or returns for a type."""
    return paired(kind) if isinstance(kind, TensorType) and part_type(kind) else kind


class SplitFunction(RewritePattern):
    """A function takes pairs, and views both parts of them. Always legal."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: func.FuncOp, rewriter: PatternRewriter) -> None:
        kinds = op.function_type
        taken, given = ([_crossing(k) for k in side] for side in (kinds.inputs, kinds.outputs))
        if taken == list(kinds.inputs.data) and given == list(kinds.outputs.data):
            return
        for block in op.body.blocks:
            for argument in reversed(block.args):
                whole = argument.type
                if isinstance(whole, TensorType) and is_split(argument):
                    pairs = block.insert_arg(paired(whole), argument.index)
                    pairs.name_hint, pairs.location = argument.name_hint, argument.location
                    views = _views(pairs, whole)
                    cast = joined((views[0].result, views[1].result), argument)
                    for view in views:
                        view.location = op.location
                    rewriter.insert([*views, cast], InsertPoint.at_start(block))
                    rewriter.replace_all_uses_with(argument, cast.results[0])
                    block.erase_arg(argument)
        op.properties["function_type"] = FunctionType.from_lists(taken, given)
        rewriter.handle_operation_modification(op)


class SplitReturn(RewritePattern):
    """A function returns pairs: the parts side by side. Always legal."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: func.ReturnOp, rewriter: PatternRewriter) -> None:
        if not any(map(is_split, op.operands)):
            return
        values: list[SSAValue] = []
        for value in op.operands:
            if not is_split(value):
                values.append(value)
                continue
            whole = tensor_type(value)
            places = [_place(whole.box.rank, part) for part in (0, 1)]
            pairs = loom.AssembleOp(parts_of(value), paired(whole), places)
            pairs.location = op.location
            pairs.result.name_hint = value.name_hint
            rewriter.insert(pairs)
            values.append(pairs.result)
        new = func.ReturnOp(*values)
        new.location = op.location
        new.attributes.update(op.attributes)
        rewriter.replace(op, new)


class SplitView(RewritePattern):
    """A view or reshape of a complex tensor is the same one of each part. Always legal."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: loom.ViewOp | loom.ReshapeOp, rewriter: PatternRewriter
    ) -> None:
        part = part_type(op.result.type)
        if part is None:
            return
        real, imaginary = (
            type(op).create(
                operands=[source],
                result_types=[part],
                properties=op.properties,
                attributes=op.attributes,
            )
            for source in parts_of(op.source)
        )
        real.location = imaginary.location = op.location
        cast = joined((real.results[0], imaginary.results[0]), op.result)
        rewriter.replace(op, [real, imaginary, cast], cast.results)


class SplitAssemble(RewritePattern):
    """An assembly of complex tensors is the same one of each part. Always legal."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.AssembleOp, rewriter: PatternRewriter) -> None:
        part = part_type(op.result.type)
        if part is None:
            return
        sides = zip(*(parts_of(value) for value in op.parts), strict=True)
        real, imaginary = (
            loom.AssembleOp.create(
                operands=side,
                result_types=[part],
                properties=op.properties,
                attributes=op.attributes,
            )
            for side in sides
        )
        real.location = imaginary.location = op.location
        cast = joined((real.results[0], imaginary.results[0]), op.result)
        rewriter.replace(op, [real, imaginary, cast], cast.results)


class SplitConstant(RewritePattern):
    """A complex constant is two; one of a side file is views of the pairs that the file holds.

    Always legal: a complex array in a file is read as pairs where pairs are asked for.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ConstantOp, rewriter: PatternRewriter) -> None:
        whole = tensor_type(op.result)
        part = part_type(whole)
        if not isinstance(part, TensorType):
            return
        cells = op.cells if op.splat is None else op.splat
        before: list[loom.ConstantOp] = []
        if cells is None:
            assert isinstance(op.value, loom.SideFileAttr)
            before = [loom.ConstantOp(op.value, paired(whole))]
            parts = _views(before[0].result, whole)
        else:
            pairs = pairs_of(cells)
            parts = tuple(loom.ConstantOp.of(pairs[..., side], part) for side in (0, 1))
        for new in (*before, *parts):
            new.location = op.location
            new.attributes.update(op.attributes)
        real, imaginary = parts
        cast = joined((real.result, imaginary.result), op.result)
        rewriter.replace(op, [*before, real, imaginary, cast], cast.results)
