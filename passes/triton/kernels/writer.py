"""What all kernels are written with: arguments, program ids, loads, bodies, stores.

A `KernelWriter` holds one kernel while it is written. Its arguments are a pointer per tensor, in
the order inputs, extras, outputs, then the bounds of every dimension that shards cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tapestry.algebra.dtypes import body_type
from tapestry.dialects import loom, triton
from tapestry.dialects.triton import GridAxis, KernelOp, PointerType, Schedule
from tapestry.passes.triton.indexing.grids import place_programs
from tapestry.passes.triton.indexing.positions import Axis, Frame, Positions
from tapestry.passes.triton.indexing.spaces import (
    Access,
    Dim,
    Guard,
    Space,
    clipped_access,
    domain_accesses,
    linear_access,
    make_space,
    needs_64_bits,
)
from tapestry.passes.triton.indexing.walks import Walks
from tapestry.passes.triton.kernels.descriptors import Descriptors
from tapestry.passes.triton.kernels.mapfold import MapFold, Tensor
from tapestry.passes.triton.kernels.ports import Port, write_read
from tapestry.passes.triton.rewrites.carried import carry_what_is_needed
from tapestry.passes.triton.rewrites.choices import choose_once
from tapestry.passes.triton.rewrites.early import describe_early
from tapestry.passes.triton.rewrites.not_a_number import use_what_was_computed
from tapestry.passes.triton.tiles.bodies import Values, write_body
from tapestry.passes.triton.tiles.builder import Answers, TileBuilder, number, remove_unused
from tapestry.passes.triton.tiles.narrow import shifted

_AHEAD = "ahead"
"""What is remembered of cells that were loaded before they are needed."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A written kernel, its grid, and the dimensions whose bounds a launch gives, in order.

    `tensors` has the one that each of its pointers is of, `places` where that stands among all that
    the kernel's map-fold reads and writes. `answers` are what the sizes of blocks decided of it.
    """

    op: KernelOp
    grid: tuple[GridAxis, ...]
    cut: tuple[Dim, ...]
    tensors: tuple[Tensor, ...]
    places: tuple[int, ...]
    answers: Answers


def space_of(
    fold: MapFold,
    axes: Sequence[str],
    walked: Sequence[str],
    order: Sequence[int] | None = None,
) -> Space:
    """The space of a map-fold whose index dimension d lies on tile axis `axes[d]`.

    Each axis in `walked` gets at least one dimension, and walks its own in the given order.
    """
    rank = fold.index.rank
    every = tuple(range(rank))

    def accesses(tensors: Sequence[Tensor], dims: Sequence[int]) -> list[Access]:
        return [
            linear_access(t.projection, t.box, dims, rank)
            if t.fill is None
            else clipped_access(t.projection, t.box, dims, fold.index)
            for t in tensors
        ]

    outs = accesses(fold.outs, fold.kept_dims)
    return make_space(
        fold.index,
        axes,
        walked,
        fold.cut,
        accesses(fold.ins, every),
        accesses(fold.extras, fold.kept_dims),
        [_written_once(fold, t, access) for t, access in zip(fold.outs, outs, strict=True)],
        fold.coordinates,
        domain_accesses(fold.inside),
        order,
    )


def _written_once(fold: MapFold, tensor: Tensor, access: Access) -> Access:
    """An output's access, with only the first point along the dimensions that it lacks."""
    guards: list[Guard] = []
    for axis in tensor.repeated:
        dim = fold.kept_dims[axis]
        form = Access(tuple(int(d == dim) for d in range(fold.index.rank)), -fold.index.start[dim])
        guards.append(Guard(dim, form, None, 1))
    return replace(access, guards=(*access.guards, *guards))


def _fill_of(tensor: Tensor) -> FloatAttr | IntegerAttr:
    """What a load gives outside a tensor: zero, unless the read says what (never complex here)."""
    match tensor.fill:
        case FloatAttr() | IntegerAttr() as fill:
            return fill
        case _:
            return number(0, body_type(tensor.element))


