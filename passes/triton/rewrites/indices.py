"""`index` values as i64 ones: Triton has no type of its own for them.

%i = arith.index_cast %n : index to i32        becomes        %i = arith.trunci %n : i64 to i32
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, IndexType, ModuleOp, i64
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.algebra.dtypes import integer_width


class CastFromWideInteger(RewritePattern):
    """A cast between an index and an integer is one between i64 and that integer.

    Always legal: an index is a signed integer of 64 bits.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.IndexCastOp, rewriter: PatternRewriter) -> None:
        source, target = op.input.type, op.result.type
        width = integer_width(source if isinstance(target, IndexType) else target)
        new: list[Operation] = []
        if width < 64:
            cast = arith.ExtSIOp if isinstance(target, IndexType) else arith.TruncIOp
            new = [cast(op.input, i64 if isinstance(target, IndexType) else target)]
            new[0].location = op.location
        rewriter.replace(op, new, new[0].results if new else [op.input])


class IndexAsInteger(RewritePattern):
    """Whatever is an index, in types and attributes alike, is an i64. Always legal."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        properties = {name: _as_integer(value) for name, value in op.properties.items()}
        results = [_as_integer(kind) for kind in op.result_types]
        for block in (block for region in op.regions for block in region.blocks):
            for argument in block.args:
                kind = _as_integer(argument.type)
                if kind != argument.type:
                    rewriter.replace_value_with_new_type(argument, kind)
                    block.args[argument.index].location = argument.location
        if properties == op.properties and results == list(op.result_types):
            return
        new = type(op).create(
            operands=op.operands,
            result_types=results,
            properties=properties,
            attributes=op.attributes,
            regions=[op.detach_region(region) for region in list(op.regions)],
        )
        new.location = op.location
        rewriter.replace(op, new)


def _as_integer(attribute: Attribute) -> Attribute:
    """An attribute with i64 wherever it holds an index."""
    match attribute:
        case IndexType():
            return i64
        case ParametrizedAttribute():
            parameters = [_as_integer(parameter) for parameter in attribute.parameters]
            same = parameters == list(attribute.parameters)
            return attribute if same else type(attribute).new(parameters)
        case ArrayAttr():
            return ArrayAttr([_as_integer(value) for value in attribute])
        case _:
            return attribute


def replace_indices(module: ModuleOp) -> None:
    """Make i64 of every index in a module."""
    if any(_holds_index(op) for op in module.walk()):
        for pattern in (CastFromWideInteger(), IndexAsInteger()):
            PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(module)


def _holds_index(op: Operation) -> bool:
    """Whether an operation makes an index, or bodies of it take one."""
    blocks = (block for region in op.regions for block in region.blocks)
    kinds = (*op.result_types, *(argument.type for block in blocks for argument in block.args))
    return any(_as_integer(kind) != kind for kind in kinds)
