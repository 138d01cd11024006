"""Whether operations that could be a group would make a good kernel of one.

    %m = max over j of %x        %l = sum over j of exp(%x - %m)        %y = exp(%x - %m) / %l

do: a program has some rows i, and what the three pass on to each other is a cell per row, or is
computed again from `%x`. Of projections alone follows which dimensions programs are spread over
(every member maps them, *grid dimensions*), and what a program has to hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from tapestry.dialects import loom
from tapestry.dialects._loom_group_rules import (
    Aligned,
    Edge,
    dim_classes,
    inner_edges,
    member_dim,
    why_whole,
)
from tapestry.zspace import AffineMap, Projection, Range

ROWS_OF_PRODUCTS = 64
"""Rows that a program of matrix products has, to share what it reads for them."""


@dataclass(frozen=True)
class Limits:
    """What a program may hold and do.

    `resident` are cells that a fold keeps per point of the grid, or folds for each cell that it
    passes on piece by piece (more, where rows are enough to share what is read for them, and a
    number is made of each). Where a program has more than `row` points, there must be at least
    `programs` of them.
    """

    resident: int = 256
    row: int = 1 << 16
    programs: int = 32


def _grid_dims(group: Aligned, edges: Sequence[Edge]) -> tuple[int, ...]:
    """The dimensions that every member maps, and that may be cut."""
    return tuple(
        dim
        for dim, kind in enumerate(dim_classes(group))
        if kind == "shared" and why_whole(group, dim, edges) is None
    )


def why_not_one_kernel(group: Aligned, limits: Limits) -> str | None:
    """Why a group would be several kernels rather than one; None when it is one.

    * What a member reads of another is what the same point wrote, along dimensions of both: no
      program needs cells that another one computes.
    * What a fold makes is at most `resident` cells per point of the grid, of dimensions that no
      member folds; or else all its readers fold it, or what they make of it is folded so, in one
      walk: then they take it piece by piece, and it folds at most `resident` points for each, or
      there are many rows.
    * A map that reads what is folded has no dimension that the fold lacks: it would be folded again
      along that.
    * Programs are enough, unless each has little to do.
    """
    edges = inner_edges(group)
    for edge in edges:
        if not _in_place(edge, group.index):
            return (
                f"{edge.reader.subject} reads other cells of what {edge.writer.subject} writes "
                "than the same point computes"
            )
        if not _dims(group, edge.reader) & _dims(group, edge.writer):
            return f"{edge.reader.subject} has no dimension of {edge.writer.subject}"
    grid = _grid_dims(group, edges)
    for member, place in group.aligned:
        if member.scan_dim is not None:
            return f"{member.subject} scans"
        reason = _why_folded_again(group, member, edges) or _why_not_held(
            group, member, place, grid, edges, limits
        )
        if reason is not None:
            return reason
    return _too_few_programs(group.index, grid, limits)


def read_alike(group: Aligned) -> bool:
    """Whether members have the same dimensions, for the same, and read some cell together."""
    first, *others = [_signature(member, place) for member, place in group.aligned]
    together = first[1].intersection(*(reads for _, reads in others))
    return bool(together) and all(kinds == first[0] for kinds, _ in others)


def _signature(
    member: loom.OperationOp, place: AffineMap
) -> tuple[dict[int, loom.Iterator], set[tuple[SSAValue, Projection]]]:
    """What a member does along each dimension of the group, and what it reads at its points."""
    dims = [terms[0][1] for terms in place.terms]
    kinds: dict[int, loom.Iterator] = dict(zip(dims, member.kinds, strict=True))
    reads = {(r.value, r.projection.compose(place)) for r in member.in_reads if r.is_plain}
    return kinds, reads


def _why_not_held(
    group: Aligned,
    member: loom.OperationOp,
    place: AffineMap,
    grid: tuple[int, ...],
    edges: list[Edge],
    limits: Limits,
) -> str | None:
    """Why a program cannot hold, or take piece by piece, what a member folds."""
    if not member.fold_dims:
        return None
    shape = group.index.shape
    dims = {own: dim for dim in range(len(shape)) if (own := member_dim(place, dim)) is not None}
    kept = [dims[own] for own in member.kept_dims]
    held = [dim for dim in kept if dim not in grid and shape[dim] > 1]
    classes = dim_classes(group)
    if all(classes[dim] == "private" for dim in held):
        cells = prod(shape[dim] for dim in held)
        if cells <= limits.resident:
            return None
        return (
            f"{member.subject} makes {cells} cells for each point that all members map, more than "
            f"{limits.resident}"
        )
    readers = [edge.reader for edge in edges if edge.writer is member]
    places = dict(group.aligned)
    streamed = [dim for dim in held if classes[dim] != "private"]
    if not all(_is_taken(group, member, dim, edges) for dim in streamed):
        return (
            f"what {member.subject} folds is needed whole along a dimension that another member "
            "folds"
        )
    if not grid:
        return f"all that {member.subject} maps is folded, so one program would do it"
    phases = _phases(group, grid, edges)
    if len({phases[reader] for reader in readers}) > 1:
        return f"{member.subject} would be folded for one reader, and again for one that needs it"
    depth = prod(shape[dims[own]] for own in member.fold_dims)
    rows = prod(shape[dim] for dim in grid)
    narrow = all(_dims(group, r) - _folded_dims(r, places) <= {*grid} for r in readers)
    if narrow and rows < limits.programs * ROWS_OF_PRODUCTS:
        points = group.index.size // max(1, rows)
        if points > limits.row:
            return (
                f"{rows} rows are not enough programs, of {ROWS_OF_PRODUCTS} rows each, to fold "
                f"{points} points for each row"
            )
    elif depth > limits.resident and not narrow:
        return (
            f"{member.subject} folds {depth} points, more than {limits.resident}, for each cell "
            "that is taken piece by piece"
        )
    return None


def _is_taken(group: Aligned, member: loom.OperationOp, dim: int, edges: list[Edge]) -> bool:
    """Whether what a member makes along a dimension is taken piece by piece.

    All that reads it folds the dimension, or makes of a piece what is taken so in turn.
    """
    if any(out in group.yielded for out in member.outs):
        return False
    places = dict(group.aligned)
    readers = dict.fromkeys(edge.reader for edge in edges if edge.writer is member)
    for reader in readers:
        own = member_dim(places[reader], dim)
        if own is None:
            return False
        if own not in reader.fold_dims and not _is_taken(group, reader, dim, edges):
            return False
    return bool(readers)


def _phases(
    group: Aligned, grid: tuple[int, ...], edges: list[Edge]
) -> dict[loom.OperationOp, int]:
    """Per member, how many walks are finished before it can begin: folds, one after another.

    What is taken piece by piece is made in the walk of its reader.
    """
    places = dict(group.aligned)
    phases: dict[loom.OperationOp, int] = {}
    ready: dict[loom.OperationOp, int] = {}
    for member, _ in group.aligned:
        read = [edge for edge in edges if edge.reader is member]
        phases[member] = max((ready[e.writer] for e in read if not e.is_extra), default=0)
        later = max((ready[e.writer] for e in read if e.is_extra), default=0)
        folded = _folded_dims(member, places)
        passes = _is_streamed(group, member, grid, edges)
        ready[member] = max(phases[member] + (bool(folded) and not passes), later)
    return phases


def _is_streamed(
    group: Aligned, member: loom.OperationOp, grid: tuple[int, ...], edges: list[Edge]
) -> bool:
    """Whether a fold's cells are folded along something that programs do not share.

    By what reads them, or by what reads that.
    """
    places = dict(group.aligned)
    kept = _dims(group, member) - {*grid} - _folded_dims(member, places)
    readers = dict.fromkeys(edge.reader for edge in edges if edge.writer is member)
    return any(
        kept & _folded_dims(reader, places) or _is_streamed(group, reader, grid, edges)
        for reader in readers
    )


def _folded_dims(
    member: loom.OperationOp, places: Mapping[loom.OperationOp, AffineMap]
) -> set[int]:
    """The group's dimensions that a member folds."""
    return {places[member].terms[own][0][1] for own in member.fold_dims}


