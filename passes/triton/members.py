"""What members of a group compute, written as tiles when it is asked for.

    members.value(Inner(0, 0), ("M", "K"))      # the scores of the block that is walked now

A value is evaluated over a *frame* of tile axes. What a body reads is loaded over it, or, where it
is an inner tensor, is the value of another member, written over the axes that it varies along. All
that was written before and can be seen is shared (`TileBuilder.value`), so asking twice is free;
what does not vary along a loop moves out of it (`TileBuilder.hoist`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Block, SSAValue

from tapestry.algebra.bodies import needed_operations
from tapestry.dialects import loom
from tapestry.dialects.triton import element_of
from tapestry.passes.triton.bodies import Coordinate, Values, write_body, yielded
from tapestry.passes.triton.groups import Group, Inner, NotOneKernelError
from tapestry.passes.triton.positions import Frame
from tapestry.passes.triton.roles import Roles
from tapestry.passes.triton.spaces import Access
from tapestry.passes.triton.steps import Options
from tapestry.passes.triton.tiles import TileBuilder
from tapestry.passes.triton.writer import KernelWriter

At = Callable[[Frame], SSAValue]
"""A value over a frame."""

Given = dict[SSAValue, At]
"""The arguments of a body."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A tile, and the axes of its dimensions."""

    value: SSAValue
    frame: Frame

    def over(self, tiles: TileBuilder, frame: Frame) -> SSAValue:
        """The tile as one of more axes, of size 1 along those."""
        if self.frame == frame or not self.frame:
            return self.value
        if len(self.frame) == 1 and self.frame[0] in frame:
            return tiles.expand(self.value, frame.index(self.frame[0]), len(frame))
        raise NotOneKernelError(f"a tile along {self.frame} is needed along {frame}")

    def at(self, tiles: TileBuilder) -> At:
        """The same as what is given to a body."""
        return lambda frame: self.over(tiles, frame)


class Members:
    """The values of a group's members in one kernel."""

    def __init__(self, group: Group, roles: Roles, writer: KernelWriter, options: Options) -> None:
        self.group, self.roles, self.writer, self.options = group, roles, writer, options
        self.tiles = writer.tiles
        self.states: dict[int, list[Placed]] = {}
        """The state of each fold that is finished where something is written now."""
        self.fold_inner: Callable[[int], None] | None = None

    def domain(self, member: int) -> Sequence[Access]:
        """The rows of a member's domain."""
        return self.writer.space.domain if self.group.members[member].fold.inside else ()

    def inputs(self, member: int, body: Block, arguments: Sequence[SSAValue]) -> Given:
        """What wrap's arguments are, for a body that takes them first."""
        found: Given = {}
        for place, argument in enumerate(arguments):
            found[argument] = self._read(member, place, argument)
        return found

    def _read(self, member: int, place: int, argument: SSAValue) -> At:
        source = self.group.members[member].sources[place]
        if isinstance(source, Inner):
            return lambda frame: self.value(source, frame)
        port = self.writer.ins[source]

        def load(frame: Frame) -> SSAValue:
            return self.writer.load(port, frame, argument.name_hint or port.name)

        return load

    def evaluate(
        self, member: int, body: Block, wanted: Sequence[SSAValue], given: Given, frame: Frame
    ) -> list[SSAValue]:
        """Values of a body over a frame; no more of it is written than they need."""
        needed = needed_operations(wanted)
        used = {operand for op in needed for operand in op.operands} | set(wanted)
        values: Values = {}
        for argument in body.args:
            if argument not in used:
                continue
            if isinstance(argument.type, loom.BlockType):
                source = self.group.members[member].sources[argument.index]
                assert isinstance(source, int)
                self.writer.load_all([self.writer.ins[source]], [argument], frame)
            else:
                values[argument] = given[argument](frame)
        ops = [op for op in body.ops if op in needed]
        read = self.writer.reader(frame, self.domain(member))
        write_body(self.tiles, ops, values, self._coordinate(member, frame), read)
        return [values[value] for value in wanted]

    def _coordinate(self, member: int, frame: Frame) -> Coordinate:
        """What `loom.index` is in a member's body."""
        along, place = self.writer.coordinate(frame), self.group.members[member].place

        def coordinate(dim: int) -> SSAValue:
            at = along(self.group.members[member].dims[dim])
            shift = place.offset[dim]
            return (
                at if not shift else self.tiles.add(at, self.tiles.constant(shift, element_of(at)))
            )

        return coordinate

    def value(self, inner: Inner, frame: Frame) -> SSAValue:
        """An inner tensor at the tile that is walked now, over a frame."""
        member = self.group.members[inner.member]
        projection = member.written(inner.out)
        dims = frozenset(dim for terms in projection.map.terms for _, dim in terms)
        own = self.roles.frame(dims)
        if not set(own) <= set(frame):
            raise NotOneKernelError(f"@{member.fold.name} is needed along other axes than its own")
        if len(own) > 2:
            raise NotOneKernelError(f"@{member.fold.name} varies along {len(own)} tile axes")
        return Placed(self._output(inner, own), own).over(self.tiles, frame)

    def _output(self, inner: Inner, frame: Frame) -> SSAValue:
        """An output of a member over a frame that has all axes it varies along."""
        fold = self.group.members[inner.member].fold
        if fold.monoid is None:
            given = self.inputs(inner.member, fold.wrap, fold.wrap.args)
            wanted = [yielded(fold.wrap)[inner.out]]
            return self.evaluate(inner.member, fold.wrap, wanted, given, frame)[0]
        return self.finished(inner.member, frame)[inner.out]

    def finished(self, member: int, frame: Frame) -> list[SSAValue]:
        """What a fold writes, over a frame, once it is finished."""
        fold = self.group.members[member].fold
        if member not in self.states:
            assert self.fold_inner is not None
            self.fold_inner(member)
        placed = self.states[member]
        assert fold.monoid is not None
        kinds = fold.monoid.state
        parts = [
            self.tiles.cast(part.over(self.tiles, frame), kind)
            for part, kind in zip(placed, kinds, strict=True)
            if set(part.frame) <= set(frame)
        ]
        body = fold.unwrap
        if body is None:
            return parts
        given: Given = {}
        for argument, part, kind in zip(body.args, placed, kinds, strict=False):
            given[argument] = self._part(part, kind)
        inputs = len(fold.ins)
        for place, argument in enumerate(body.args[len(placed) :]):
            given[argument] = self._read(member, inputs + place, argument)
        return self.evaluate(member, body, list(yielded(body)), given, frame)

    def _part(self, part: Placed, kind: Attribute) -> At:
        return lambda frame: self.tiles.cast(part.over(self.tiles, frame), kind)

    def mask(self, member: int, axis: str, frame: Frame) -> SSAValue | None:
        """Which points of a tile a fold along an axis folds: those that are, inside its domain."""
        space, positions = self.writer.space, self.writer.positions
        rows = [row for row in self.domain(member) if space.along(row) <= {*frame, "B"}]
        lanes = positions.frame_mask(frame, (axis,))
        return self.tiles.both(lanes, positions.inside_all(rows, frame))
