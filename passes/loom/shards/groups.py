"""A group's shards spelled out: one group per shard, over the part of the index space it has.

    %y = loom.fused @total over <[0, 0] : [4, 8]> ... shards <grid [[0, 2, 4], [0, 8]]> ...

becomes

    %0 = loom.fused @total over <[0, 0] : [2, 8]> ...       // its members over their parts
    %1 = loom.fused @total over <[2, 0] : [4, 8]> ...
    %y = loom.assemble %0, %1 : ...
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.dialects import loom
from tapestry.dialects._loom_fused import member_part
from tapestry.dialects.loom import TensorType, tensor_type
from tapestry.dialects.zspace import RangeAttr
from tapestry.passes.loom.ungroup import Ungroup
from tapestry.zspace import AffineMap, Range


@dataclass(frozen=True)
class UngroupMerging(RewritePattern):
    """Take apart a group whose shards cut what a member folds, for states to merge.

    Legal as `loom-ungroup` is, whose rewrite it is.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.FusedOp, rewriter: PatternRewriter) -> None:
        if op.merging:
            Ungroup().match_and_rewrite(op, rewriter)


@dataclass(frozen=True)
class ExpandGroup(RewritePattern):
    """One group per shard of a group that has a partition.

    Legal because the verifier has checked that the shards tile the group's index space and write
    apart, and that what a part reads of an inner tensor is what the same part writes.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.FusedOp, rewriter: PatternRewriter) -> None:
        if op.partition is None:
            return
        shards: list[loom.FusedOp] = [_part(op, shard) for shard in op.partition.ranges()]
        new: list[Operation] = [*shards]
        results: list[SSAValue] = []
        for position, out in enumerate(op.outs):
            assembled = loom.AssembleOp([s.outs[position] for s in shards], tensor_type(out))
            assembled.result.name_hint = out.name_hint
            new.append(assembled)
            results.append(assembled.result)
        for created in new:
            created.location = op.location
        rewriter.replace(op, new, results)


def _part(op: loom.FusedOp, shard: Range) -> loom.FusedOp:
    """The group over one shard."""
    block = Block(arg_types=[value.type for value in op.ins])
    values: dict[SSAValue, SSAValue] = {}
    for argument, fresh in zip(op.body.block.args, block.args, strict=True):
        fresh.name_hint = argument.name_hint
        values[argument] = fresh
    for member, place in op.aligned:
        part = _member(member, member_part(place, shard), values)
        block.add_op(part)
        values.update(zip(member.outs, part.outs, strict=True))
    yielded = [values[value] for value in op.yielded]
    block.add_op(loom.YieldOp(*yielded))
    places: list[AffineMap] = [place for _, place in op.aligned]
    kinds = [tensor_type(value) for value in yielded]
    part = loom.FusedOp(op.label.data, shard, places, op.ins, kinds, Region(block))
    part.attributes.update(op.attributes)
    return part


def _member(
    member: loom.OperationOp, box: Range, values: dict[SSAValue, SSAValue]
) -> loom.OperationOp:
    """A member over a part of its index space, which writes only that part's cells."""
    kept = member.kept_range(box)
    pairs = zip(member.out_maps, member.outs, strict=True)
    part = loom.OperationOp.create(
        operands=[values[operand] for operand in member.operands],
        result_types=[
            TensorType.of(projection.apply_range(kept), tensor_type(out).element_type)
            for projection, out in pairs
        ],
        properties={**member.properties, "index_range": RangeAttr(box)},
        attributes=member.attributes,
        regions=[region.clone() for region in member.regions],
    )
    part.location = member.location
    for out, old in zip(part.outs, member.outs, strict=True):
        out.name_hint = old.name_hint
    return part
