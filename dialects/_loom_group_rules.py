"""Rules of `loom.fused`: members aligned with the group, edges between them, shards.

    @softmax: @sum has dimension 1 over <[0] : [7]>, but the group's is <[0] : [8]> there

Two members agree where one reads what the other writes: rows of projections that are one dimension
each must be the same dimension of the group, at the same shift. So what a part of a shared
dimension reads of an inner tensor is what the same part wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from xdsl.ir import SSAValue

from tapestry.dialects._loom_fused import member_partition, member_reads, member_writes
from tapestry.dialects._loom_geometry import shard_tiling
from tapestry.dialects._loom_types import tensor_type
from tapestry.dialects.zspace import ProjectionAttr
from tapestry.issues import Problem
from tapestry.zspace import AffineMap, Partition, Projection, Range, cut_dims

if TYPE_CHECKING:
    from tapestry.dialects import loom
    from tapestry.dialects._loom_fused import DimClass, FusedOp


class Aligned(Protocol):
    """Members that are aligned with one index space: a group, or what may become one."""

    @property
    def index(self) -> Range: ...

    @property
    def aligned(self) -> Sequence[tuple[loom.OperationOp, AffineMap]]: ...

    @property
    def members(self) -> Sequence[loom.OperationOp]: ...

    @property
    def yielded(self) -> Sequence[SSAValue]: ...


class Edge(NamedTuple):
    """A read of an inner tensor: who writes and reads it, and how, from the group's space.

    `is_extra` says that unwrap reads it, once the reader has folded.
    """

    writer: loom.OperationOp
    reader: loom.OperationOp
    written: Projection
    read: Projection
    is_extra: bool


class Row(NamedTuple):
    """A row of a projection: the coefficients of the group's dimensions, the shift, the extent."""

    terms: tuple[int, ...]
    shift: int
    extent: int


def fused_problems(op: FusedOp) -> list[Problem]:
    """Every rule of one `loom.fused`; later ones are looked at when earlier ones hold."""
    problems = _structure(op)
    if problems or not all(_is_sound(member) for member in op.members):
        return problems
    problems = _placements(op) or _edges(op)
    if not problems and op.partition is not None:
        problems = sharding_problems(op, op.partition)
    return problems


def _is_sound(member: loom.OperationOp) -> bool:
    """Whether the rules may look at a member; what is wrong with it, it says itself."""
    if not member.is_formed or len(member.kinds) != member.index.rank:
        return False
    maps = (*member.in_maps, *member.extra_maps, *member.out_maps)
    tensors = [*member.operands, *member.outs]
    return len(maps) == len(tensors) and all(
        projection.outputs == tensor_type(value).box.rank
        for projection, value in zip(maps, tensors, strict=True)
    )


def _structure(op: FusedOp) -> list[Problem]:
    from tapestry.dialects import loom

    block = op.body.block
    problems: list[Problem] = []
    last = block.last_op
    if not isinstance(last, loom.YieldOp):
        problems.append(Problem("body-end", "the group does not end with loom.yield"))
    for inner in block.ops:
        if inner is not last and not isinstance(inner, loom.OperationOp):
            message = f"the group holds {inner.name}; its members are loom.operations"
            problems.append(Problem("group-member", message))
    for what, have, want in (
        ("takes", [a.type for a in block.args], [v.type for v in op.ins]),
        ("yields", [v.type for v in op.yielded], list(op.result_types)),
    ):
        if have != want:
            outside = "operands" if what == "takes" else "results"
            message = f"the group {what} {_types(have)}, but its {outside} are {_types(want)}"
            problems.append(Problem("group-types", message, inside=have, outside=want))
    if len(op.alignments) != len(op.members):
        message = f"{len(op.members)} members, but {len(op.alignments)} alignments"
        problems.append(Problem("group-alignment", message))
    for value in op.yielded:
        if not isinstance(value.owner, loom.OperationOp):
            message = "an output is what a member writes, not what the group reads"
            problems.append(Problem("group-output", message))
    for member in op.members:
        if member.partition is not None:
            message = f"@{member.label.data} has shards of its own; the group is split as one"
            problems.append(Problem("group-member", message, shards=member.partition))
        if not any(out.first_use for out in member.outs):
            message = f"@{member.label.data} is read by no member and is no output; leave it out"
            problems.append(Problem("group-member", message))
    return problems


