"""How operations fit into one group: which of their dimensions are the same, and where.

    @exp over <[0, 0] : [4, 8]> writes (d0, d1) -> (d0, d1 + 2)     @sum reads (d0, d1) -> (d0, d1)

are aligned with a group over <[0, 0] : [4, 8]>, @exp by `(d0, d1) -> (d0, d1)` and @sum by
`(d0, d1) -> (d0, d1 + 2)`: what @exp writes at its point (0, 0) is read by @sum at (0, 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from tapestry.dialects import loom
from tapestry.passes.loom.grouping.places import Alignment, Place, Scale, Written
from tapestry.zspace import Projection, Range


def align(members: Sequence[loom.OperationOp], *, mixed: bool = True) -> Alignment | str:
    """The alignment of operations in program order, or why they do not form a group.

    Dimensions are the same where one member reads what another writes, through rows that are one
    dimension each, or the same digits; these must agree. Members that read one tensor by such rows
    share their dimensions where nothing speaks against it, and totals over as many points do. What
    reads of two members at one point makes their dimensions one.
    """
    found = Alignment(mixed=mixed)
    for member in members:
        problem = _add(found, member)
        if problem is not None:
            return problem
        for dim, place in enumerate(found.members[-1]):
            (found.folded if dim in member.fold_dims else found.kept).add(place.dim)
    return found


def _add(found: Alignment, member: loom.OperationOp) -> str | None:
    """Align one more member; the reason when that is not possible."""
    places: dict[int, Place] = {}
    for value, rows in _reads(member):
        for unit, written in zip(rows, found.written.get(value, ()), strict=False):
            if unit is not None and written is not None:
                problem = _identify(found, member, places, unit[0], written.less(unit[1]))
                if problem is not None:
                    return problem
    for value, row, digits in _read_digits(member):
        for digit, dim in enumerate(digits.dims):
            written = found.digits[value][row] if value in found.digits else None
            if written is not None and digits.scale == written.scale:
                problem = _identify(found, member, places, dim, written.places[digit])
                if problem is not None:
                    return problem
    for value, rows in _reads(member):
        for row, unit in enumerate(rows):
            shared = found.read.get((value, row))
            if unit is not None and shared is not None:
                _share(found, member, places, unit[0], shared.less(unit[1]))
    for value, row, digits in _read_digits(member):
        shared = found.read_digits.get((value, row))
        if shared is not None and shared.scale == digits.scale:
            for dim, place in zip(digits.dims, shared.places, strict=True):
                _share(found, member, places, dim, place)
    if not member.kept_dims:
        _walk_together(found, member, places)
    for dim in range(member.index.rank):
        if dim not in places:
            places[dim] = Place(len(found.bounds), 0)
            found.bounds.append((member.index.start[dim], member.index.end[dim]))
    found.members.append([places[dim] for dim in range(member.index.rank)])
    if not member.kept_dims:
        found.totals |= {place.dim for place in places.values()}
    for value, rows in _reads(member):
        for row, unit in enumerate(rows):
            if unit is not None:
                found.read.setdefault((value, row), places[unit[0]].less(-unit[1]))
    for value, row, digits in _read_digits(member):
        at = Written(digits.scale, tuple(places[dim] for dim in digits.dims))
        found.read_digits.setdefault((value, row), at)
    for out, projection in zip(member.outs, member.out_maps, strict=True):
        found.written[out] = [
            None if unit is None else places[unit[0]].less(-unit[1])
            for unit in _units(projection, member.kept_dims)
        ]
        kept = member.kept_dims
        found.digits[out] = [
            None
            if digits is None
            else Written(digits.scale, tuple(places[kept[dim]] for dim in digits.dims))
            for digits in _digits(projection, member.kept_range(member.index))
        ]
    return None


def _identify(
    found: Alignment,
    member: loom.OperationOp,
    places: dict[int, Place],
    dim: int,
    place: Place,
) -> str | None:
    """Say that a member's dimension is one of the group; the reason when that cannot be."""
    known = places.get(dim)
    if known is not None and known.dim != place.dim and found.join(known, place, places):
        return None
    taken = any(other.dim == place.dim for d, other in places.items() if d != dim)
    if taken or places.setdefault(dim, place) != place:
        return f"@{member.label.data} reads an inner tensor under two alignments"
    if _bounds(found, place) != (member.index.start[dim], member.index.end[dim]):
        return f"@{member.label.data} reads only a part of an inner tensor"
    return None


