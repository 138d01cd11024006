"""Operations over a part of an index space, written on a tape.

    recorder = Recorder(group.index, part, group.operands)
    slots = recorder.member(member, place)      # one per output of the member, or None

All members of a group are written on one tape, and a single operation is a group of itself. Arrays
have an axis per dimension of the *group*, of extent 1 where they do not vary: so what one member
writes is what the next one reads, most often without a view between them, and what two members
compute alike is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from tapestry.algebra.bodies import moving_dims, needed_operations
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.functions import copied
from tapestry.algebra.named import Scalar
from tapestry.algebra.scalars import scalar_of
from tapestry.dialects import loom
from tapestry.dialects._loom_fused import member_reads, member_writes
from tapestry.dialects._loom_reads import Read
from tapestry.dialects.loom import tensor_type
from tapestry.locations import nearest_location
from tapestry.runtime.arrays.blocks import counted, gathered
from tapestry.runtime.cpu.native import is_available
from tapestry.runtime.cpu.threads import Team
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.bodies import array_function
from tapestry.runtime.prepared.cells import at, converted, of_rank, spread
from tapestry.runtime.prepared.fills import cell_outside
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.tapes.kinds import Output, Recorded, Tapes
from tapestry.runtime.prepared.tapes.meanings import Cast, Copied, Meaning, Placed, Spread
from tapestry.runtime.prepared.tapes.pieces import PlacedRead
from tapestry.runtime.prepared.tapes.regions import Regions
from tapestry.runtime.prepared.tapes.sources import (
    Coordinate,
    Filled,
    First,
    Mask,
    Place,
    Source,
    cells_read,
    is_bounded,
    is_kept,
)
from tapestry.runtime.prepared.tapes.tape import Tape
from tapestry.runtime.prepared.views import reader, writer, writes_view
from tapestry.zspace import AffineMap, Domain, Projection, Range

Slots = list[int]

_MOST = (1 << 31) - 1
"""The largest integer of 32 bits."""

_AT_LEAST = 5
"""The predicate `sge` of `arith.cmpi`."""


@dataclass(frozen=True)
class Scope:
    """A member where it stands: `dims` has the group's dimension for each of its own.

    `part` is of the group's index space, and `index` too, of extent 1 along dimensions it lacks.
    If `states`, what lies along the folded dimensions are states of points that counted.
    """

    member: loom.OperationOp
    place: AffineMap
    index: Range
    part: Range
    states: bool = False

    @property
    def dims(self) -> tuple[int, ...]:
        """The group's dimension for each of the member's."""
        return tuple(terms.index(1) for terms in self.place.matrix)

    @property
    def inside(self) -> Domain | None:
        """Which points of the part count; None when all do."""
        own = None if self.states else self.member.inside
        domain = None if own is None else own.compose(self.place)
        return None if domain is None or domain.covers(self.part) else domain

    def of_group(self, dims: Sequence[int]) -> tuple[int, ...]:
        """The group's dimensions for some of the member's."""
        own = self.dims
        return tuple(own[dim] for dim in dims)


@dataclass(frozen=True)
class _Written:
    """An inner tensor: the slot of its cells, over a part of the group's index space."""

    slot: int
    projection: Projection
    index: Range


