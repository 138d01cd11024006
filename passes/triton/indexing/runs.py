"""Dimensions of an axis that lie in memory as they do on the axis: they are one to an access.

Walking (c, y, x) of a filter `[n, c, 3, 3]` on one axis, its offset is `9 c + 3 y + x`: the
position on the axis. Written so, neighbouring lanes are seen to read neighbouring cells.
"""

from __future__ import annotations

from collections.abc import Iterator

from tapestry.passes.triton.indexing.spaces import Access, Dim, Space


def runs(space: Space, access: Access, axis: str) -> Iterator[tuple[list[Dim], int]]:
    """The dimensions of an axis that an access moves along, and the factors of their coordinates.

    Neighbours that lie in memory as they do on the axis are one: a filter's cells (c, y, x), which
    are folded in this order, are read one after another.
    """
    factors = dict(zip(space.dims, access.coefficients, strict=True))
    dims = space.on(axis)
    whole = not any(dim.cut for dim in dims)
    run: list[Dim] = []
    for dim in dims:
        if run and not (whole and factors[run[-1]] == factors[dim] * dim.extent):
            yield run, factors[run[-1]]
            run = []
        if factors[dim]:
            run.append(dim)
    if run:
        yield run, factors[run[-1]]
