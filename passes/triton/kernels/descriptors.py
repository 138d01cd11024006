"""Which tensors a kernel may move in blocks, by tensor descriptors, and how it then does.

    x = tl.make_tensor_descriptor(x_ptr, shape=[4096, 512], strides=[512, 1], block_shape=[128, 64])
    for k in range(0, 512, 64):
        ... x.load([m, k])

What an access reads over a frame of two axes is a matrix in memory where each axis is one dimension
of the index space, one of them with neighbours side by side. Hardware wants rows to take multiples
of 16 bytes, and to start at such. It counts rows and columns in 32 bits, however many cells that
makes: where offsets take 64, blocks are placed in 32 bits all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i1, i32
from xdsl.ir import Attribute, SSAValue

from tapestry.algebra.dtypes import byte_size
from tapestry.dialects import triton
from tapestry.dialects.triton import ALIGNMENT, PointerType
from tapestry.passes.triton.indexing.positions import Axis, Frame, Positions
from tapestry.passes.triton.indexing.spaces import INT32_LIMIT, Access, Space, needs_64_bits
from tapestry.passes.triton.kernels.mapfold import MapFold
from tapestry.passes.triton.kernels.ports import Port
from tapestry.passes.triton.schedules.tiling import MAX_SIDE
from tapestry.passes.triton.tiles.builder import Sizes, TileBuilder, constant_value, number


@dataclass(frozen=True)
class Matrix:
    """What an access reads over a frame: the axes of rows and columns, and cells between rows."""

    rows: Axis
    columns: Axis
    stride: int


def matrix_of(
    access: Access, element: Attribute, space: Space, axes: dict[str, Axis], frame: Frame
) -> Matrix | None:
    """What an access reads over a frame as a matrix that can be described, else None."""
    if len(frame) != 2 or access.guards or element == i1:
        return None
    size = byte_size(element)
    aligned = access.constant * size % ALIGNMENT == 0
    steps: dict[str, int] = {}
    for dim, factor in zip(space.dims, access.coefficients, strict=True):
        if dim.axis in frame:
            if len(axes[dim.axis].dims) != 1 or factor <= 0:
                return None
            steps[dim.axis] = factor
        elif factor * size % ALIGNMENT:
            aligned = False
    if not aligned or {*steps} != {*frame}:
        return None
    rows, columns = sorted(frame, key=lambda axis: -steps[axis])
    stride = steps[rows]
    if steps[columns] != 1 or stride * size % ALIGNMENT or axes[columns].dims[0].cut:
        return None
    return Matrix(axes[rows], axes[columns], stride)


def any_described(fold: MapFold, space: Space, axes: Sequence[Axis]) -> bool:
    """Whether a kernel moves some tensor in blocks where it can."""
    known = {axis.name: axis for axis in axes}
    tensors = (*fold.ins, *fold.extras, *fold.outs)
    for tensor, access in zip(tensors, (*space.ins, *space.extras, *space.outs), strict=True):
        moved = space.along(access)
        frame = tuple(axis.name for axis in axes if axis.name in moved and axis.block is not None)
        found = matrix_of(access, tensor.element, space, known, frame)
        if found is not None and is_counted(found, wide=needs_64_bits(space, fold.index)):
            return True
    return False


def is_counted(matrix: Matrix, *, wide: bool) -> bool:
    """Whether rows and columns are counted in 32 bits, in a kernel whose positions may be `wide`.

    Blocks end behind the last one by less than a block.
    """
    dims = (*matrix.rows.dims, *matrix.columns.dims)
    return not wide or all(not d.cut and d.extent < INT32_LIMIT - MAX_SIDE for d in dims)


def blocks_fit(matrix: Matrix, element: Attribute, blocks: Sizes) -> bool:
    """Whether blocks of these sizes can be moved."""
    assert matrix.rows.block is not None
    assert matrix.columns.block is not None
    rows, columns = blocks[matrix.rows.block], blocks[matrix.columns.block]
    wide = columns * byte_size(element) >= ALIGNMENT
    return wide and max(rows, columns) <= MAX_SIDE


class Descriptors:
    """Moves blocks of the tensors of one kernel."""

    def __init__(
        self, tiles: TileBuilder, positions: Positions, space: Space, axes: dict[str, Axis]
    ) -> None:
        self._tiles, self._positions, self._space, self._axes = tiles, positions, space, axes

    def matrix(self, port: Port, frame: Frame) -> Matrix | None:
        """How a port is moved over a frame, None where it takes pointers."""
        found = matrix_of(port.access, _stored(port), self._space, self._axes, frame)
        if found is None or not is_counted(found, wide=self._tiles.index != i32):
            return None
        stored = _stored(port)
        fit = self._tiles.holds(lambda sizes: blocks_fit(found, stored, sizes))
        return found if fit else None

    def load(self, port: Port, frame: Frame) -> SSAValue | None:
        """The block of a port over a frame, zero outside; None where it takes pointers."""
        matrix = self.matrix(port, frame)
        if matrix is None or port.fill != number(0, port.element):
            return None
        tiles = self._tiles
        assert matrix.rows.block is not None
        assert matrix.columns.block is not None
        shape = tiles.shape((matrix.rows.block, matrix.columns.block))
        place = self._place(matrix)
        loaded = tiles.value(triton.LoadBlockOp(self._described(port, matrix), *place, shape))
        loaded.name_hint = port.name
        found = tiles.bits(loaded, port.element)
        if matrix.rows.name == frame[0]:
            return found
        return tiles.once(triton.TransposeOp, found)

    def store(self, port: Port, frame: Frame, cells: SSAValue) -> bool:
        """Store a tile over a frame to its block of a port; False where that takes pointers."""
        matrix = self.matrix(port, frame)
        if matrix is None:
            return False
        tiles = self._tiles
        place = self._place(matrix)
        if matrix.rows.name != frame[0]:
            cells = tiles.once(triton.TransposeOp, cells)
        tiles.append(triton.StoreBlockOp(cells, self._described(port, matrix), *place))
        return True

    def _place(self, matrix: Matrix) -> tuple[SSAValue, SSAValue]:
        """The first row and the first column of the block."""
        rows, columns = (self._positions.first(one) for one in (matrix.rows, matrix.columns))
        return self._tiles.cast(rows, i32), self._tiles.cast(columns, i32)

    def _described(self, port: Port, matrix: Matrix) -> SSAValue:
        tiles, positions = self._tiles, self._positions
        assert matrix.rows.block is not None
        assert matrix.columns.block is not None
        base = positions.base(port.access, (matrix.rows.name, matrix.columns.name))
        if constant_value(base) == 0:
            base = tiles.constant(0, i32)
        ends = (positions.span(matrix.rows)[1], positions.span(matrix.columns)[1])
        shape = (tiles.cast(ends[0], i32), tiles.cast(ends[1], i32))
        op = triton.DescribeOp(
            port.pointer, base, shape, matrix.stride, [matrix.rows.block, matrix.columns.block]
        )
        return tiles.value(op, f"{port.name}_blocks")


def _stored(port: Port) -> Attribute:
    assert isinstance(port.pointer.type, PointerType)
    return port.pointer.type.element_type
