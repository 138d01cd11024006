"""Reads and writes through projections that are decided before there is an array.

    >>> columns = Projection.of([[0, 1]], inputs=2)
    >>> read = reader(columns, Range.of((3,)), Range.of((2, 3)))
    >>> read(np.arange(3)).shape
    (1, 3)

Most projections move each dimension of a tensor along a dimension of their own: that is a slice and
a transposition. The others (windows, diagonals) are choices of strides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter, itemgetter, methodcaller

import numpy as np

from tapestry.runtime.arrays.access import cells, viewer
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops.copying import reshaped
from tapestry.zspace import Projection, Range

View = Callable[[Array], Array]
"""An array as another one on the same memory."""


_SEEN = 1 << 20
"""Cells of arrays up to which it is found what a view is made of."""


def product_of_views(
    left: View, right: View, turned: View, by: Callable[[Array, Array], Array], a: Array, b: Array
) -> Array:
    """What `by` makes of two arrays as their views, as another view."""
    return turned(by(left(a), right(b)))


def reader(projection: Projection, box: Range, index: Range) -> View:
    """What `cells` gives over `index`, of arrays that store `box`."""
    plan = None if index.is_empty else _slices(projection, box, index)
    if plan is None:
        return viewer(box, projection, index)
    at, order, spread = plan
    if not any(isinstance(one, int) or one != slice(None) for one in at):
        at = ()
    if list(order) == sorted(order):
        order = ()
    if None not in spread:
        spread = ()

    return partial(_sliced, at, order, spread)


def writer(projection: Projection, box: Range, index: Range) -> View:
    """The tensor over `box` that values over `index` make, which write each of its cells once.

    A dimension of the tensor that several of the index make, as digits of a number, is theirs in
    order, merged; anything else is written cell by cell.
    """
    order = None if index.is_empty else _digits(projection, box, index)
    if order is None:
        return partial(_written, projection=projection, box=box, index=index)
    left_out = [dim for dim in range(index.rank) if dim not in order]
    first = tuple(0 if dim in left_out else slice(None) for dim in range(index.rank))
    kept = sorted(order)
    whole = tuple(index.shape[dim] for dim in kept)
    turned = tuple(kept.index(dim) for dim in order)
    moved = turned != tuple(range(len(turned)))
    merged = tuple(index.shape[dim] for dim in order) != box.shape
    return partial(
        _merged,
        first if left_out else (),
        whole,
        turned if moved else (),
        box.shape if merged else None,
    )


def writes_in_order(projection: Projection, box: Range, index: Range) -> bool:
    """Whether the tensor that `writer` makes has its cells in the order of the values."""
    order = None if index.is_empty else _digits(projection, box, index)
    return order is not None and order == sorted(order)


def writes_view(view: View) -> bool:
    """Whether what `writer` gave is a view of any values: it merges no dimensions."""
    if not isinstance(view, partial) or view.func is not _merged:
        return False
    _, whole, turned, shape = view.args
    kept = [whole[dim] for dim in turned] if turned else whole
    return shape is None or [n for n in kept if n > 1] == [n for n in shape if n > 1]


def plain_view(view: View, array: Array) -> tuple[View, ...] | None:
    """A view of arrays like this one as functions of NumPy's own, one after another.

    They turn axes, and drop or add some of extent 1; there is none where a view gives back what it
    takes. None where it does more: that depends on strides, or copies.

    >>> plain_view(lambda x: x[0].transpose(1, 0)[:, None], np.zeros((1, 2, 3)))
    (operator.methodcaller('transpose', (2, 0, 1)),)
    """
    if not 0 < array.size <= _SEEN:
        return None
    # Cells between rows that are not the array's, so that no two axes can be merged.
    room = np.empty([extent + 1 for extent in array.shape], array.dtype)
    given = room[(*(slice(extent) for extent in array.shape), ...)]
    made = np.asarray(view(given))  # which may be a single number
    if made.dtype != array.dtype or made.ctypes.data != given.ctypes.data:
        return None
    long = {stride: axis for axis, stride in enumerate(given.strides) if given.shape[axis] > 1}
    ones = [axis for axis, extent in enumerate(given.shape) if extent == 1]
    order: list[int] = []
    spread: list[slice | int | None] = []
    for extent, stride in zip(made.shape, made.strides, strict=True):
        axis = ones.pop(0) if extent == 1 and ones else long.pop(stride, None)
        if axis is None and extent > 1:
            return None
        spread.append(None if axis is None else slice(None))
        if axis is not None:
            if given.shape[axis] != extent:
                return None
            order.append(axis)
    if long:
        return None
    order += ones
    spread += [0] * len(ones)
    found: list[View] = []
    if order != sorted(order):
        last = order == sorted(order, reverse=True)
        found.append(attrgetter("T") if last else methodcaller("transpose", tuple(order)))
    if any(one != slice(None) for one in spread):
        found.append(itemgetter((*spread, ...)))
    return tuple(found)


def _sliced(
    at: tuple[int | slice, ...],
    order: tuple[int, ...],
    spread: tuple[slice | None, ...],
    array: Array,
) -> Array:
    """Slices of an array, its axes in another order, and some of extent 1 between them."""
    if at:
        array = array[(*at, ...)]  # a view also where one cell is left
    if order:
        array = array.transpose(order)
    return array[spread] if spread else array


def _merged(
    first: tuple[int | slice, ...],
    whole: tuple[int, ...],
    turned: tuple[int, ...],
    shape: tuple[int, ...] | None,
    values: Array,
) -> Array:
    """Values without some of their axes, all over, the others in another order and merged."""
    if first and values.ndim:
        values = values[(*first, ...)]  # a view also where one cell is left
    if values.shape != whole:
        values = np.broadcast_to(values, whole)
    if turned:
        values = values.transpose(turned)
    return values if shape is None else reshaped(shape, values)


def _digits(projection: Projection, box: Range, index: Range) -> list[int] | None:
    """The index dimensions in the order in which they make those of a tensor, or None.

    Each row of the tensor is a number whose digits, most significant first, are index coordinates;
    together they run over all of `box`. Dimensions of one coordinate are no digits.
    """
    if projection.apply_range(index) != box:
        return None
    order: list[int] = []
    for terms in projection.map.terms:
        unit = 1
        row: list[int] = []
        for factor, dim in sorted(terms, key=lambda term: (term[0], index.shape[term[1]])):
            if index.shape[dim] == 1:
                continue
            if factor != unit or dim in order or dim in row:
                return None
            unit *= index.shape[dim]
            row.append(dim)
        order += reversed(row)
    return order


def _written(values: Array, projection: Projection, box: Range, index: Range) -> Array:
    """`writer` cell by cell."""
    made = np.empty(box.shape, values.dtype)
    if not index.is_empty:
        view = cells(made, box, projection, index)
        # Along a dimension that the projection does not move along, the first value is written.
        over = np.broadcast_shapes(values.shape, view.shape)
        pairs = zip(view.shape, over, strict=True)
        first = tuple(slice(1) if one < many else slice(None) for one, many in pairs)
        view[...] = np.broadcast_to(values, over)[first]
    return made


def _slices(
    projection: Projection, box: Range, index: Range
) -> tuple[tuple[int | slice, ...], tuple[int, ...], tuple[slice | None, ...]] | None:
    """The slices of a tensor, the order of their axes, and where axes of extent 1 stand between."""
    start = projection.map.apply(index.start)
    at: list[int | slice] = []
    dims: list[int] = []
    for terms, first, low, extent in zip(
        projection.map.terms, start, box.start, box.shape, strict=True
    ):
        first -= low
        if len(terms) == 0:
            at.append(first)
            continue
        factor, dim = terms[0]
        if len(terms) > 1 or dim in dims:
            return None
        dims.append(dim)
        last = first + factor * (index.shape[dim] - 1)
        whole = factor == 1 and first == 0 and last == extent - 1
        end = last + (1 if factor > 0 else -1)
        at.append(slice(None) if whole else slice(first, None if end < 0 else end, factor))
    moving = sorted(dims)
    order = tuple(dims.index(dim) for dim in moving)
    spread = tuple(slice(None) if dim in dims else None for dim in range(index.rank))
    return tuple(at), order, spread
