"""A `loom.fused` as a kernel is made from it: members, and what they read of each other.

    %y = loom.fused @attention over <[0, 0, 0, 0] : [i, j, c, d]> ... group (%q, %k, %v) {
           %s = loom.operation @scores [i, j, c] ... ins(%q, %k)      // an inner tensor
           %o = loom.operation @mix [i, d, j] ... ins(%s, %v) ... }

Every member is a map-fold (`kernels.mapfold`) whose dimensions are some of the group's. What it
reads is a tensor outside, or an *inner* one, which another member makes. An inner tensor has no
cells: where it is written and read at the same points of the group, it is a value of the point, and
what reads it at a tile asks for the tile. So in one kernel each inner tensor must be read where it
is written.

An operation alone is a group of one member (`alone`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from xdsl.ir import Block, BlockArgument, SSAValue

from tapestry.algebra.bodies import Dims, moving_dims
from tapestry.dialects import loom
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.host.in_place import standing
from tapestry.passes.triton.kernels.mapfold import (
    MapFold,
    Tensor,
    buffer_numbers,
    given_schedule,
    map_fold_of,
)
from tapestry.zspace import AffineMap, Domain, Partition, Projection, Range, cut_dims
from tapestry.zspace.origins import settle


class NotOneKernelError(Exception):
    """Why a group does not become one kernel: its members become kernels of their own."""


@dataclass(frozen=True)
class Inner:
    """Output `out` of a member."""

    member: int
    out: int


@dataclass(frozen=True, eq=False)
class Member:
    """A map-fold, and where it is: its dimension d is dimension `dims[d]` of the group, shifted.

    `sources` are what its inputs and extras are, in order: inner tensors, or reads of the group.
    """

    fold: MapFold
    place: AffineMap
    sources: tuple[Inner | int, ...]

    @cached_property
    def dims(self) -> tuple[int, ...]:
        """The group's dimension that each of its own is."""
        return tuple(dim for terms in self.place.terms for _, dim in terms)

    def moving(self, own: Dims) -> Dims:
        """Some of its dimensions as the group's."""
        return frozenset(self.dims[d] for d in own)

    @cached_property
    def fold_dims(self) -> Dims:
        """The group's dimensions that it folds."""
        return self.moving(frozenset(self.fold.fold_dims))

    @cached_property
    def kept(self) -> AffineMap:
        """Its kept dimensions as a function of the group's points."""
        return self.place.select_outputs(self.fold.kept_dims)

    def written(self, out: int) -> Projection:
        """Where it writes an output, from the group's points."""
        return self.fold.outs[out].projection.compose(self.kept)


@dataclass(frozen=True, eq=False)
class Group:
    """Members in an order that runs; `reads` are from outside, each the operand of that number."""

    name: str
    index: Range
    partition: Partition | None
    members: tuple[Member, ...]
    reads: tuple[Tensor, ...]
    operands: tuple[int, ...]
    outs: tuple[Inner, ...]
    schedule: Schedule | None = None
    """The schedule that is given for its kernel."""
    places: Mapping[int, tuple[Range, AffineMap]] = field(
        default_factory=dict[int, tuple[Range, AffineMap]]
    )
    """For outputs that are parts of larger tensors, by number, these and where in them."""

    @cached_property
    def shards(self) -> tuple[Range, ...]:
        """The parts of the index space, each one launch."""
        if self.partition is None:
            return (self.index,)
        return tuple(shard for shard in self.partition.ranges() if not shard.is_empty)

    @cached_property
    def cut(self) -> frozenset[int]:
        """The dimensions that shards cut."""
        return cut_dims(self.index, self.shards)

    def parts(self, member: int) -> list[Range]:
        """The parts of a member's index space that shards are."""
        place = self.members[member].place
        return [Projection.cells(place).apply_range(shard) for shard in self.shards]

    def written(self, inner: Inner) -> Tensor:
        """An output of a member, from the group's points."""
        member = self.members[inner.member]
        tensor = member.fold.outs[inner.out]
        tensor = replace(tensor, projection=member.written(inner.out), repeated=())
        return standing(tensor, self.places.get(self.outs.index(inner)))

    def readers(self, member: int) -> list[Member]:
        """The members that read what one of them writes."""
        return [
            reader
            for reader in self.members
            if any(isinstance(s, Inner) and s.member == member for s in reader.sources)
        ]

    def has_extent(self, dims: Dims) -> Dims:
        """Those of some dimensions that have more points than one."""
        return frozenset(d for d in dims if self.index.shape[d] != 1)

    def argument_dims(self, member: Member) -> list[Dims]:
        """The group's dimensions along which each input of a member moves."""
        own = [moving_dims(tensor.projection) for tensor in member.fold.ins]
        return [self.has_extent(member.moving(dims)) for dims in own]

    @cached_property
    def rows(self) -> tuple[tuple[Row, ...], ...]:
        """Per member, the rows of its domain that matter, as the group's.

        What is never read where a row does not hold may be anything there; but a row of what a
        member folds says which points it folds.
        """
        found: list[tuple[Row, ...]] = []
        for number, member in enumerate(self.members):
            rows = _rows_of(member)
            readers = self.readers(number)
            if rows and readers and all(inner.member != number for inner in self.outs):
                implied = [
                    set(_rows_of(r)) if self._reads_inside(r, number) else set[Row]()
                    for r in readers
                ]
                folded = member.moving(frozenset(member.fold.fold_dims))
                rows = tuple(
                    row
                    for row in rows
                    if any(row[0][dim] for dim in folded)
                    or not all(row in held for held in implied)
                )
            found.append(rows)
        return tuple(found)

    def _reads_inside(self, reader: Member, number: int) -> bool:
        """Whether a member reads what another writes only at points of its own domain."""
        return all(
            place < len(reader.fold.ins)
            for place, source in enumerate(reader.sources)
            if isinstance(source, Inner) and source.member == number
        )

    def outline(self, outs: Sequence[Tensor]) -> Outline:
        """The group as the map that it is from outside, which reads and writes at a point."""
        rows = [row for member in self.rows for row in member]
        return Outline(
            name=self.name,
            index=self.index,
            kinds=("map",) * self.index.rank,
            ins=self.reads,
            extras=(),
            outs=tuple(outs),
            wrap=Block(),
            unwrap=None,
            monoid=None,
            partition=self.partition,
            inside=Domain.of([r for r, _ in rows], [b for _, b in rows]) if rows else None,
            group=self,
        )


