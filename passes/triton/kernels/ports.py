"""The tensors of a kernel: cells loaded where a point selects one, or read from the box it selects.

    %v = loom.read %rows[%id, %zero] else %nothing : f32

becomes a load at `first cell of the box + id * row length`, masked to the lanes that are points
and whose index is inside the box. Without `else`, the other lanes that are points stop the run, as
far as they are inside the operation's domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i1, i64
from xdsl.ir import Attribute, SSAValue

from tapestry.dialects import loom, triton
from tapestry.dialects.triton import shape_of
from tapestry.locations import nearest_location
from tapestry.passes.triton.indexing.positions import Frame, Positions
from tapestry.passes.triton.indexing.spaces import Access, row_major
from tapestry.passes.triton.tiles.builder import TileBuilder, joint_shape
from tapestry.passes.triton.tiles.narrow import known_bounds
from tapestry.zspace import Point


@dataclass(frozen=True, eq=False)
class Port:
    """A tensor of a kernel: its name, pointer and cells' type, and how it is accessed.

    `fill` is what a load finds where there is no cell. `shape` is that of the tensor, `box` that of
    what a point selects.
    """

    name: str
    pointer: SSAValue
    element: Attribute
    access: Access
    fill: FloatAttr | IntegerAttr
    shape: Point
    box: Point


def write_read(
    tiles: TileBuilder,
    positions: Positions,
    port: Port,
    op: loom.ReadOp,
    indices: Sequence[SSAValue],
    otherwise: SSAValue | None,
    frame: Frame,
    domain: Sequence[Access],
    around: Frame,
) -> SSAValue:
    """Write the cells of a block at tiles of indices (i64), over a frame.

    Without `otherwise`, the indices of points inside `domain`, row by row, must be in the block:
    `around` has the axes of the frame, and of the rows.
    """
    offsets = positions.offsets(port.access, frame)
    inside: SSAValue | None = None
    for index, extent, step in zip(indices, port.box, row_major(port.shape), strict=True):
        if not _is_within(tiles, index, extent):
            low = tiles.compare(">=", index, tiles.constant(0, i64))
            high = tiles.compare("<", index, tiles.constant(extent, i64))
            inside = tiles.both(inside, tiles.both(low, high))
        if not _is_within(tiles, index, 1):
            offsets = tiles.add(offsets, tiles.times(tiles.cast(index, tiles.index), step))
    points = _points(positions, frame, offsets, inside)
    if otherwise is None and inside is not None:
        moved, good = (
            tiles.expand(value, around.index(frame[0]), len(around)) if len(frame) == 1 else value
            for value in (offsets, inside)
        )
        counted = positions.inside_all(domain, around)
        needed = tiles.both(_points(positions, around, moved, good, counted), counted)
        tiles.append(triton.AssertOp(_holds(tiles, good, needed), _message(op)))
    exists = _exists(tiles, positions, port.access, indices, frame)
    mask = tiles.both(tiles.both(points, inside), exists)
    if mask is not None:
        offsets, mask = tiles.pair(offsets, mask)
    found = tiles.load(port.pointer, offsets, mask, port.fill)
    if otherwise is None or inside is None:
        return found
    return tiles.where(inside, found, otherwise)


def _is_within(tiles: TileBuilder, index: SSAValue, extent: int) -> bool:
    """Whether an index is known to be inside an extent."""
    bounds = known_bounds(tiles, index)
    return bounds is not None and bounds[0] >= 0 and bounds[1] < extent


def _points(positions: Positions, frame: Frame, *moved: SSAValue | None) -> SSAValue | None:
    """Which lanes are points, judged by the axes that some values move along."""
    shapes = [shape_of(value) for value in moved if value is not None]
    moving = joint_shape(*shapes) or (1,) * len(frame)
    return positions.frame_mask(
        frame, [axis for axis, size in zip(frame, moving, strict=True) if size > 1]
    )


def _holds(tiles: TileBuilder, inside: SSAValue, needed: SSAValue | None) -> SSAValue:
    """Where an index is inside or the lane does not need it."""
    if needed is None:
        return inside
    others = tiles.value(arith.XOrIOp(*tiles.pair(needed, tiles.constant(1, i1))))
    return tiles.once(arith.OrIOp, *tiles.pair(inside, others))


def _exists(
    tiles: TileBuilder,
    positions: Positions,
    access: Access,
    indices: Sequence[SSAValue],
    frame: Frame,
) -> SSAValue | None:
    """Where a clipped tensor has the cell at some indices."""
    mask: SSAValue | None = None
    for guard in access.guards:
        first = tiles.cast(positions.offsets(guard.form, frame), i64)
        at = tiles.add(first, indices[guard.row])
        for sign, bound in ((">=", guard.lower), ("<", guard.upper)):
            if bound is not None:
                mask = tiles.both(mask, tiles.compare(sign, at, tiles.constant(bound, i64)))
    return mask


def _message(op: loom.ReadOp) -> str:
    place = nearest_location(op)
    message = f"an index is out of range: what is read has shape {list(op.box.shape)}"
    return message if place is None else f"{place}: {message}"
