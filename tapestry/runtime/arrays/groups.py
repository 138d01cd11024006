"""Running a `loom.fused`: its members in order, part by part of what a shard has.

Inner tensors hold the cells that a part writes, and are gone when the part is done. Parts are cut
along the dimensions that groups may be cut along: some rows of a softmax, whole, are a part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.dialects import loom
from tapestry.dialects._loom_fused import member_part
from tapestry.dialects._loom_group_rules import inner_edges, why_whole
from tapestry.dialects.loom import tensor_type
from tapestry.runtime.arrays.mapfold import Tensor, boxes_within
from tapestry.zspace import Range

RunMember = Callable[[loom.OperationOp, Range, Sequence[Tensor], Sequence[Tensor]], None]
"""Computes a part of a member's index space from its operands into its outputs."""


def parts_within(op: loom.FusedOp, shard: Range, limit: int) -> list[Range]:
    """Parts of a shard of which no member writes more than `limit` cells, if it can be cut so."""
    edges = inner_edges(op)
    cut = [dim for dim in op.map_dims if why_whole(op, dim, edges) is None]
    points = shard.select(cut)
    if shard.is_empty:
        return [shard]
    largest = max(m.kept_range(member_part(place, shard)).size for m, place in op.aligned)
    boxes = boxes_within(points, max(1, limit * points.size // max(1, largest)))
    return [shard.with_sides(dict(zip(cut, box.sides, strict=True))) for box in boxes]


def run_part(
    op: loom.FusedOp, part: Range, operands: Sequence[Tensor], run: RunMember
) -> list[Tensor]:
    """What a group yields over a part of its index space: each output's cells there."""
    values: dict[SSAValue, Tensor] = dict(zip(op.body.block.args, operands, strict=True))
    for member, place in op.aligned:
        box = member_part(place, part)
        kept = member.kept_range(box)
        outs = [
            _empty(projection.apply_range(kept), out)
            for out, projection in zip(member.outs, member.out_maps, strict=True)
        ]
        run(member, box, [values[operand] for operand in member.operands], outs)
        values.update(zip(member.outs, outs, strict=True))
    return [values[value] for value in op.yielded]


def _empty(box: Range, value: SSAValue) -> Tensor:
    return Tensor(box, np.empty(box.shape, numpy_dtype(tensor_type(value).element_type)))
