"""What is always true of loom operations, views and monoids.

Each `verify_...` collects every independent violation of one operation and raises them together:

    loom.operation @y: input 0 reads [0, 0] : [65, 784], outside its tensor [0, 0] : [64, 784]

The rules themselves are in `_loom_geometry` (ranges, projections, shards) and `_loom_bodies`;
`_loom_dispatch` verifies kernels and what runs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Attribute

from tapestry.algebra.dtypes import body_type
from tapestry.algebra.literals import number_in
from tapestry.dialects._loom_blocks import argument_type
from tapestry.dialects._loom_bodies import (
    body,
    is_ordered,
    signature_bodies,
    types_text,
    yielded_types,
)
from tapestry.dialects._loom_geometry import (
    accesses,
    domain_problems,
    geometry,
    shard_tiling,
)
from tapestry.dialects._loom_parts import varying_outputs
from tapestry.dialects._loom_types import TensorType, tensor_type
from tapestry.dialects._loom_writes import cut_writes
from tapestry.dialects.zspace import ProjectionAttr
from tapestry.issues import Problem
from tapestry.zspace import Partition, Projection, ZSpaceError, check_placed

if TYPE_CHECKING:
    from tapestry.dialects import loom


def operation_problems(op: loom.OperationOp) -> list[Problem]:
    """Every rule of one `loom.operation`."""
    ins = tuple(tensor_type(value) for value in op.ins)
    extras = tuple(tensor_type(value) for value in op.extras)
    outs = tuple(tensor_type(value) for value in op.outs)
    bodies = signature_bodies(
        op,
        [argument_type(p, t.element_type) for p, t in zip(op.in_maps, ins, strict=False)],
        [argument_type(p, t.element_type) for p, t in zip(op.extra_maps, extras, strict=False)],
        [body_type(t.element_type) for t in outs],
    )
    varying = None
    if op.index.rank == len(op.kinds):
        varying = varying_outputs(op, op.kept_range(op.index), sound=not bodies)
    problems = list(
        geometry(
            op.index_range,
            op.iterators,
            op.in_projections,
            op.in_clips,
            ins,
            op.extra_projections,
            op.extra_clips,
            extras,
            op.out_projections,
            outs,
            op.shards,
            op.shards is not None and is_ordered(op),
            varying,
        )
    )
    if op.index.rank == len(op.kinds):
        problems += domain_problems(op.inside, op.index, op.kinds)
    return problems + bodies


def sharding_problems(
    op: loom.OperationOp, partition: Partition, outs: Sequence[Projection] | None = None
) -> list[Problem]:
    """Why a verified operation cannot be split as `partition` says; none when it can.

    With `outs`, as if it wrote through those projections from its kept dimensions.
    """
    written = op.out_projections.data if outs is None else [ProjectionAttr(p) for p in outs]
    if partition.rank != op.index.rank:
        message = (
            f"the partition has rank {partition.rank}, but the index space has rank {op.index.rank}"
        )
        return [Problem("shard-tiling", message, index=op.index, shards=partition)]
    problems = shard_tiling(partition, op.index, op.kinds, written, ordered=is_ordered(op))
    return problems or cut_writes(partition, op.index, op.kinds, written)


def view_problems(op: loom.ViewOp) -> list[Problem]:
    """A view reads inside its source and keeps its element type."""
    source, result = tensor_type(op.source), tensor_type(op.result)
    problems = accesses("source", [op.projection], [source], result.box)
    problems += _same_element(source, result)
    return problems


def _same_element(source: TensorType, result: TensorType) -> list[Problem]:
    if source.element_type == result.element_type:
        return []
    message = f"it makes {result.element_type} cells of {source.element_type} cells"
    return [Problem("element-type", message, source=source, result=result)]


def reshape_problems(op: loom.ReshapeOp) -> list[Problem]:
    """A reshape keeps the number of cells and their type."""
    source, result = tensor_type(op.source), tensor_type(op.result)
    problems = _same_element(source, result)
    if source.box.size != result.box.size:
        message = f"it makes {result.box.size} cells of {source.box.size}"
        problems.append(Problem("cell-count", message, source=source.box, result=result.box))
    return problems


def assemble_problems(op: loom.AssembleOp) -> list[Problem]:
    """The parts tile the result exactly."""
    result = tensor_type(op.result)
    problems: list[Problem] = []
    for part in op.parts:
        problems += _same_element(tensor_type(part), result)
    boxes = [tensor_type(part).box for part in op.parts]
    try:
        if op.placements is None:
            Partition.explicit(boxes).check(result.box)
        elif len(op.placements) != len(boxes):
            message = f"it has {len(boxes)} parts, but {len(op.placements)} placements"
            problems.append(Problem("part-placements", message))
        elif any(not placement.data.is_unit for placement in op.placements):
            message = "its parts are placed cell by cell; a placement has no box"
            problems.append(Problem("part-placements", message))
        else:
            check_placed(list(zip(op.placed, boxes, strict=True)), result.box)
    except ZSpaceError as error:
        message = f"its parts do not tile <{result.box}>: {error}"
        problems.append(Problem("part-tiling", message, parts=boxes, result=result.box))
    return problems


def monoid_problems(op: loom.MonoidOp) -> list[Problem]:
    """The merge takes two states and yields one, of the zero's types, and the laws hold."""
    from tapestry.algebra.laws import broken_laws
    from tapestry.algebra.monoids import BUILTIN_MONOIDS

    problems: list[Problem] = []
    if op.sym_name.data in BUILTIN_MONOIDS:
        message = "this name is a built-in monoid; choose another"
        problems.append(Problem("monoid-name", message, monoid=op.sym_name.data))
    state: list[Attribute] = []
    for value in op.zero:
        kind = getattr(value, "type", None)
        if number_in(value) is not None and isinstance(kind, Attribute):
            state.append(kind)
        else:
            message = f"the zero {value} is not a number with a type"
            problems.append(Problem("monoid-zero", message, zero=op.zero))
    if not op.zero.data:
        problems.append(Problem("monoid-zero", "its state has no parts; give it a zero at least"))
    block = op.merge.block
    problems += body("merge", block, [*state, *state], ())
    if yielded_types(block) != state:
        have = yielded_types(block)
        message = f"merge yields {types_text(have)}, but the state is {types_text(state)}"
        problems.append(Problem("monoid-merge", message, yielded=have, state=state))
    return problems or list(broken_laws(op))
