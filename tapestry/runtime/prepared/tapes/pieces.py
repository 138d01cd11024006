"""Reads at places that a body computes of coordinates alone, affine in pieces: slices there.

    found = placed_reads(members, inputs, index)        # of `x[(i + 59) % 64]`, i in 0 .. 63
    (axis,) = found[read].axes
    axis.starts, axis.rows                              # (0, 5), ((1, 59), (1, -5))

A tensor that is rolled, or has its mirror image around it, is read at such places. All of them are
known before anything runs: they are computed for each coordinate, once. So where parts are cut
between pieces, a part reads a slice, and gathers nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import BlockArgument, Operation, SSAValue

from tapestry.algebra.bodies import needed_operations
from tapestry.dialects import loom
from tapestry.dialects._loom_fused import member_reads
from tapestry.dialects._loom_reads import Read
from tapestry.runtime.prepared.bodies import array_function
from tapestry.zspace import AffineMap, Projection, Range

_MOST = 4
"""Pieces along a dimension: the middle of a reflected tensor, its ends, and one more."""

_LONGEST = 1 << 20
"""Coordinates of which places are computed."""


@dataclass(frozen=True)
class Axis:
    """Along a tensor's dimension `row`, the place on pieces of a group's dimension `dim`.

    On the piece that begins at a start, up to the next, it is `factor * coordinate + offset`.
    """

    row: int
    dim: int
    starts: tuple[int, ...]
    rows: tuple[tuple[int, int], ...]

    def piece(self, start: int) -> int:
        """The number of the piece that has a coordinate."""
        return sum(first <= start for first in self.starts) - 1


@dataclass(frozen=True)
class PlacedRead:
    """What is read of a block, from a group's index space, and the pieces along dimensions of it.

    Dimensions that have no axis are read at their first place.
    """

    read: Read
    axes: tuple[Axis, ...]

    def pieces(self, part: Range) -> tuple[int, ...]:
        """The numbers of the pieces that a part lies in, which is cut between pieces."""
        return tuple(axis.piece(part.start[axis.dim]) for axis in self.axes)

    def within(self, part: Range, index: Range) -> tuple[Projection, Range]:
        """The cell that each point reads of the box of an index space that a part lies in."""
        mapping = self.read.projection.map
        matrix, offset = [list(row) for row in mapping.matrix], list(mapping.offset)
        sides = list(index.sides)
        for axis, piece in zip(self.axes, self.pieces(part), strict=True):
            factor, first = axis.rows[piece]
            matrix[axis.row][axis.dim] += factor
            offset[axis.row] += first
            low, high = sides[axis.dim]
            ends = (*axis.starts[1:], high)
            sides[axis.dim] = max(low, axis.starts[piece]), min(high, ends[piece])
        projection = Projection.of(matrix, offset=offset, inputs=part.rank)
        return projection, index.with_sides(dict(enumerate(sides)))


def placed_reads(
    members: Sequence[tuple[loom.OperationOp, AffineMap]],
    inputs: Container[SSAValue],
    index: Range,
) -> dict[loom.ReadOp, PlacedRead]:
    """The reads of members' blocks, of `inputs`, whose places are known and inside."""
    found: dict[loom.ReadOp, PlacedRead] = {}
    for member, place in members:
        own = [op for op in member.wrap_block.ops if isinstance(op, loom.ReadOp)]
        if not own or member.inside is not None:
            continue
        reads = member_reads(member, place)
        for op in own:
            argument = op.block
            if not isinstance(argument, BlockArgument) or argument.owner is not member.wrap_block:
                continue
            read = reads[argument.index]
            if read.value not in inputs or read.fill is not None or op.otherwise is not None:
                continue
            axes = _axes(op, read.projection, place, index)
            if axes is not None:
                found[op] = PlacedRead(read, axes)
    return found