class Recorder:
    """Writes members on a tape, for parts of the shape of `part`.

    `cut` are the dimensions along which there are several parts; `inputs` is what is read from
    outside, in the order of the arrays of a call. `parts` are all there are, if that is known. If
    it `computes` masks, these are calls like any other; else they are what parts are given. Of
    `regions`, each part is of one. A `team` does what is done for all parts before.
    """

    def __init__(
        self,
        index: Range,
        part: Range,
        cut: Sequence[int],
        inputs: Sequence[SSAValue],
        parts: Sequence[Range] = (),
        *,
        computes: bool = False,
        regions: Regions | None = None,
        team: Team | None = None,
    ) -> None:
        self.tape = Tape()
        self._team = team
        self._computes = computes
        self._regions = regions
        self.sources: list[Source] = []
        self._index = index
        self._part = part
        self._cut = tuple(cut)
        self._parts = parts
        self._read: dict[object, int] = {}
        self._inner: dict[SSAValue, _Written] = {}
        self._operands = {value: number for number, value in enumerate(inputs)}

    def scope(self, member: loom.OperationOp, place: AffineMap) -> Scope:
        """A member over the part."""
        has = {dim for terms in place.matrix for dim, factor in enumerate(terms) if factor}
        box = self._part.at_start(d for d in range(self._part.rank) if d not in has)
        return Scope(member, place, box, self._part)

    def reads(self, scope: Scope) -> Slots | None:
        """The slots of what a member's bodies take: inputs, then extra ones."""
        return self._all(member_reads(scope.member, scope.place), scope)

    def inputs(self, scope: Scope) -> Slots | None:
        """The slots of what a member's wrap takes."""
        return self._all(member_reads(scope.member, scope.place)[: len(scope.member.ins)], scope)

    def extras(self, scope: Scope) -> Slots | None:
        """The slots of what a member's unwrap takes beside the state."""
        return self._all(member_reads(scope.member, scope.place)[len(scope.member.ins) :], scope)

    def _all(self, reads: Sequence[Read], scope: Scope) -> Slots | None:
        found: Slots = []
        for read in reads:
            outer = read.value in self._operands
            slot = self._outer(read) if outer else self._of(read, scope)
            if slot is None:
                return None
            found.append(slot)
        return found

    def write(self, scope: Scope, slots: Sequence[int]) -> Slots:
        """A member's outputs are the values in some slots, which are returned."""
        pairs = zip(member_writes(scope.member, scope.place), slots, strict=True)
        for (value, projection), slot in pairs:
            self._inner[value] = _Written(slot, projection, scope.index)
        return list(slots)

    def body(
        self, block: Block, given: Sequence[int], wanted: Sequence[SSAValue], scope: Scope | None
    ) -> Slots | None:
        """The slots of values of a body; None where one of its operations has no meaning here."""
        slots: dict[SSAValue, int] = dict(zip(block.args, given, strict=True))
        placed = None if self._regions is None else self._regions.placed
        needed = needed_operations(wanted, placed or ())
        for op in block.ops:
            if op not in needed:
                continue
            (result,) = op.results
            if placed and isinstance(op, loom.ReadOp) and op in placed:
                slots[result] = self._sliced(placed[op])
                continue
            if isinstance(op, loom.IndexOp):
                assert scope is not None
                slots[result] = self._coordinate(op.dimension, scope)
                continue
            if isinstance(op, loom.ReadOp):
                slots[result] = self._placed(op, [slots[operand] for operand in op.operands], scope)
                continue
            function = array_function(op, self._part, ())
            if function is None:
                return None
            said = frozenset(op.properties.items()), frozenset(op.attributes.items())
            kinds = tuple(operand.type for operand in op.operands)
            ins = [slots[operand] for operand in op.operands]
            if isinstance(op, arith.MulfOp) and any(map(self._is_one, ins)):
                slots[result] = ins[0] if self._is_one(ins[1]) else ins[1]
                continue
            key = (op.name, *said, kinds, result.type)
            slots[result] = self.tape.call(function, ins, key, meaning=scalar_of(op))
        return [slots[value] for value in wanted]

    def as_dtype(self, slot: int, have: np.dtype[Any], want: np.dtype[Any]) -> int:
        """A value in another dtype."""
        if have == want:
            return slot
        return self.tape.call(partial(converted, want), (slot,), ("as", want), meaning=Cast(want))

    def view(
        self,
        function: Callable[[Array], Array],
        of: int,
        key: object,
        meaning: Meaning | None = None,
    ) -> int:
        """A view of a value that has an axis per dimension, also of a single number."""
        return self.tape.view(partial(of_rank, self._part.rank, function), of, key, meaning)

    def _placed(self, op: loom.ReadOp, ins: Sequence[int], scope: Scope | None) -> int:
        """The slot of the cells of a block at computed places."""
        rank, inside = len(op.indices), None if scope is None else scope.inside
        asked = op.otherwise is None and inside is not None
        function: Callable[..., Array] = gathered
        if asked and inside is not None:
            function, ins = counted, [*ins, self.mask(inside)]
        place = nearest_location(op)
        made = partial(function, rank, place)
        return self.tape.call(made, ins, (op.name, asked, place), Placed(rank, asked))

    def _is_one(self, slot: int) -> bool:
        """Whether a value is the number that changes nothing it is multiplied with."""
        value = self.tape.constants.get(slot)
        return value is not None and np.ndim(value) == 0 and bool(value == 1)

    def mask(self, inside: Domain) -> int:
        """The slot of which points are inside."""
        if inside not in self._read:
            computed = self._inside(inside) if self._computes else None
            self._read[inside] = self._source(Mask(inside)) if computed is None else computed
        return self._read[inside]

    def _inside(self, domain: Domain) -> int | None:
        """The same, computed of coordinates; None where 32-bit integers do not hold that."""
        rows = list(zip(domain.rows.terms, domain.rows.offset, strict=True))
        most = [max(map(abs, side)) for side in self._index.sides]
        reach = [
            abs(offset) + sum(abs(c) * most[dim] for c, dim in terms) for terms, offset in rows
        ]
        if max(reach) > _MOST or not all(terms for terms, _ in rows):
            return None
        narrow, truth = np.dtype(np.int32), np.dtype(np.bool_)
        call, pair = self.tape.call, (narrow, narrow)

        def number(value: int) -> int:
            return self.tape.constant(np.asarray(value, narrow))

        found: int | None = None
        for terms, offset in rows:
            total = number(offset)
            for factor, dim in terms:
                part = self._narrow(dim, 0)
                if factor != 1:
                    said = Scalar("arith.muli", pair, narrow)
                    part = call(np.multiply, (part, number(factor)), meaning=said)
                total = call(np.add, (total, part), meaning=Scalar("arith.addi", pair, narrow))
            said = Scalar("arith.cmpi", pair, truth, _AT_LEAST)
            holds = call(np.greater_equal, (total, number(0)), meaning=said)
            both = Scalar("arith.andi", (truth, truth), truth)
            found = holds if found is None else call(np.logical_and, (found, holds), meaning=both)
        return found

    def _outer(self, read: Read) -> int:
        """The slot of what is read of an operand."""
        key = (read.value, read.projection, read.fill)
        if key not in self._read:
            self._read[key] = self._source(self._cells(read))
        return self._read[key]

    def _cells(self, read: Read) -> Source:
        """What a part reads of an operand: of a region, all of it is there, or nothing."""
        if self._regions is not None and read in self._regions.replaced:
            kind = numpy_dtype(tensor_type(read.value).element_type)
            return Filled(np.zeros((), kind), self._index.rank)  # which nothing reads
        operand, box = self._operands[read.value], tensor_type(read.value).box
        projection, outside, index = read.projection, cell_outside(read.fill), self._index
        inside = None if self._regions is None else self._regions.inside.get(read)
        if inside is not None and inside.contains_range(self._part):
            return cells_read(operand, projection, None, box, inside, self._team)
        if inside is not None and outside is not None:
            return Filled(outside, index.rank)
        return cells_read(operand, projection, outside, box, index, self._team)

    def _sliced(self, placed: PlacedRead) -> int:
        """The slot of what is read of a block at places that are affine where the part is."""
        projection, region = placed.within(self._part, self._index)
        value = placed.read.value
        key = (value, projection, region)
        if key not in self._read:
            operand, box = self._operands[value], tensor_type(value).box
            cells = cells_read(operand, projection, None, box, region, self._team)
            self._read[key] = self._source(cells)
        return self._read[key]

    def stored(self, slot: int, projection: Projection) -> int:
        """The slot of a value that is written through a projection, as it is in a region.

        Loops compute what a part writes, or frames must: they copy what is only read there.
        """
        regions = self._regions
        if regions is None or not (regions.inside or regions.placed) or not self._computes:
            return slot
        root = slot
        made = {call.out: call for call in self.tape.calls if len(call.outs) == 1}
        while root in made and made[root].kind == "view":
            (root,) = made[root].ins
        if root in made:
            return slot
        extents = tuple((d, self._part.shape[d]) for d in sorted(moving_dims(projection)))
        whole = self.view(partial(spread, extents), slot, ("along", *extents), Spread(extents))
        return self.tape.call(copied, (whole,), "copy", meaning=Copied())

    def _coordinate(self, dimension: int, scope: Scope) -> int:
        dim, shift = scope.dims[dimension], scope.place.offset[dimension]
        key = (dim, shift)
        if key not in self._read:
            self._read[key] = self._counted(dim, shift)
        return self._read[key]

    def _counted(self, dim: int, shift: int) -> int:
        """The slot of coordinates: 32-bit integers, of which loops compare twice as many at once.

        Those of a long dimension are places in a part, and where it starts.
        """
        wide = np.dtype(np.int64)
        if not is_bounded(self._index, dim, shift):
            return self._source(Coordinate(dim, shift, self._index, wide))
        slot, meaning = self._narrow(dim, shift), Cast(wide, bounded=True)
        return self.tape.call(partial(converted, wide), (slot,), ("as", wide), meaning=meaning)

    def _narrow(self, dim: int, shift: int) -> int:
        """The same in 32 bits, which hold them."""
        key = ("narrow", dim, shift)
        if key not in self._read:
            self._read[key] = self._narrowly(dim, shift)
        return self._read[key]

    def _narrowly(self, dim: int, shift: int) -> int:
        index, narrow = self._index, np.dtype(np.int32)
        if is_kept(index, dim) or not self._parts:
            return self._source(Coordinate(dim, shift, index, narrow))
        extents = (part.shape[dim] for part in self._parts)
        places = self._source(Place(dim, max(extents), index.rank))
        starts = dict.fromkeys(part.start[dim] for part in self._parts)
        first = self._source(First(dim, shift, tuple(starts), index.rank))
        said = Scalar("arith.addi", (narrow, narrow), narrow)
        return self.tape.call(np.add, (places, first), "place", meaning=said)

    def _source(self, source: Source) -> int:
        self.sources.append(source)
        return self.tape.source()

    def _of(self, read: Read, scope: Scope) -> int | None:
        """The slot of what is read of an inner tensor, None where that is more than is written."""
        written = self._inner.get(read.value)
        if written is None or not read.is_plain:
            return None
        moving = moving_dims(read.projection)
        if written.projection == read.projection:
            still = [d for d, n in enumerate(written.index.shape) if n > 1 and d not in moving]
            if not still:
                return written.slot
            first = tuple(slice(1) if d in still else slice(None) for d in range(self._part.rank))
            return self.view(partial(at, first), written.slot, ("first", *still))
        box = written.projection.apply_range(written.index)
        if not box.contains_range(read.projection.apply_range(scope.index)):
            return None
        if not self._steady(written, read.projection):
            return None
        arrange = writer(written.projection, box, written.index)
        cells = reader(read.projection, box, scope.index)
        key = (written.projection, read.projection, written.index, scope.index)
        given = self.view(np.asarray, written.slot, "axes")
        as_view = writes_view(arrange)
        turned = (
            self.tape.view(arrange, given, key[::2])
            if as_view
            else self.tape.call(arrange, (given,), key[::2])
        )
        return self.tape.view(cells, turned, key)

    def _steady(self, written: _Written, read: Projection) -> bool:
        """Whether a part reads at the same place of what it wrote, wherever the part is."""
        low = written.projection.apply_range(written.index).start
        first = read.map.apply(self._part.start)
        for dim in self._cut:
            moved = [int(d == dim) for d in range(self._part.rank)]
            there = written.projection.apply_range(written.index.translate(moved)).start
            at = read.map.apply(self._part.translate(moved).start)
            if [a - b for a, b in zip(at, there, strict=True)] != [
                a - b for a, b in zip(first, low, strict=True)
            ]:
                return False
        return True


