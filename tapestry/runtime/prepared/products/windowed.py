"""Sums of products over windows, by what the library has for them.

    slide = prepared_slide(op, monoid, library)     # None where it has another form
    (state,) = slide([x, w])                        # an axis per kept dimension

Neither windows nor padding are copied here: the factors are views of the tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from tapestry.algebra.computing import widened
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.monoids import Monoid
from tapestry.algebra.windows import Window, Windowed, find_windowed
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.runtime.arrays.matrices import unfolded
from tapestry.runtime.prepared.cells import arranged, in_turn
from tapestry.runtime.prepared.cells import at as cells_at
from tapestry.runtime.prepared.library import Library, Slide, SlidState
from tapestry.runtime.prepared.views import View, reader
from tapestry.zspace import AffineMap, Interval, Projection, Range


def prepared_slide(
    op: loom.OperationOp, monoid: Monoid | None, library: Library
) -> SlidState | None:
    """The state of an operation that is a sum of products over windows, with an axis per kept dim.

    None where it is not, and where factors are not multiplied in the dtype of the state.
    """
    multiply = library.slide
    found = None if multiply is None else find_windowed(op, monoid)
    if multiply is None or found is None or monoid is None:
        return None
    if all(op.index.shape[w.kept] == op.index.shape[w.folded] == 1 for w in found.windows):
        return None  # windows of a cell that slide nowhere: matrices
    ins = [tensor_type(op.ins[number]).element_type for number in (found.signal, found.kernel)]
    wide = {widened(np.empty(0, numpy_dtype(kind))).dtype for kind in ins}
    if wide != {numpy_dtype(kind) for kind in monoid.state}:
        return None
    slides = tuple(_slide(op, found, window) for window in found.windows)
    sides = (found.signal, _signal(op, found)), (found.kernel, _kernel(op, found))
    return SlidState(*sides, multiply, slides, _result(op, found))


def _slide(op: loom.OperationOp, found: Windowed, window: Window) -> Slide:
    """How the kernel slides; it is turned around where it would slide backward."""
    low = op.in_maps[found.signal].map.apply(op.index.start)[window.axis]
    start = low - tensor_type(op.ins[found.signal]).box.start[window.axis]
    if window.reach < 0:
        start += window.reach * (op.index.shape[window.folded] - 1)
    return Slide(op.index.shape[window.kept], window.step, abs(window.reach), start)


def _signal(op: loom.OperationOp, found: Windowed) -> View:
    """The signal of shape (batch, rows, inner, *axes)."""
    box, read = tensor_type(op.ins[found.signal]).box, op.in_maps[found.signal].map
    matrix, offset = [list(row) for row in read.matrix], list(read.offset)
    sides: dict[int, Interval] = {}
    for window in found.windows:
        matrix[window.axis] = [int(dim == window.kept) for dim in range(read.inputs)]
        offset[window.axis] = 0
        sides[window.kept] = box.sides[window.axis]
    projection = Projection.cells(AffineMap.of(matrix, offset, read.inputs))
    along = [(window.kept,) for window in found.windows]
    index = op.index.with_sides(sides)
    return _grouped(projection, box, index, [found.batch, found.rows, found.inner, *along])


def _kernel(op: loom.OperationOp, found: Windowed) -> View:
    """The kernel of shape (batch, columns, inner, *axes)."""
    along = [(window.folded,) for window in found.windows]
    box = tensor_type(op.ins[found.kernel]).box
    groups = [found.batch, found.columns, found.inner, *along]
    view = _grouped(op.in_maps[found.kernel], box, op.index, groups)
    if all(window.reach > 0 for window in found.windows):
        return view
    turn = [slice(None, None, 1 if window.reach > 0 else -1) for window in found.windows]
    at = (slice(None), slice(None), slice(None), *turn)
    return partial(in_turn, (view, partial(cells_at, at)))


def _grouped(
    projection: Projection, box: Range, index: Range, groups: Sequence[Sequence[int]]
) -> View:
    """What is read of a tensor, with an axis for each group of dimensions."""
    view = reader(projection, box, index)
    order = [dim for dims in groups for dim in dims]
    axes = [*order, *(dim for dim in range(index.rank) if dim not in order)]
    shape = [prod(index.shape[dim] for dim in dims) for dims in groups]
    return partial(in_turn, (view, partial(arranged, tuple(axes), tuple(shape))))


def _result(op: loom.OperationOp, found: Windowed) -> View:
    """The state, an axis per kept dimension, from sums of shape (batch, rows, columns, *cells)."""
    missing = [dim for dim in op.kept_dims if dim not in found.result]
    shape = [op.index.shape[dim] for dim in found.result] + [1] * len(missing)
    order = [*found.result, *missing]
    back = tuple(order.index(dim) for dim in op.kept_dims)
    return partial(unfolded, tuple(shape), back)
