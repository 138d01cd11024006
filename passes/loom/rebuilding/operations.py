"""An operation replaced by one that differs in a few respects; its bodies are moved, not copied."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

from xdsl.pattern_rewriter import PatternRewriter

from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType, tensor_type
from tapestry.zspace import Domain, Partition, Projection, Range

Write = tuple[Projection, TensorType]
"""The projection a tensor is written through, and its type."""


def reads_of(op: loom.OperationOp) -> tuple[list[Read], list[Read]]:
    """What an operation's wrap and unwrap bodies read."""
    return op.in_reads, op.extra_reads


def writes_of(op: loom.OperationOp) -> list[Write]:
    """What an operation writes."""
    kinds = [tensor_type(result) for result in op.outs]
    return list(zip(op.out_maps, kinds, strict=True))


def rebuild(
    op: loom.OperationOp,
    rewriter: PatternRewriter,
    *,
    index: Range | None = None,
    kinds: Sequence[loom.Iterator] | None = None,
    ins: Sequence[Read] | None = None,
    extras: Sequence[Read] | None = None,
    outs: Sequence[Write] | None = None,
    partition: Partition | None = None,
    inside: Domain | EllipsisType | None = ...,
) -> loom.OperationOp:
    """Replace `op` by itself with the given parts changed.

    `partition` None keeps its own; `inside` None drops its domain.
    """
    old_ins, old_extras = reads_of(op)
    new_outs = writes_of(op) if outs is None else outs
    wrap, unwrap = [op.detach_region(region) for region in op.regions]
    new = loom.OperationOp(
        op.label.data,
        op.index if index is None else index,
        op.kinds if kinds is None else kinds,
        op.monoid_name,
        old_ins if ins is None else ins,
        new_outs,
        wrap,
        extras=old_extras if extras is None else extras,
        unwrap=unwrap,
        partition=op.partition if partition is None else partition,
        inside=op.inside if isinstance(inside, EllipsisType) else inside,
        attributes=op.attributes,
    )
    new.location = op.location
    for old_result, result in zip(op.outs, new.outs, strict=True):
        result.name_hint = old_result.name_hint
    rewriter.replace(op, new)
    return new