def _walk_together(found: Alignment, member: loom.OperationOp, places: dict[int, Place]) -> None:
    """Let a total be over the dimensions of another total that are as long, in order."""
    for dim in range(member.index.rank):
        taken = {place.dim for place in places.values()}
        for other in sorted(found.totals - taken):
            start, end = found.bounds[other]
            if dim not in places and end - start == member.index.shape[dim]:
                places[dim] = Place(other, member.index.start[dim] - start)


def _share(
    found: Alignment,
    member: loom.OperationOp,
    places: dict[int, Place],
    dim: int,
    place: Place,
) -> None:
    """Let a member's dimension be one of the group where neither is taken and they run alike."""
    free = dim not in places and all(other.dim != place.dim for other in places.values())
    others = found.kept if dim in member.fold_dims else found.folded
    if not found.mixed and place.dim in others:
        return
    if free and _bounds(found, place) == (member.index.start[dim], member.index.end[dim]):
        places[dim] = place


def _bounds(found: Alignment, place: Place) -> tuple[int, int]:
    """From where to where a coordinate runs."""
    start, end = found.bounds[place.dim]
    return start + place.shift, end + place.shift


Unit = tuple[int, int]
"""A row that is one index dimension plus a number."""


def _reads(member: loom.OperationOp) -> list[tuple[SSAValue, list[Unit | None]]]:
    every = tuple(range(member.index.rank))
    ins = [(read.value, _units(read.projection, every)) for read in member.in_reads]
    kept = member.kept_dims
    return ins + [(read.value, _units(read.projection, kept)) for read in member.extra_reads]


def _units(projection: Projection, dims: Sequence[int]) -> list[Unit | None]:
    """Per row of a projection from `dims`, the dimension that it is, shift apart."""
    units: list[Unit | None] = []
    for terms, shift in zip(projection.map.terms, projection.map.offset, strict=True):
        single = len(terms) == 1 and terms[0][0] == 1
        units.append((dims[terms[0][1]], shift) if single else None)
    return units


@dataclass(frozen=True)
class _Digits:
    """A row that tells apart all points of several dimensions: their digits, the largest first."""

    scale: Scale
    dims: tuple[int, ...]


def _read_digits(member: loom.OperationOp) -> list[tuple[SSAValue, int, _Digits]]:
    """What a member reads by rows of several digits: the tensor, the row, the digits."""
    found = [
        (read.value, row, digits)
        for read in member.in_reads
        for row, digits in enumerate(_digits(read.projection, member.index))
        if digits is not None
    ]
    kept, dims = member.kept_range(member.index), member.kept_dims
    return found + [
        (read.value, row, _Digits(digits.scale, tuple(dims[dim] for dim in digits.dims)))
        for read in member.extra_reads
        for row, digits in enumerate(_digits(read.projection, kept))
        if digits is not None
    ]


def _digits(projection: Projection, index: Range) -> list[_Digits | None]:
    """Per row of a projection from `index`, the digits that it is made of, if it is several."""
    rows: list[_Digits | None] = []
    for terms, shift in zip(projection.map.terms, projection.map.offset, strict=True):
        ordered = sorted(terms, reverse=True)
        below, apart = 1, len(terms) > 1
        for factor, dim in reversed(ordered):
            apart &= factor >= below
            below = factor * index.shape[dim]
        scale = tuple((factor, index.start[dim], index.end[dim]) for factor, dim in ordered)
        dims = tuple(dim for _, dim in ordered)
        rows.append(_Digits((scale, shift), dims) if apart else None)
    return rows