def _types(kinds: Sequence[object]) -> str:
    return f"({', '.join(map(str, kinds))})"


def _placements(op: FusedOp) -> list[Problem]:
    """Each member's dimensions are different dimensions of the group, over the same coordinates."""
    problems: list[Problem] = []
    for member, attribute in zip(op.members, op.alignments, strict=True):
        projection = attribute.data
        name = f"@{member.label.data}"
        if projection.inputs != op.index.rank or projection.outputs != member.index.rank:
            message = (
                f"{name} is aligned by {projection}, but the group has {op.index.rank} dimensions "
                f"and the member {member.index.rank}"
            )
            problems.append(Problem("group-alignment", message, alignment=projection))
            continue
        dims = [_unit(row) for row in _rows(projection)]
        if None in dims or len(set(dims)) != len(dims) or not projection.is_unit:
            message = (
                f"{name} is aligned by {projection}; each row must be another dimension of the "
                "group, with or without a shift"
            )
            problems.append(Problem("group-alignment", message, alignment=projection))
        elif not op.index.is_empty and projection.apply_range(op.index) != member.index:
            message = (
                f"{name} runs over <{member.index}>, but the group's points are "
                f"<{projection.apply_range(op.index)}> there"
            )
            problems.append(Problem("group-alignment", message, alignment=projection))
    return problems


def _edges(op: FusedOp) -> list[Problem]:
    """Rows that are one dimension each agree between who writes an inner tensor and its readers."""
    problems: list[Problem] = []
    for writer, reader, written, read, _ in inner_edges(op):
        for row, (ours, theirs) in enumerate(zip(_rows(written), _rows(read), strict=True)):
            if _unit(ours) is not None and _unit(theirs) is not None and ours != theirs:
                message = (
                    f"@{reader.label.data} reads dimension {row} of what @{writer.label.data} "
                    f"writes at {_shown(theirs)}, but it is written at {_shown(ours)}; align the "
                    f"two, or clone @{writer.label.data}, or leave it out of the group"
                )
                problems.append(Problem("group-edge", message, written=written, read=read))
    return problems


def sharding_problems(op: FusedOp, partition: Partition) -> list[Problem]:
    """Why a group cannot be split as `partition` says; none when it can.

    A dimension may be cut when every member that has it maps it, every output's member has it, and
    whoever reads an inner tensor that is written along it reads it in the same place. A member that
    writes outputs alone may fold it too: its states merge from shard to shard of a grid.
    """
    rank = op.index.rank
    if partition.rank != rank:
        message = f"the partition has rank {partition.rank}, but the group has rank {rank}"
        return [Problem("shard-tiling", message, index=op.index, shards=partition)]
    merged = () if partition.cuts is None else op.merged_dims
    kept = [dim for dim in range(rank) if dim not in merged]
    kinds: list[loom.Iterator] = ["fold" if dim in merged else "map" for dim in range(rank)]
    outs = [ProjectionAttr(projection.select_inputs(kept)) for projection in op.out_maps]
    problems = shard_tiling(partition, op.index, kinds, outs, ordered=False)
    if problems:
        return problems
    edges = inner_edges(op)
    for dim in sorted(cut_dims(op.index, partition.ranges())):
        reason = why_whole(op, dim, edges)
        if reason is None and dim not in merged and dim not in op.map_dims:
            reason = "states of members merge over a grid alone"
        if reason is not None:
            message = f"dimension {dim} cannot be cut: {reason}"
            problems.append(Problem("group-shards", message, shards=partition))
    for member, place in () if problems else op.aligned:
        own = member_partition(partition, place)
        if own is not None:
            problems += member.sharding_problems(own)
    return problems