def replaced_reads(placed: Mapping[loom.ReadOp, PlacedRead]) -> Iterator[Read]:
    """What is read by slices alone: blocks of which no other place is asked for.

    A block of one cell is read as cells are.
    """
    for one in placed.values():
        if one.read.projection.is_unit:
            continue
        alike = [op for op, other in placed.items() if other.read == one.read]
        blocks = {op.block for op in alike}
        if all(use.operation in placed for block in blocks for use in block.uses):
            yield one.read


def _axes(
    op: loom.ReadOp, projection: Projection, place: AffineMap, index: Range
) -> tuple[Axis, ...] | None:
    """The pieces of each place that varies; None where one has too many, or is not known."""
    axes: list[Axis] = []
    for row, (value, extent) in enumerate(zip(op.indices, projection.shape, strict=True)):
        known = _places(value, place, index)
        if known is None:
            return None
        dim, places = known
        if int(places.min()) < 0 or int(places.max()) >= extent:
            return None
        low = 0 if dim is None else index.start[dim]
        runs = list(islice(_runs(places, low), _MOST + 1))
        if len(runs) > _MOST:
            return None
        starts = (index.start[0],) if dim is None else tuple(start for start, _, _ in runs)
        rows = tuple((factor, offset) for _, factor, offset in runs)
        axes.append(Axis(row, dim or 0, starts, rows))
    return tuple(axes)


def _places(
    value: SSAValue, place: AffineMap, index: Range
) -> tuple[int | None, NDArray[np.int64]] | None:
    """A place at each coordinate of the one dimension of the group that it is computed of."""
    needed = needed_operations([value])
    dims = {op.dimension for op in needed if isinstance(op, loom.IndexOp)}
    if len(dims) > 1 or isinstance(value, BlockArgument):
        return None
    dim, coordinates = None, np.zeros(1, np.int64)
    if dims:
        (own,) = dims
        (dim,) = (d for d, factor in enumerate(place.matrix[own]) if factor)
        if index.shape[dim] > _LONGEST:
            return None
        coordinates = np.arange(index.start[dim], index.end[dim]) + place.offset[own]
    with np.errstate(all="ignore"):  # what wraps around, or divides by zero, does so silently
        made = _evaluated(value, needed, coordinates, index)
    if made is None:
        return None
    return dim, np.broadcast_to(np.asarray(made, np.int64), coordinates.shape)


def _evaluated(
    value: SSAValue, needed: set[Operation], coordinates: NDArray[np.int64], index: Range
) -> NDArray[np.int64] | None:
    values: dict[SSAValue, NDArray[np.int64]] = {}
    block = value.owner.parent if isinstance(value.owner, Operation) else None
    for op in block.ops if block is not None else ():
        if op not in needed:
            continue
        if any(isinstance(operand, BlockArgument) for operand in op.operands):
            return None
        (result,) = op.results
        if isinstance(op, loom.IndexOp):
            values[result] = coordinates
            continue
        function = array_function(op, index, ())
        if function is None or isinstance(op, loom.ReadOp | loom.RandomOp):
            return None
        values[result] = function(*[values[operand] for operand in op.operands])
    return values.get(value)


def _runs(places: NDArray[np.int64], low: int) -> Iterator[tuple[int, int, int]]:
    """Where pieces begin, the factor and the offset: as long ones as there are, in order.

    Of two that meet at a place of both, as where an array is mirrored, the longer one has it.
    """
    steps, at, count = np.diff(places), 0, len(places)
    while at < count:
        length = _length(steps, at)
        step, after = int(steps[at]) if length > 1 else 0, at + length
        if (
            1 < length < _length(steps, after)
            and after < count
            and steps[after - 1] == steps[after]
        ):
            length -= 1
        yield low + at, step, int(places[at]) - step * (low + at)
        at += length


def _length(steps: NDArray[np.int64], at: int) -> int:
    """How many places from one on are the same step apart."""
    if at >= len(steps):
        return 1
    others = np.flatnonzero(steps[at:] != steps[at])
    return int(others[0]) + 1 if len(others) else len(steps) - at + 1
