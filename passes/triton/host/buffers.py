"""Tensors as buffers while a program is lowered: by casts, which are resolved in the end."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, UnrealizedConversionCastOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from tapestry.dialects import triton
from tapestry.dialects.loom import TensorType, tensor_type


def buffer_of(kind: TensorType) -> MemRefType[Attribute]:
    """The buffer that stores a tensor."""
    return MemRefType(kind.element_type, kind.box.shape)


def as_buffer(rewriter: PatternRewriter, value: SSAValue) -> SSAValue:
    """The buffer of a tensor value, by a cast that is resolved in the end."""
    cast, buffer = UnrealizedConversionCastOp.cast_one(value, buffer_of(tensor_type(value)))
    rewriter.insert(cast)
    return buffer


def replace_by(rewriter: PatternRewriter, op: Operation, buffers: Sequence[SSAValue]) -> None:
    """Replace the tensors that `op` makes by buffers."""
    tensors: list[SSAValue] = []
    for buffer, result in zip(buffers, op.results, strict=True):
        buffer.name_hint = result.name_hint
        cast, tensor = UnrealizedConversionCastOp.cast_one(buffer, result.type)
        rewriter.insert(cast)
        tensors.append(tensor)
    rewriter.replace(op, [], tensors)


def allocate(rewriter: PatternRewriter, results: Sequence[SSAValue]) -> list[SSAValue]:
    """A new buffer for each of some tensors."""
    made: list[SSAValue] = []
    for result in results:
        out = rewriter.insert(triton.AllocateOp(buffer_of(tensor_type(result))))
        out.result.name_hint = result.name_hint
        made.append(out.result)
    return made