def recorded(
    index: Range,
    parts: Sequence[Range],
    inputs: Sequence[SSAValue],
    record: Callable[[Recorder], Slots | None],
    kind: Callable[[Range], Hashable],
    loops: Loops | None = None,
    regions: Regions | None = None,
) -> Tapes | None:
    """Tapes for all parts of an index space; `record` writes one for parts of a `kind`.

    None where they cannot be written.
    """
    cut = [d for d, low in enumerate(index.start) if any(p.start[d] != low for p in parts)]
    numbers: dict[Hashable, int] = {}
    kinds: dict[Range, int] = {}
    found: list[Recorded] = []
    computes = loops is not None and is_available()
    team = None if loops is None else loops.team
    for part in parts:
        within = None if regions is None else regions.kind(part)
        kinds[part] = numbers.setdefault((kind(part), within), len(found))
        if kinds[part] < len(found):
            continue
        recorder = Recorder(
            index, part, cut, inputs, parts, computes=computes, regions=regions, team=team
        )
        slots = record(recorder)
        if slots is None:
            return None
        found.append(Recorded(recorder.tape, tuple(recorder.sources), tuple(slots)))
    return Tapes(tuple(found), kinds, loops)


def output_of(value: SSAValue, projection: Projection, index: Range) -> Output:
    """An output of members, as parts write it."""
    kind = tensor_type(value)
    return Output(kind.box, numpy_dtype(kind.element_type), projection, index)