def why_whole(
    op: Aligned, dim: int, edges: Sequence[Edge] | None = None, *, finished: bool = True
) -> str | None:
    """Why a dimension of a group must not be cut, None when it may be.

    A box of more than one cell may reach into what another part writes, wherever it starts. `edges`
    are the group's `inner_edges`, where they are known: who asks of many dimensions finds them
    once. Unless folds are `finished` in the group, one may finish with what another one folds.
    """
    beside = [] if finished else _folding(op, dim)
    for member, place in op.aligned:
        own = member_dim(place, dim)
        if own is not None and member.kinds[own] != "map":
            reason = _why_unmerged(op, member, member.kinds[own], beside)
            if reason is not None:
                return reason
            continue
        if own is not None and any(
            _lacks(projection, member.kept_dims.index(own)) for projection in member.out_maps
        ):
            return f"@{member.label.data} leaves it out of what it writes"
        if own is None and any(out in op.yielded for out in member.outs):
            return f"@{member.label.data}, which writes an output, lacks it"
    for writer, reader, written, read, _ in inner_edges(op) if edges is None else edges:
        for ours, theirs in zip(_rows(written), _rows(read), strict=True):
            if ours.terms[dim] and ours != theirs:
                names = f"@{reader.label.data} reads other cells of @{writer.label.data}"
                return f"{names} than the same part writes"
    return None


def _why_unmerged(
    op: Aligned, member: loom.OperationOp, kind: str, beside: Sequence[loom.OperationOp]
) -> str | None:
    """Why states of a member cannot merge once all shards are done, None when they can.

    It may finish with what members `beside` it give, and they with what it gives.
    """
    along = f"@{member.label.data} {kind}s along it"
    if kind != "fold":
        return along
    for out in member.outs:
        for use in out.uses:
            readers = [one for one in op.members if one is use.operation]
            if any(one not in beside or use.index < len(one.ins) for one in readers):
                return f"{along}, and a member reads what it folds"
    if any(value.owner in op.members and value.owner not in beside for value in member.extras):
        return f"{along}, and finishes with what a member writes"
    return None


def _folding(op: Aligned, dim: int) -> list[loom.OperationOp]:
    """The members that fold along a dimension of a group."""
    places = [(member, member_dim(place, dim)) for member, place in op.aligned]
    return [member for member, own in places if own is not None and own in member.fold_dims]


def _lacks(projection: Projection, axis: int) -> bool:
    """Whether what a projection selects stays where it is along a dimension."""
    return all(dim != axis for terms in projection.map.terms for _, dim in terms)


def dim_classes(op: Aligned) -> tuple[DimClass, ...]:
    """What each dimension of a group is for."""
    return tuple(_dim_class(op, dim) for dim in range(op.index.rank))


def _dim_class(op: Aligned, dim: int) -> DimClass:
    places = [(member, member_dim(place, dim)) for member, place in op.aligned]
    kinds = [member.kinds[own] for member, own in places if own is not None]
    if all(kind == "map" for kind in kinds):
        return "shared" if len(kinds) == len(places) else "private"
    return "inner" if len(kinds) == 1 else "cascade"


def member_dim(place: AffineMap, dim: int) -> int | None:
    """Which dimension of a member is dimension `dim` of the group; None when it lacks it."""
    return next((row for row, terms in enumerate(place.matrix) if terms[dim]), None)


def inner_edges(op: Aligned) -> list[Edge]:
    """Every read of what a member writes by a member after it."""
    writers: dict[SSAValue, tuple[loom.OperationOp, Projection]] = {}
    found: list[Edge] = []
    for member, place in op.aligned:
        for position, (value, projection, _) in enumerate(member_reads(member, place)):
            if value in writers:
                writer, written = writers[value]
                is_extra = position >= len(member.ins)
                found.append(Edge(writer, member, written, projection, is_extra))
        writers |= {v: (member, written) for v, written in member_writes(member, place)}
    return found


def _rows(projection: Projection) -> list[Row]:
    rows = zip(projection.map.matrix, projection.map.offset, projection.shape, strict=True)
    return [Row(*row) for row in rows]


def _unit(row: Row) -> int | None:
    """The one dimension that a row is, shift apart; None when it is anything else."""
    used = [dim for dim, coefficient in enumerate(row.terms) if coefficient]
    one = len(used) == 1 and row.terms[used[0]] == 1 and row.extent == 1
    return used[0] if one else None


def _shown(row: Row) -> str:
    dim, shift = _unit(row), row.shift
    return f"d{dim}" if shift == 0 else f"d{dim} {'+' if shift > 0 else '-'} {abs(shift)}"