class KernelWriter(Walks):
    """Writes one kernel of a map-fold; `grid` lists the axes that programs are spread over."""

    def __init__(
        self,
        fold: MapFold,
        space: Space,
        axes: Sequence[Axis],
        schedule: Schedule,
        grid: Sequence[str],
    ) -> None:
        index = i64 if needs_64_bits(space, fold.index) else i32
        self.fold = fold
        self._body = Block()
        tensors = (*fold.ins, *fold.extras, *fold.outs)
        accesses = (*space.ins, *space.extras, *space.outs)
        pointers: dict[int, SSAValue] = {}
        read = len(fold.buffers)
        buffers = [*fold.buffers, *range(-len(tensors), -read)]
        self._pointed: list[tuple[int, Tensor]] = []
        for place, (t, buffer) in enumerate(zip(tensors, buffers, strict=True)):
            if buffer not in pointers:
                pointers[buffer] = self._argument(PointerType(t.element), f"{t.name}_ptr")
                self._pointed.append((place, t))
        ports = [
            Port(
                t.name,
                pointers[buffer],
                body_type(t.element),
                access,
                _fill_of(t),
                t.box.shape,
                t.projection.shape,
            )
            for t, access, buffer in zip(tensors, accesses, buffers, strict=True)
        ]
        first, second = len(fold.ins), len(fold.ins) + len(fold.extras)
        self.ins, self.extras, self.outs = ports[:first], ports[first:second], ports[second:]
        self._blocks: dict[SSAValue, Port] = {}
        bounds = {
            dim: (
                self._argument(index, f"{dim.name}_start"),
                self._argument(index, f"{dim.name}_end"),
            )
            for dim in space.cut_dims
        }
        tiles, named = TileBuilder(self._body, schedule.blocks, index), {a.name: a for a in axes}
        positions = Positions(tiles, space, bounds, fold.shards)
        super().__init__(tiles, positions, space, named, [named[name] for name in grid], schedule)
        self._descriptors: Descriptors | None = None
        if schedule.loads == "descriptor":
            self._descriptors = Descriptors(self.tiles, self.positions, space, named)
        self._persistent, self.part = place_programs(tiles, positions, schedule, self._grid)

    def _argument(self, kind: Attribute, name: str) -> SSAValue:
        argument = self._body.insert_arg(kind, len(self._body.args))
        argument.name_hint = name
        return argument

    def load(self, port: Port, frame: Frame, hint: str | None = None) -> SSAValue:
        """The cells of a tensor over a frame; of size 1 along axes it does not move along.

        What was loaded with the axes exchanged is transposed.
        """
        if any(guard.fails for guard in port.access.guards):
            return self.tiles.once(arith.ConstantOp, port.fill)
        if (ahead := self.tiles.recall((_AHEAD, port, frame))) is not None:
            return ahead
        if self._descriptors is not None:
            found = self._descriptors.load(port, frame)
            if found is not None:
                return found
        return self._load_cells(port, frame, hint)

    def load_ahead(
        self, ports: Sequence[Port], arguments: Sequence[SSAValue], frame: Frame
    ) -> None:
        """Load the cells that arguments stand for, to be used where these are loaded again.

        Pointers bring them to registers while nothing waits for them yet. Blocks of which a body
        reads some cells are left alone.
        """
        for port, argument in zip(ports, arguments, strict=True):
            fails = any(guard.fails for guard in port.access.guards)
            if not fails and not isinstance(argument.type, loom.BlockType):
                loaded = self._load_cells(port, frame, argument.name_hint or port.name)
                self.tiles.remember((_AHEAD, port, frame), loaded)

    def _load_cells(self, port: Port, frame: Frame, hint: str | None) -> SSAValue:
        """The cells of a tensor over a frame, by a pointer to each."""
        cells, blocks = self._cells(port, frame), self.blocks(frame)
        turned = None if cells is None else self.tiles.recall((*cells, blocks[::-1]))
        if turned is not None:
            return self.tiles.once(triton.TransposeOp, turned)
        offsets = self.positions.offsets(port.access, frame)
        points = self.positions.frame_mask(frame, self.space.along(port.access))
        mask = self.tiles.both(points, self.positions.inside(port.access, frame))
        if mask is not None:
            offsets, mask = self.tiles.pair(offsets, mask)
        loaded = self.tiles.load(port.pointer, offsets, mask, port.fill)
        loaded.name_hint = hint
        if cells is not None:
            self.tiles.remember((*cells, blocks), loaded)
        return loaded

    def _cells(self, port: Port, frame: Frame) -> tuple[object, ...] | None:
        """Which cells a load over a frame of two axes gives, apart from how they are turned.

        Axes of one block are walked together.
        """
        blocks, access = self.blocks(frame), port.access
        if len(set(blocks)) != 2 or access.guards or not {*frame} <= self.space.along(access):
            return None
        factors: dict[tuple[str, int], int] = {}
        for axis in self.axes.values():
            for place, dim in enumerate(axis.dims):
                factor = access.coefficients[self.space.dims.index(dim)]
                if factor:
                    factors[axis.block or axis.name, place] = factor
        return port.pointer, access.constant, port.fill, frozenset(factors.items())

    def load_all(
        self, ports: Sequence[Port], arguments: Sequence[SSAValue], frame: Frame
    ) -> Values:
        """The cells that the arguments of a body stand for, over a frame; blocks are remembered."""
        loaded: Values = {}
        for port, argument in zip(ports, arguments, strict=True):
            if isinstance(argument.type, loom.BlockType):
                self._blocks[argument] = port
            else:
                loaded[argument] = self.load(port, frame, argument.name_hint or port.name)
        return loaded

    def reader(
        self, frame: Frame, domain: Sequence[Access] | None = None, around: Frame | None = None
    ) -> Callable[[loom.ReadOp, Values], SSAValue]:
        """What `loom.read` is over a frame; `domain` says which points need what inputs give.

        `around` has the axes of the domain as well, where it has more than the frame.
        """
        judged = self.space.domain if domain is None else domain

        def read(op: loom.ReadOp, values: Values) -> SSAValue:
            indices = [values[index] for index in op.indices]
            otherwise = None if op.otherwise is None else values[op.otherwise]
            port = self._blocks[op.block]
            # Points outside the domain are not wrapped; what they fold to is unwrapped anyway.
            needed = judged if port in self.ins else ()
            wide = frame if around is None else around
            known = (self.tiles, self.positions, port, op, indices, otherwise)
            return write_read(*known, frame, needed, wide)

        return read

    def store(self, port: Port, frame: Frame, value: SSAValue, atomic: str | None = None) -> None:
        """Write a value over a frame to a tensor, or merge it with what is there."""
        tiles, blocks = self.tiles, self.blocks(frame)
        assert isinstance(port.pointer.type, PointerType)
        cells = tiles.bits(tiles.spread(value, blocks), port.pointer.type.element_type)
        moves = None if atomic is not None else self._descriptors
        if moves is not None and moves.store(port, frame, cells):
            return
        offsets = tiles.spread(self.positions.offsets(port.access, frame), blocks)
        mask = self.positions.frame_mask(frame, frame)
        mask = tiles.both(mask, self.positions.inside(port.access, frame))
        if mask is not None:
            mask = tiles.spread(mask, blocks)
        tiles.append(triton.StoreOp(cells, port.pointer, offsets, mask, atomic))

    def blocks(self, frame: Frame) -> tuple[str, ...]:
        """The names of the blocks along a frame."""
        names = [self.axes[axis].block for axis in frame]
        return tuple(name for name in names if name is not None)

    def coordinate(self, frame: Frame) -> Callable[[int], SSAValue]:
        """What `loom.index` is over a frame."""

        def along(index_dim: int) -> SSAValue:
            dim = self.space.dim_of(index_dim)
            if dim is None:
                return self.tiles.constant(self.space.constants[index_dim], i64)
            at = self.positions.coordinate(dim, frame, by_lanes=True)
            self.tiles.bounds[at] = 0, dim.extent - 1
            return shifted(self.tiles, self.tiles.cast(at, i64), dim.origin)

        return along

    def evaluate(self, ops: Iterable[Operation], values: Values, frame: Frame) -> None:
        """Write the tile operations of `ops` over a frame; `values` holds and gets their values."""
        write_body(self.tiles, ops, values, self.coordinate(frame), self.reader(frame))

    def finish(self, name: str, origins: Sequence[str]) -> Kernel:
        """The kernel that was written."""
        if self._persistent is not None:
            self._persistent.close()
        op = KernelOp(name, self._body, self.schedule, origins)
        choose_once(op)
        describe_early(op)
        remove_unused(self._body)
        carry_what_is_needed(op)
        use_what_was_computed(op)
        parts = self.schedule.parts
        grid = tuple(GridAxis(_extents(axis), axis.block) for axis in self._grid)
        grid = (GridAxis((parts,)), *grid) if parts > 1 else grid
        tensors = tuple(tensor for _, tensor in self._pointed)
        places = tuple(place for place, _ in self._pointed)
        return Kernel(op, grid, self.space.cut_dims, tensors, places, self.tiles.answers)


def _extents(axis: Axis) -> tuple[int | str, ...]:
    """The extents of an axis: cut ones by name, the others in one number."""
    cut: list[int | str] = [dim.name for dim in axis.dims if dim.cut]
    constant = 1
    for dim in axis.dims:
        if not dim.cut:
            constant *= dim.extent
    return (*cut, constant) if constant != 1 or not cut else tuple(cut)
