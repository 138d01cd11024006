"""Rules of what is written: every cell of an output once, or with one value, by one shard.

    loom.operation @y: output 0 has 4 cells, but 3 are written

An output may leave out dimensions that its value does not vary along. All points along them would
write the same, and the first one does; shards that write apart must not cut such a dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapestry.dialects._loom_types import Iterator, TensorType
from tapestry.dialects.zspace import ProjectionAttr
from tapestry.issues import Problem
from tapestry.zspace import Partition, Projection, Range, ZSpaceError


def tilings(
    projections: Sequence[ProjectionAttr],
    tensors: Sequence[TensorType],
    kept_range: Range,
    first: int = 0,
    varying: Sequence[Sequence[int]] | None = None,
) -> list[Problem]:
    """Every output is written exactly once per cell; messages count the outputs from `first`.

    An output whose value varies along some of the kept dimensions alone (`varying`; all, without
    it) may leave the others out: one value goes to a cell, from whichever point.
    """
    problems: list[Problem] = []
    pairs = zip(projections, tensors, strict=True)
    for position, (attribute, tensor) in enumerate(pairs, first):
        projection = attribute.data
        lacking = left_out(projection, kept_range)
        along = range(kept_range.rank) if varying is None else varying[position - first]
        once = kept_range.at_start(dim for dim in lacking if dim not in along)
        if once.size != tensor.box.size:
            message = f"output {position} has {tensor.box.size} cells, but {once.size} are written"
            problems.append(Problem("coverage", message, tensor=tensor.box, written_by=kept_range))
        elif not projection.map.is_injective_on(once):
            message = f"output {position} has cells that are written more than once"
            problems.append(
                Problem("competing-writes", message, projection=projection, written_by=kept_range)
            )
        else:
            continue
        differing = [dim for dim in lacking if dim in along]
        if varying is not None and differing:
            names = ", ".join(f"d{dim}" for dim in differing)
            problems[-1] = Problem(
                "competing-writes",
                f"output {position} leaves {names} out, but its value varies along it",
                projection=projection,
                written_by=kept_range,
            )
    return problems


def left_out(projection: Projection, kept_range: Range) -> list[int]:
    """The dimensions of several points that a projection does not move along."""
    moving = {dim for terms in projection.map.terms for _, dim in terms}
    extents = kept_range.shape if not kept_range.is_empty else ()
    return [dim for dim, extent in enumerate(extents) if extent > 1 and dim not in moving]


def cut_writes(
    partition: Partition, box: Range, kinds: Sequence[Iterator], outs: Sequence[ProjectionAttr]
) -> list[Problem]:
    """No shards that write apart cut what an output leaves out: several would write its cells.

    Shards of a fold whose kept parts overlap merge over the whole before anything is written.
    """
    kept_dims = [d for d, kind in enumerate(kinds) if kind != "fold"]
    whole = box.select(kept_dims)
    lacking = [(n, left_out(p.data, whole)) for n, p in enumerate(outs)]
    if not any(dims for _, dims in lacking):
        return []
    parts = list(dict.fromkeys(r.select(kept_dims) for r in partition.ranges()))
    if not tiles(parts, whole):
        return []
    problems: list[Problem] = []
    for position, dims in lacking:
        cut = [d for d in dims if any(part.shape[d] != whole.shape[d] for part in parts)]
        if cut:
            names = ", ".join(f"d{dim}" for dim in cut)
            message = (
                f"the shards cut {names} of the kept dimensions, which output {position} leaves "
                "out; leave it whole"
            )
            problems.append(
                Problem("shard-writes", message, projection=outs[position].data, shards=partition)
            )
    return problems


def tiles(parts: Sequence[Range], whole: Range) -> bool:
    """Whether ranges tile a whole, without gap or overlap."""
    try:
        Partition.explicit(parts).check(whole)
    except ZSpaceError:
        return False
    return True