def _why_folded_again(group: Aligned, member: loom.OperationOp, edges: list[Edge]) -> str | None:
    """Why a map would make a fold that it reads, perhaps through other maps, run several times."""
    if member.fold_dims:
        return None
    shape = group.index.shape
    own = {dim for dim in _dims(group, member) if shape[dim] > 1}
    waiting, seen = [member], {member}
    while waiting:
        reader = waiting.pop()
        for edge in edges:
            if edge.reader is not reader or edge.writer in seen:
                continue
            seen.add(edge.writer)
            if not edge.writer.fold_dims:
                waiting.append(edge.writer)
            elif not own <= _dims(group, edge.writer):
                return (
                    f"{member.subject} has a dimension that {edge.writer.subject} lacks: along it, "
                    "that would be folded again"
                )
    return None


def _too_few_programs(index: Range, grid: tuple[int, ...], limits: Limits) -> str | None:
    programs = prod(index.shape[dim] for dim in grid)
    row = prod(extent for dim, extent in enumerate(index.shape) if dim not in grid)
    if programs >= limits.programs or row <= limits.row:
        return None
    return (
        f"each of {programs} programs would have {row} points; with fewer than {limits.programs} "
        f"it may have {limits.row}"
    )


def _dims(group: Aligned, member: loom.OperationOp) -> set[int]:
    """The dimensions of a group that a member has."""
    place = dict(group.aligned)[member]
    return {dim for dim in range(group.index.rank) if member_dim(place, dim) is not None}


def _in_place(edge: Edge, index: Range) -> bool:
    return _rows(edge.written, index) == _rows(edge.read, index)


def _rows(projection: Projection, index: Range) -> list[tuple[tuple[int, ...], int, int]]:
    """The rows of a projection, where dimensions of one point are part of the shift."""
    rows: list[tuple[tuple[int, ...], int, int]] = []
    parts = zip(projection.map.matrix, projection.map.offset, projection.shape, strict=True)
    for terms, shift, extent in parts:
        ones = [n for n, size in enumerate(index.shape) if size == 1]
        at = shift + sum(terms[dim] * index.start[dim] for dim in ones)
        kept = tuple(0 if dim in ones else factor for dim, factor in enumerate(terms))
        rows.append((kept, at, extent))
    return rows
