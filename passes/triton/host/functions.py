"""Functions over tensors become functions over buffers; what they may hold to be lowered.

    func.func @main(%x: !loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [8], f32>

becomes

    func.func @main(%x: memref<8xf32>) -> memref<8xf32>
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    FunctionType,
    MemRefType,
    UnrealizedConversionCastOp,
)
from xdsl.ir import Attribute
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType
from tapestry.locations import location_of
from tapestry.passes.triton.host.buffers import as_buffer, buffer_of


class LowerFunction(RewritePattern):
    """A function over tensors takes and returns buffers."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: func.FuncOp, rewriter: PatternRewriter) -> None:
        block = op.body.block
        for argument in block.args:
            if isinstance(kind := argument.type, TensorType):
                cast, tensor = UnrealizedConversionCastOp.cast_one(argument, kind)
                argument.replace_uses_with_if(
                    tensor, lambda use, cast=cast: use.operation is not cast
                )
                rewriter.replace_value_with_new_type(argument, buffer_of(kind))
                rewriter.insert(cast, InsertPoint.at_start(block))
        op.properties["function_type"] = FunctionType.from_lists(
            [_buffers(kind) for kind in op.function_type.inputs],
            [_buffers(kind) for kind in op.function_type.outputs],
        )
        rewriter.handle_operation_modification(op)


def _buffers(kind: Attribute) -> Attribute:
    return buffer_of(kind) if isinstance(kind, TensorType) else kind


class LowerReturn(RewritePattern):
    """A function returns buffers."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: func.ReturnOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, func.ReturnOp(*(as_buffer(rewriter, v) for v in op.operands)))


def no_tensor(function: func.FuncOp, kind: Attribute, wanted: str) -> InvalidProgramError:
    """What is wrong with a function that takes or returns what is no tensor: maybe it is lowered.

    `wanted` says what can be done with tensors.
    """
    what = f"@{function.sym_name.data} takes or returns {kind}"
    if not isinstance(kind, MemRefType):
        return InvalidProgramError(f"{what}; {wanted}", location=location_of(function))
    return InvalidProgramError(
        f"{what}: it is lowered to Triton already",
        location=location_of(function),
        hint="leave `loom-to-triton` out of the pipeline: `run --on triton`, `tune` and `compile` "
        "do that themselves, with the schedule that an operation's attribute `schedule` says",
    )


def check_function(function: func.FuncOp) -> None:
    """Raise InvalidProgramError for a function that cannot be lowered."""
    name = function.sym_name.data
    if function.is_declaration:
        raise InvalidProgramError(
            f"@{name} has no body, so there is nothing to lower to Triton",
            location=location_of(function),
            hint="remove the declaration, or give it a body",
        )
    for value in (*function.function_type.inputs, *function.function_type.outputs):
        if not isinstance(value, TensorType):
            raise no_tensor(function, value, "only tensors can be lowered to Triton")
    if len(function.body.blocks) != 1:
        raise InvalidProgramError(
            f"@{name} has {len(function.body.blocks)} blocks; only straight-line functions can be "
            "lowered to Triton",
            location=location_of(function),
        )
    lowered = (
        loom.OperationOp,
        loom.FusedOp,
        loom.ApplicationOp,
        loom.MergeOp,
        loom.ViewOp,
        loom.ReshapeOp,
        loom.AssembleOp,
        loom.ConstantOp,
        loom.ExternalOp,
        func.ReturnOp,
    )
    for op in function.body.block.ops:
        if not isinstance(op, lowered):
            raise InvalidProgramError(
                f"{op.name} cannot be lowered to Triton",
                location=location_of(op),
                hint="run weft-apply first" if op.name.startswith("weft.") else None,
            )