Row = tuple[tuple[int, ...], int]
"""A row of a domain: factors of the group's dimensions, and what is added."""


def _rows_of(member: Member) -> tuple[Row, ...]:
    inside = member.fold.inside
    if inside is None:
        return ()
    rows = inside.compose(member.place).rows
    return tuple(zip(rows.matrix, rows.offset, strict=True))


@dataclass(frozen=True, eq=False)
class Outline(MapFold):
    """A group as a map: its bodies are those of the members."""

    group: Group | None = None

    @cached_property
    def coordinates(self) -> Dims:
        assert self.group is not None
        return frozenset[int]().union(
            *(member.moving(member.fold.coordinates) for member in self.group.members)
        )


def group_of(op: loom.FusedOp) -> Group:
    """The group that a verified `loom.fused` is.

    Raises NotOneKernelError where an inner tensor is not read where it is written.
    """
    inner: dict[SSAValue, Inner] = {}
    reads: list[Tensor] = []
    operands: list[int] = []
    known: dict[object, int] = {}
    buffers = buffer_numbers(op.ins)
    members: list[Member] = []
    for number, (operation, place) in enumerate(op.aligned):
        fold = map_fold_of(operation)
        kept = place.select_outputs(fold.kept_dims)
        sources: list[Inner | int] = []
        tensors = [(t, place) for t in fold.ins] + [(t, kept) for t in fold.extras]
        for value, (tensor, points) in zip(operation.operands, tensors, strict=True):
            read = tensor.projection.compose(points)
            if value in inner:
                source = inner[value]
                written = members[source.member].written(source.out)
                same = settle(written.map, op.index) == settle(read.map, op.index)
                if tensor.fill is not None or not (same and read.is_unit and written.is_unit):
                    raise NotOneKernelError(
                        f"@{fold.name} reads other cells of @{members[source.member].fold.name} "
                        "than the same point writes"
                    )
                sources.append(source)
                continue
            assert isinstance(value, BlockArgument)
            key = (op.ins[value.index], read, tensor.fill)
            if key not in known:
                known[key] = len(reads)
                name = value.name_hint or op.ins[value.index].name_hint or tensor.name
                buffer = buffers[op.ins[value.index]]
                reads.append(replace(tensor, projection=read, name=name, buffer=buffer))
                operands.append(value.index)
            sources.append(known[key])
        members.append(Member(fold, place, tuple(sources)))
        for out, value in enumerate(operation.outs):
            inner[value] = Inner(number, out)
    return Group(
        op.label.data,
        op.index,
        op.partition,
        tuple(members),
        tuple(reads),
        tuple(operands),
        tuple(inner[value] for value in op.yielded),
        given_schedule(op),
    )


def alone(fold: MapFold) -> Group:
    """A group of one member."""
    place = AffineMap.identity(fold.index.rank)
    kept = place.select_outputs(fold.kept_dims)
    reads = [*fold.ins]
    reads += [replace(t, projection=t.projection.compose(kept)) for t in fold.extras]
    count = len(reads)
    member = Member(fold, place, tuple(range(count)))
    outs = tuple(Inner(0, out) for out in range(len(fold.outs)))
    return Group(
        fold.name,
        fold.index,
        fold.partition,
        (member,),
        tuple(reads),
        tuple(range(count)),
        outs,
        fold.schedule,
    )
