"""Elementwise kernels whose tensors lie differently: a tile is along the neighbours of each.

    y[i, j] = x[j, i]       y's neighbours are along j, x's along i: tiles are M (i) by N (j)

Threads along one axis alone would read or write a cell of every sector that they touch. With tiles
along both, what is read is exchanged by the threads of a program, and all of memory is moved whole.
Only strides decide: which operation it is, and which side is turned, does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tapestry.algebra.dtypes import byte_size
from tapestry.passes.triton.indexing.spaces import Access, Dim, Space
from tapestry.passes.triton.kernels.mapfold import MapFold, Tensor

COLUMNS, ROWS, OTHERS = "N", "M", "B"

LEAST_CELLS = 1024
"""Where tiles would have fewer cells, a longer one along one axis has whole neighbourhoods."""

LEAST_SIDE = 8
"""The least side of a tile: a sector of float32."""

SHARE = 8
"""What lies differently matters if it is this part of all that is moved, or more."""


def facing_axes(fold: MapFold, space: Space) -> tuple[str, ...] | None:
    """The tile axis of each index dimension; None where tiles along one axis do.

    `space` has all dimensions on one axis. Columns are those along which neighbours are written,
    rows those along which others are read; further dimensions are a program for each point.
    """
    read = list(_moved(space, space.ins, fold.ins))
    written = list(_moved(space, space.outs, fold.outs))
    columns = _main_dim(space, written)
    if columns is None:
        return None
    turned = [one for one in read if columns not in _neighbours(space, one[0])]
    rows = _main_dim(space, turned)
    if rows is None or min(rows.extent, columns.extent) < LEAST_SIDE:
        return None
    if rows.extent * columns.extent < LEAST_CELLS:
        return None
    along = sum(size for access, size in turned if rows in _neighbours(space, access))
    if along * SHARE < sum(size for _, size in (*read, *written)):
        return None
    names = dict.fromkeys(rows.sources, ROWS) | dict.fromkeys(columns.sources, COLUMNS)
    return tuple(names.get(dim, OTHERS) for dim in range(fold.index.rank))


def _moved(
    space: Space, accesses: Sequence[Access], tensors: Sequence[Tensor]
) -> Iterator[tuple[Access, int]]:
    """Accesses of single cells, with the bytes that they touch in all."""
    for access, tensor in zip(accesses, tensors, strict=True):
        if not access.reach:
            pairs = zip(space.dims, access.coefficients, strict=True)
            cells = prod(dim.extent for dim, factor in pairs if factor)
            yield access, cells * byte_size(tensor.element)


def _neighbours(space: Space, access: Access) -> list[Dim]:
    """The dimensions along which an access moves from one cell to the next in memory."""
    pairs = zip(space.dims, access.coefficients, strict=True)
    return [dim for dim, factor in pairs if abs(factor) == 1 and dim.extent > 1]


def _main_dim(space: Space, moved: Sequence[tuple[Access, int]]) -> Dim | None:
    """The dimension along which most of what is moved has its neighbours; None without one."""
    sizes: dict[Dim, int] = {}
    for access, size in moved:
        for dim in _neighbours(space, access):
            sizes[dim] = sizes.get(dim, 0) + size
    return max(sizes, key=sizes.__getitem__, default=None)
