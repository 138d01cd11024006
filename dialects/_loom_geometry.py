"""Rules of ranges and projections: reads inside tensors, outputs tiled, shards that write apart.

    loom.operation @y: input 0 reads [0, 0] : [65, 784], outside its tensor [0, 0] : [64, 784]

Each rule is a function that lists what is wrong, nothing when all is right. Facts about ranges and
projections are exact at full size and cost no more than the rank: nothing enumerates cells. They
depend on attributes alone, so they are remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from tapestry.algebra.dtypes import body_type
from tapestry.dialects._loom_reads import fill_problems, fills_of
from tapestry.dialects._loom_types import Iterator, IteratorsAttr, TensorType
from tapestry.dialects._loom_writes import cut_writes, tiles, tilings
from tapestry.dialects.zspace import PartitionAttr, ProjectionAttr, RangeAttr
from tapestry.issues import Problem
from tapestry.zspace import Domain, Partition, Projection, Range, ZSpaceError

_MAY_READ_BLOCKS = ("input", "extra input")


def accesses(
    what: str,
    projections: Sequence[ProjectionAttr],
    tensors: Sequence[TensorType],
    box: Range,
    clips: ArrayAttr[Attribute] | None = None,
) -> list[Problem]:
    """Rank, fills and bounds of what each projection selects of its tensor over `box`."""
    if len(projections) != len(tensors):
        message = f"{len(tensors)} {what} tensors, but {len(projections)} projections"
        return [Problem("operand-count", message, tensors=tensors, projections=projections)]
    problems = fill_problems(what, clips, [body_type(tensor.element_type) for tensor in tensors])
    fills = (None,) * len(tensors) if problems else fills_of(clips, len(tensors))
    for position, (attribute, tensor) in enumerate(zip(projections, tensors, strict=True)):
        projection = attribute.data
        name = f"{what} {position}"
        if projection.inputs != box.rank:
            message = (
                f"{name} is projected from {projection.inputs} dimensions, "
                f"but there are {box.rank} here"
            )
            problems.append(Problem("projection-rank", message, projection=projection, index=box))
        elif projection.outputs != tensor.box.rank:
            message = (
                f"{name} has rank {tensor.box.rank}, but its projection makes rank "
                f"{projection.outputs}"
            )
            problems.append(
                Problem("projection-rank", message, projection=projection, tensor=tensor.box)
            )
        elif not (projection.is_unit or what in _MAY_READ_BLOCKS):
            message = (
                f"{name} is one box of shape {list(projection.shape)} per point; only inputs of "
                "operations and kernels may select more than a cell"
            )
            problems.append(Problem("block-input", message, projection=projection))
        elif not box.is_empty and fills[position] is None:
            selected = projection.apply_range(box)
            if not tensor.box.contains_range(selected):
                verb = "writes" if what == "output" else "reads"
                message = f"{name} {verb} <{selected}>, outside its tensor <{tensor.box}>"
                problems.append(
                    Problem("out-of-bounds", message, selected=selected, tensor=tensor.box)
                )
    return problems


def domain_problems(domain: Domain | None, box: Range, kinds: Sequence[Iterator]) -> list[Problem]:
    """A domain is over the index dimensions, and leaves no cell of an output unwritten.

    Where something is folded or scanned, points outside contribute the zero, so every cell is still
    written. Without, a point outside would leave its cell as it is.
    """
    if domain is None:
        return []
    if domain.rank != box.rank:
        message = f"the domain has {domain.rank} dimensions, but the index space has {box.rank}"
        return [Problem("domain-rank", message, domain=domain, index=box)]
    if any(kind != "map" for kind in kinds) or domain.covers(box):
        return []
    message = (
        f"the domain ({domain.within(box)}) leaves cells of the outputs unwritten: it folds "
        f"nothing, so every point of <{box}> must be inside; compute where(condition, value, "
        "other) in the body instead"
    )
    return [Problem("coverage", message, domain=domain, index=box)]


def shard_tiling(
    partition: Partition,
    box: Range,
    kinds: Sequence[Iterator],
    outs: Sequence[ProjectionAttr],
    *,
    ordered: bool,
) -> list[Problem]:
    """The shards tile the index space, and those that differ in a kept dimension write apart.

    With `ordered` (the monoid is not commutative) the shards of a fold must also follow one another
    in row-major order, because that is the order their states merge in. The shards of a scan always
    must: each carries on from the state that the one before it left.
    """
    try:
        partition.check(box)
    except ZSpaceError as error:
        message = f"the shards do not tile the index space <{box}>: {error}"
        return [Problem("shard-tiling", message, index=box, shards=partition)]
    kept_dims = [d for d, kind in enumerate(kinds) if kind != "fold"]
    if "scan" in kinds and not in_order(partition, box, [kinds.index("scan")]):
        message = (
            "the shards along the scan do not follow one another: for each box of the other "
            "dimensions, list them from the first coordinate to the last"
        )
        return [Problem("shard-order", message, index=box, shards=partition)]
    fold_dims = [d for d in range(box.rank) if d not in kept_dims]
    if ordered and fold_dims and not in_order(partition, box, fold_dims):
        message = (
            "the shards of the fold are not in row-major order, and its monoid does not commute"
        )
        return [Problem("shard-order", message, index=box, shards=partition)]
    mixed = [(n, p.data) for n, p in enumerate(outs) if _mixes_rows(p.data)]
    if not mixed or box.is_empty:
        # Boxes of the map dimensions write boxes, apart because the output is injective; and
        # where there are no points, nothing is written.
        return []
    whole = box.select(kept_dims)
    parts = list(dict.fromkeys(r.select(kept_dims) for r in partition.ranges()))
    if not tiles(parts, whole):
        # Shards of a fold that overlap here merge over the whole before anything is written.
        return []
    problems: list[Problem] = []
    for position, projection in mixed:
        boxes = [projection.apply_range(part) for part in parts]
        try:
            Partition.explicit(boxes).check(projection.apply_range(whole))
        except ZSpaceError as error:
            message = f"the shards do not write output {position} as boxes: {error}"
            problems.append(
                Problem("shard-writes", message, projection=projection, shards=partition)
            )
    return problems


def in_order(partition: Partition, box: Range, dims: Sequence[int]) -> bool:
    """Whether the shards of each box of the other dimensions run through `dims` from the start."""
    others = [d for d in range(box.rank) if d not in dims]
    whole = box.select(dims)
    reached: dict[Range, int] = {}
    for shard in partition.ranges():
        part, other_box = shard.select(dims), shard.select(others)
        # A run of the row-major order: single coordinates, one cut, then whole dimensions.
        cut = [d for d in range(whole.rank) if part.shape[d] != whole.shape[d]]
        if cut and any(part.shape[d] != 1 for d in range(cut[-1])):
            return False
        position = 0
        for d in range(whole.rank):
            position = position * whole.shape[d] + part.start[d] - whole.start[d]
        if position != reached.get(other_box, 0):
            return False
        reached[other_box] = position + part.size
    return all(end == whole.size for end in reached.values())


def _mixes_rows(projection: Projection) -> bool:
    """Whether boxes of the index space need not write boxes: some row is not one dimension."""
    rows = projection.map.matrix
    return any(sum(1 for c in row if c) > 1 or any(abs(c) > 1 for c in row) for row in rows)


@lru_cache(maxsize=65536)
def geometry(
    index: RangeAttr,
    iterators: IteratorsAttr,
    ins: ArrayAttr[ProjectionAttr],
    in_clips: ArrayAttr[Attribute] | None,
    in_tensors: tuple[TensorType, ...],
    extras: ArrayAttr[ProjectionAttr],
    extra_clips: ArrayAttr[Attribute] | None,
    extra_tensors: tuple[TensorType, ...],
    outs: ArrayAttr[ProjectionAttr],
    out_tensors: tuple[TensorType, ...],
    shards: PartitionAttr | None,
    ordered: bool,
    varying: tuple[tuple[int, ...], ...] | None,
) -> tuple[Problem, ...]:
    """The violations of an operation's ranges and projections, none when it is right."""
    box, kinds = index.data, iterators.data
    if len(kinds) != box.rank:
        message = f"{len(kinds)} iterators for an index space of rank {box.rank}"
        return (Problem("iterator-count", message, iterators=kinds, index=box),)
    kept_dims = [d for d, kind in enumerate(kinds) if kind != "fold"]
    kept_range = box.select(kept_dims)
    problems = accesses("input", ins.data, in_tensors, box, in_clips)
    problems += accesses("extra input", extras.data, extra_tensors, kept_range, extra_clips)
    written = accesses("output", outs.data, out_tensors, kept_range)
    if not written:
        written = tilings(outs.data, out_tensors, kept_range, varying=varying)
    problems += written
    if shards is not None and not problems:
        problems += shard_tiling(shards.data, box, kinds, outs.data, ordered=ordered)
        problems = problems or cut_writes(shards.data, box, kinds, outs.data)
    return tuple(problems)
