"""What members of a group compute, written as tiles when it is asked for.

    members.value(Inner(0, 0))      # the scores of the block that is walked now: a tile M x K

A value is a tile over the axes that it varies along, which the tiles that it is computed of say:
rows stay rows until they meet columns. What a body reads is loaded, or, where it is an inner
tensor, is the value of another member. All that was written before and can be seen is shared
(`TileBuilder.value`), so asking twice is free; what does not vary along a loop moves out of it
(`TileBuilder.hoist`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.bodies import needed_operations
from tapestry.dialects import loom
from tapestry.passes.triton.groups.group import Group, Inner, NotOneKernelError
from tapestry.passes.triton.groups.roles import Roles
from tapestry.passes.triton.indexing.positions import Frame
from tapestry.passes.triton.indexing.spaces import Access
from tapestry.passes.triton.kernels.ports import Port
from tapestry.passes.triton.kernels.steps import Options
from tapestry.passes.triton.kernels.writer import KernelWriter
from tapestry.passes.triton.tiles.builder import TileBuilder
from tapestry.passes.triton.tiles.narrow import shifted
from tapestry.passes.triton.tiles.scalars import write_scalar


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


Given = dict[SSAValue, Callable[[], Placed]]
"""What the arguments of a body are, written when they are needed."""


class Members:
    """The values of a group's members in one kernel."""

    def __init__(self, group: Group, roles: Roles, writer: KernelWriter, options: Options) -> None:
        self.group, self.roles, self.writer, self.options = group, roles, writer, options
        self.tiles = writer.tiles
        self.states: dict[int, list[Placed]] = {}
        """The state of each fold that is finished where something is written now."""
        self.fold_inner: Callable[[int], None] | None = None
        self._walked: set[str] = {"B", "M", *roles.columns}
        self._known: dict[Inner, Placed] | None = None
        """What was asked for on the way to what is asked for now, and can be seen."""

    @contextmanager
    def walking(self, axis: str, *, looped: bool) -> Generator[None]:
        """While a block of an axis is walked: values along it can be written.

        What is folded in one step of a loop is not known outside of it.
        """
        before, known = dict(self.states), self._known
        self._walked.add(axis)
        self._known = None
        try:
            yield
        finally:
            self._walked.discard(axis)
            self._known = known
            if looped:
                self.states = before

    def _require(self, axes: Iterable[str]) -> None:
        for axis in axes:
            if axis not in self._walked:
                raise NotOneKernelError(
                    "a member needs cells along a dimension that another one folds for itself"
                )

    def domain(self, member: int) -> Sequence[Access]:
        """The rows of a member's domain."""
        first = sum(map(len, self.group.rows[:member]))
        return self.writer.space.domain[first : first + len(self.group.rows[member])]

    def inputs(self, member: int, arguments: Sequence[SSAValue], first: int = 0) -> Given:
        """What arguments are that take what a member reads, from its input `first` on."""
        found: Given = {}
        for place, argument in enumerate(arguments, first):
            found[argument] = self._read(member, place, argument)
        return found

    def _read(self, member: int, place: int, argument: SSAValue) -> Callable[[], Placed]:
        source = self.group.members[member].sources[place]
        if isinstance(source, Inner):
            return lambda: self.value(source)
        port = self.writer.ins[source]

        def load() -> Placed:
            self._require(self.writer.space.along(port.access))
            frame = self._along(port)
            return Placed(self.writer.load(port, frame, argument.name_hint or port.name), frame)

        return load

    def _along(self, port: Port) -> Frame:
        """The axes that an access moves along."""
        return self.joint(self.writer.space.along(port.access))

    def joint(self, *axes: Frame | frozenset[str]) -> Frame:
        """The frame of some axes; NotOneKernelError where they are more than two."""
        found = frozenset[str]().union(*axes) - self.roles.scalar
        if len(found) > 2:
            raise NotOneKernelError(f"a value varies along {len(found)} tile axes")
        return tuple(axis for axis in self.roles.order if axis in found)

    def evaluate(
        self, member: int, body: Block, wanted: Sequence[SSAValue], given: Given
    ) -> list[Placed]:
        """Values of a body; no more of it is written than they need."""
        needed = needed_operations(wanted)
        used = {operand for op in needed for operand in op.operands} | set(wanted)
        values: dict[SSAValue, Placed] = {}
        for argument in body.args:
            if argument in used and not isinstance(argument.type, loom.BlockType):
                values[argument] = given[argument]()
        for op in body.ops:
            if op in needed:
                made = self._operation(member, op, values)
                if made.value.name_hint is None:
                    made.value.name_hint = op.results[0].name_hint
                values[op.results[0]] = made
        return [values[value] for value in wanted]

    def _operation(self, member: int, op: Operation, values: dict[SSAValue, Placed]) -> Placed:
        """The tile that a scalar operation of a member's body makes."""
        if isinstance(op, loom.IndexOp):
            return self._coordinate(member, op.dimension)
        if isinstance(op, loom.ReadOp):
            return self._block_read(member, op, values)
        operands = [values[operand] for operand in op.operands]
        frame = self.joint(*(operand.frame for operand in operands))
        tiles = [operand.over(self.tiles, frame) for operand in operands]
        return Placed(write_scalar(self.tiles, op, tiles), frame)

    def _coordinate(self, member: int, dim: int) -> Placed:
        """What `loom.index` is in a member's body."""
        group_dim = self.group.members[member].dims[dim]
        frame = tuple(a for a in self.roles.frame(frozenset((group_dim,))) if a in self.roles.order)
        if self.group.index.shape[group_dim] > 1:
            self._require((self.roles.axes[group_dim],))
        at = self.writer.coordinate(frame)(group_dim)
        shift = self.group.members[member].place.offset[dim]
        return Placed(shifted(self.tiles, at, shift), frame)

    def _block_read(self, member: int, op: loom.ReadOp, values: dict[SSAValue, Placed]) -> Placed:
        """What `loom.read` is: the block's port is that of the argument's place."""
        argument = op.block
        owner = self.group.members[member]
        body = argument.owner
        assert isinstance(body, Block)
        place = body.args.index(argument)
        if body is owner.fold.unwrap:
            assert owner.fold.monoid is not None
            place += len(owner.fold.ins) - len(owner.fold.monoid.state)
        source = owner.sources[place]
        assert isinstance(source, int)
        port = self.writer.ins[source]
        self._require(self.writer.space.along(port.access))
        operands = {o: values[o] for o in op.operands if o is not argument}
        frame = self.joint(self._along(port), *(placed.frame for placed in operands.values()))
        self.writer.load_all([port], [argument], frame)
        known = {o: placed.over(self.tiles, frame) for o, placed in operands.items()}
        domain = self.domain(member) if body is not owner.fold.unwrap else ()
        needed = domain if op.otherwise is None else ()
        around = self.joint(frame, *map(self.writer.space.along, needed))
        return Placed(self.writer.reader(frame, domain, around)(op, known), frame)

    def value(self, inner: Inner) -> Placed:
        """An inner tensor at the tile that is walked now.

        One that several others on the way to a value read is asked for once: of a long chain in
        which each reads the one before twice, there are as many ways as powers of two.
        """
        if self._known is None:
            self._known = {}
            try:
                return self._value(inner)
            finally:
                self._known = None
        if inner not in self._known:
            made = self._value(inner)
            self._known[inner] = made
        return self._known[inner]

    def _value(self, inner: Inner) -> Placed:
        fold = self.group.members[inner.member].fold
        if fold.monoid is None:
            given = self.inputs(inner.member, fold.wrap.args)
            wanted = [loom.yielded(fold.wrap)[inner.out]]
            return self.evaluate(inner.member, fold.wrap, wanted, given)[0]
        return self._finished(inner.member, inner.out)

    def _finished(self, member: int, out: int) -> Placed:
        """What a fold writes, once it is finished."""
        fold = self.group.members[member].fold
        if member not in self.states:
            assert self.fold_inner is not None
            self.fold_inner(member)
        assert fold.monoid is not None
        parts = [
            Placed(self.tiles.cast(part.value, kind), part.frame)
            for part, kind in zip(self.states[member], fold.monoid.state, strict=True)
        ]
        body = fold.unwrap
        if body is None:
            return parts[out]
        given = self.inputs(member, body.args[len(parts) :], len(fold.ins))
        for argument, part in zip(body.args, parts, strict=False):
            given[argument] = lambda part=part: part
        return self.evaluate(member, body, [loom.yielded(body)[out]], given)[0]

    def mask(self, member: int, axis: str, frame: Frame) -> SSAValue | None:
        """Which points of a tile a fold along an axis folds: those that are, inside its domain."""
        space, positions = self.writer.space, self.writer.positions
        within = {*frame, *self.roles.scalar}
        rows = [row for row in self.domain(member) if space.along(row) <= within]
        lanes = positions.frame_mask(frame, (axis,))
        return self.tiles.both(lanes, positions.inside_all(rows, frame))
