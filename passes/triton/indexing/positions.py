"""Where the lanes of a tile are: positions along axes, coordinates, offsets and masks.

A tile axis merges the dimensions that lie on it; its positions count their points in row-major
order, and a coordinate is decoded from them by `//` and `%` only when several dimensions share the
axis. For a fold over 784 of a 64 x 784 tensor, the axes are P (64) and K (784), a frame is
("P", "K"), and the offsets of the tensor in it are `p[:, None] * 784 + k[None, :]`.

Masks stay per axis, so that a load is masked by the axes it moves along and by nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from tapestry.dialects import triton
from tapestry.dialects.triton import shape_of
from tapestry.passes.triton.indexing.linear import Linear
from tapestry.passes.triton.indexing.runs import runs
from tapestry.passes.triton.indexing.spaces import FOLD_AXIS, Access, Dim, Space
from tapestry.passes.triton.tiles.builder import Sizes, TileBuilder
from tapestry.zspace import Range

Frame = tuple[str, ...]
"""The axes of a tile, by dimension."""

Bounds = Mapping[Dim, tuple[SSAValue, SSAValue]]
"""For each cut dimension, where it starts and ends in this launch."""


@dataclass(frozen=True)
class Axis:
    """A tile axis: its dimensions, outermost first, and the block that it is walked by.

    Without a block it is walked point by point, one program each.
    """

    name: str
    dims: tuple[Dim, ...]
    block: str | None

    @property
    def length(self) -> int | None:
        """How many points it has, None when shards cut it."""
        if any(dim.cut for dim in self.dims):
            return None
        return prod(dim.extent for dim in self.dims)

    def is_one_block(self, sizes: Sizes) -> bool:
        """Whether one block of some size has all its points, in all shards."""
        length = self.length
        return self.block is not None and length is not None and length <= sizes[self.block]

    @property
    def hint(self) -> str:
        """What its positions are called: axes of one block have one name."""
        name = self.name if self.block is None else self.block.removeprefix("BLOCK_")
        return name.lower()


class Positions:
    """The positions of one kernel's axes, and what follows from them.

    `place` sets where an axis is; coordinates, offsets and masks of the axis follow.
    """

    def __init__(
        self, tiles: TileBuilder, space: Space, bounds: Bounds, shards: Sequence[Range] = ()
    ) -> None:
        self.tiles = tiles
        self.space = space
        self._bounds = bounds
        self._shards = shards
        self._coordinates: dict[Dim, SSAValue] = {}
        self._masks: dict[str, SSAValue | None] = {}
        self._first: dict[str, SSAValue] = {}
        self._linear: dict[str, Linear] = {}
        self._full: str | None = None
        self._held: Sequence[Access] = ()
        self.compared: set[SSAValue] = set()
        """Masks that compare positions, all of which are in the range of their type."""

    def extent(self, dim: Dim) -> SSAValue:
        """How many points a dimension has."""
        if not dim.cut:
            return self.tiles.position(dim.extent)
        start, end = self._bounds[dim]
        return self.tiles.subtract(end, start)

    def first_of(self, dim: Dim) -> SSAValue:
        """Where a dimension that shards cut starts in this launch."""
        return self._bounds[dim][0]

    def span(self, axis: Axis) -> tuple[SSAValue, SSAValue]:
        """The positions of an axis: from, to. One dimension keeps its own coordinates."""
        if len(axis.dims) == 1 and axis.dims[0].cut:
            return self._bounds[axis.dims[0]]
        return self.tiles.position(0), self.length(axis)

    def length(self, axis: Axis) -> SSAValue:
        """How many points an axis has."""
        constant = prod(dim.extent for dim in axis.dims if not dim.cut)
        cut = [self.extent(dim) for dim in axis.dims if dim.cut]
        if not cut:
            return self.tiles.position(constant)
        length = cut[0]
        for extent in cut[1:]:
            length = self.tiles.times(length, extent)
        return self.tiles.times(length, constant)

    def first(self, axis: Axis) -> SSAValue:
        """Where the block of an axis that was placed starts."""
        return self._first[axis.name]

    def at(self, axis: Axis) -> SSAValue:
        """The positions of the block of an axis that was placed."""
        return self._linear[axis.name].value

    def passed(self, axis: Axis) -> tuple[SSAValue, SSAValue]:
        """How many points of an axis a walk has passed before its block, and with it."""
        tiles = self.tiles
        assert axis.block is not None
        start, end = self.span(axis)
        if axis.length is not None and tiles.holds(axis.is_one_block):
            return tiles.position(0), tiles.position(axis.length)
        before = self._first[axis.name]
        size = tiles.value(triton.BlockSizeOp(axis.block, tiles.index))
        after = tiles.add(before, size)
        if self._masks[axis.name] is not None:
            after = tiles.value(arith.MinSIOp(after, end))
        if start != tiles.position(0):
            before, after = tiles.subtract(before, start), tiles.subtract(after, start)
        if axis.length is not None:
            tiles.bounds[before], tiles.bounds[after] = (0, axis.length - 1), (1, axis.length)
        return before, after

    def base(self, access: Access, frame: Frame) -> SSAValue:
        """The offset of an access from the axes that are not in a frame, and its constant."""
        tiles = self.tiles
        total: SSAValue | None = None
        for axis in dict.fromkeys(dim.axis for dim in self.space.dims if dim.axis not in frame):
            term = self._axis_offset(access, axis, frame)
            if term is not None:
                total = term if total is None else tiles.add(total, term)
        constant = tiles.position(access.constant)
        if total is None:
            return constant
        return tiles.add(total, constant) if access.constant else total

    def place(self, axis: Axis, first: SSAValue, *, walked: bool = False) -> None:
        """Set the axis to the block of positions from `first` on (or to that point alone).

        Where it is `walked`, a loop goes from block to block.
        """
        tiles = self.tiles
        if axis.block is None:
            rest = Linear(tiles, first)
        else:
            lanes = tiles.arange(axis.block, f"{axis.hint}_lanes")
            rest = Linear.of_block(tiles, first, lanes, axis.block, repeats=walked)
            rest.value.name_hint = axis.hint
            if any(dim.cut for dim in axis.dims):
                rest = Linear(tiles, rest.value)
        self._first[axis.name] = first
        self._linear[axis.name] = rest
        self._masks[axis.name] = self._mask(axis, rest.value)
        for number, dim in enumerate(reversed(axis.dims)):
            last = number == len(axis.dims) - 1
            length = self.extent(dim) if dim.cut else dim.extent
            coordinate = rest.value if last else rest.remainder(length)
            if dim.cut and len(axis.dims) > 1:
                coordinate = tiles.add(coordinate, self._bounds[dim][0])
            if len(axis.dims) > 1:
                coordinate.name_hint = dim.name
            self._coordinates[dim] = coordinate
            if not last:
                rest = rest.quotient(length)

    def place_in_run(self, axis: Axis, outer: SSAValue, first: SSAValue) -> None:
        """Set the axis to the block from `first` on of its last dimension, at one point of others.

        `outer` is the position of that point. Lanes beyond the dimension are masked: their
        positions are those of the next point.
        """
        tiles = self.tiles
        assert axis.block is not None
        *others, walked = axis.dims
        lanes = tiles.arange(axis.block, f"{axis.hint}_lanes")
        coordinate = tiles.add(first, lanes)
        coordinate.name_hint = walked.name
        before = tiles.times(outer, walked.extent)
        self._first[axis.name] = tiles.add(before, first)
        self._linear[axis.name] = Linear(tiles, tiles.add(before, coordinate, axis.hint))
        self._coordinates[walked] = coordinate
        self._masks[axis.name] = None
        block = axis.block
        if tiles.holds(lambda sizes: walked.extent % sizes[block] != 0):
            mask = tiles.compare("<", coordinate, tiles.position(walked.extent))
            mask.name_hint = f"{axis.hint}_mask"
            self._masks[axis.name] = mask
        rest = outer
        for dim in reversed(others):
            last = dim is others[0]
            self._coordinates[dim] = rest if last else tiles.remainder(rest, self.extent(dim))
            if not last:
                rest = tiles.quotient(rest, self.extent(dim))

    @contextmanager
    def full(self, axis: Axis, rows: Sequence[Access] | None) -> Generator[None]:
        """While all blocks of an axis are full, and some rows hold in them (None: neither)."""
        if rows is None:
            yield
            return
        before = self._full, self._held
        self._full, self._held = axis.name, rows
        try:
            yield
        finally:
            self._full, self._held = before

    @contextmanager
    def unmasked(self, axes: Sequence[Axis]) -> Generator[None]:
        """While the placed blocks of some axes are known to be full."""
        before = dict(self._masks)
        self._masks.update(dict.fromkeys((axis.name for axis in axes), None))
        try:
            yield
        finally:
            self._masks = before

    def is_masked(self, axis: Axis) -> bool:
        """Whether some block of an axis is not full, in some launch."""
        if axis.block is None:
            return False
        lengths: Sequence[int] = () if axis.length is None else (axis.length,)
        if len(axis.dims) == 1 and axis.dims[0].cut:
            lengths = [end - start for start, end in map(axis.dims[0].bounds, self._shards)]
        block = axis.block

        def some_is_not_full(sizes: Sizes) -> bool:
            return any(length % sizes[block] != 0 or length == 0 for length in lengths)

        return not lengths or self.tiles.holds(some_is_not_full)

    def _mask(self, axis: Axis, position: SSAValue) -> SSAValue | None:
        if axis.name == self._full or not self.is_masked(axis):
            return None
        mask = self._compared("<", position, self.span(axis)[1])
        mask.name_hint = f"{axis.hint}_mask"
        return mask

    def frame_mask(self, frame: Frame, along: Collection[str]) -> SSAValue | None:
        """Which lanes of a frame are points, judged by the axes in `along`; None when all are."""
        mask: SSAValue | None = None
        for place, axis in enumerate(frame):
            part = self._masks[axis] if axis in along else None
            if part is not None:
                part = self.tiles.expand(part, place, len(frame))
            mask = self.tiles.both(mask, part)
        return mask

    def reach(self, dim: Dim, axis: Axis) -> tuple[tuple[SSAValue, int], tuple[SSAValue, int]]:
        """The least and the greatest coordinate of a dimension in this program, of a placed axis.

        Each is a value and how much to take off it.
        """
        tiles = self.tiles
        if axis.block is None:
            at = self._coordinates[dim]
            return (at, 0), (at, 0)
        if len(axis.dims) == 1:
            first = self._first[axis.name]
            size = tiles.once(triton.BlockSizeOp, axis.block, tiles.index)
            return (first, 0), (tiles.add(first, size), 1)
        if dim.cut:
            start, end = self._bounds[dim]
            return (start, 0), (end, 1)
        run = self._run(dim, axis)
        if run is not None:
            return run
        return (tiles.position(0), 0), (tiles.position(dim.extent - 1), 0)

    def _run(
        self, dim: Dim, axis: Axis
    ) -> tuple[tuple[SSAValue, int], tuple[SSAValue, int]] | None:
        """As `reach`, where blocks never end inside a run of a dimension of several on an axis.

        Rows of grouped queries are an axis (group, row): a block has the rows of one group, if
        their number is a multiple of it.
        """
        tiles = self.tiles
        assert axis.block is not None
        block, inner = axis.block, axis.dims[axis.dims.index(dim) + 1 :]
        if any(one.cut for one in axis.dims):
            return None
        step = prod(one.extent for one in inner)

        def ends_inside(sizes: Sizes) -> bool:
            size = sizes[block]
            return step * dim.extent % size != 0 or (step % size != 0 and size % step != 0)

        if tiles.holds(ends_inside):
            return None
        first = self._first[axis.name]
        if step > 1:
            first = tiles.quotient(first, tiles.position(step))
        if dim is not axis.dims[0]:
            first = tiles.remainder(first, tiles.position(dim.extent))
        if tiles.holds(lambda sizes: sizes[block] <= step):
            return (first, 0), (first, 0)
        points = tiles.once(triton.BlockSizeOp, axis.block, tiles.index)
        if step > 1:
            points = tiles.quotient(points, tiles.position(step))
        return (first, 0), (tiles.add(first, points), 1)

    def prepare(self, access: Access, frame: Frame) -> None:
        """Write what offsets and masks need of the axes placed so far, for a loop to find."""
        for place, axis in enumerate(frame):
            if axis in self._masks:
                for form in access.forms:
                    self._axis_offset(form, axis, frame)
                mask = self._masks[axis]
                if mask is not None:
                    self.tiles.expand(mask, place, len(frame))

    def coordinate(self, dim: Dim, frame: Frame, *, by_lanes: bool = False) -> SSAValue:
        """The coordinates of a dimension, shaped for a frame; `by_lanes` those of each lane.

        Where all lanes have the same one it is a number else, of which addresses are made: what a
        loop counts may be a number of Python, on which bodies would compute as Python does.
        """
        value = self._coordinates[dim]
        if dim.axis not in frame:
            return value
        if by_lanes and not shape_of(value) and shape_of(self._linear[dim.axis].value):
            value = self._of_each_lane(dim)
        return self.tiles.expand(value, frame.index(dim.axis), len(frame))

    def _of_each_lane(self, dim: Dim) -> SSAValue:
        tiles, dims = self.tiles, self.space.on(dim.axis)
        at = self._linear[dim.axis].value
        inner = prod(one.extent for one in dims[dims.index(dim) + 1 :])
        if inner > 1:
            at = tiles.quotient(at, tiles.position(inner))
        return at if dim is dims[0] else tiles.remainder(at, tiles.position(dim.extent))

    def offsets(self, access: Access, frame: Frame) -> SSAValue:
        """Where an access reads or writes, over a frame; of size 1 along axes it ignores.

        What is constant is added before what is walked, to what is known outside of a loop.
        """
        tiles = self.tiles
        total: SSAValue | None = None
        axes = [a for a in dict.fromkeys(d.axis for d in self.space.dims) if a not in frame]
        axes += frame
        left = access.constant
        if left:
            axes.sort(key=lambda axis: axis == FOLD_AXIS)
        for axis in axes:
            if axis == FOLD_AXIS and total is not None and left:
                total, left = tiles.add(total, tiles.position(left)), 0
            negative = total is not None and self._is_negative(access, axis)
            term = self._axis_offset(access, axis, frame, -1 if negative else 1)
            if term is None:
                continue
            if total is None:
                total = term
            else:
                total = tiles.subtract(total, term) if negative else tiles.add(total, term)
        if total is None:
            return tiles.position(access.constant)
        if left:
            total = tiles.add(total, tiles.position(left))
        return total

    def inside(self, access: Access, frame: Frame) -> SSAValue | None:
        """Where the guards of an access hold, over a frame; None when it has none."""
        tiles = self.tiles
        mask: SSAValue | None = None
        for guard in access.guards:
            # What is added to a position is taken off its bounds, which are numbers.
            added = guard.form.constant if any(guard.form.coefficients) else 0
            at = self.offsets(replace(guard.form, constant=guard.form.constant - added), frame)
            for sign, bound in ((">=", guard.lower), ("<", guard.upper)):
                if bound is not None:
                    limit = tiles.position(bound - added)
                    mask = tiles.both(mask, self._compared(sign, at, limit))
        if mask is not None:
            mask.name_hint = "inside"
        return mask

    def _compared(self, sign: str, at: SSAValue, bound: SSAValue) -> SSAValue:
        """Where positions are on one side of a bound."""
        found = self.tiles.compare(sign, at, bound)
        self.compared.add(found)
        return found

    def inside_all(self, rows: Sequence[Access], frame: Frame) -> SSAValue | None:
        """Where the guards of several accesses hold, over a frame; None without any."""
        mask: SSAValue | None = None
        for row in rows:
            if row not in self._held:
                mask = self.tiles.both(mask, self.inside(row, frame))
        return mask

    def _is_negative(self, access: Access, axis: str) -> bool:
        """Whether what comes from an axis is only subtracted."""
        pairs = zip(self.space.dims, access.coefficients, strict=True)
        factors = [factor for dim, factor in pairs if dim.axis == axis and factor]
        return bool(factors) and all(factor < 0 for factor in factors)

    def _axis_offset(
        self, access: Access, axis: str, frame: Frame, sign: int = 1
    ) -> SSAValue | None:
        """The part of an offset that comes from one axis, None when there is none."""
        tiles = self.tiles
        total: SSAValue | None = None
        for run, coefficient in runs(self.space, access, axis):
            at = self.coordinate(run[0], frame) if len(run) == 1 else self._joint(run, frame)
            term = tiles.times(at, sign * coefficient)
            total = term if total is None else tiles.add(total, term)
        return total

    def _joint(self, run: Sequence[Dim], frame: Frame) -> SSAValue:
        """The coordinates of neighbouring dimensions of an axis, as those of one dimension."""
        tiles, axis = self.tiles, run[0].axis
        dims = self.space.on(axis)
        outer, inner = dims.index(run[0]), dims[dims.index(run[-1]) + 1 :]
        linear = self._linear[axis]
        if inner:
            linear = linear.quotient(prod(dim.extent for dim in inner))
        at = linear.remainder(prod(dim.extent for dim in run)) if outer else linear.value
        return tiles.expand(at, frame.index(axis), len(frame)) if axis in frame else at
