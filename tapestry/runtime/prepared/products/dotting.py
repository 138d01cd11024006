"""Which sums of products have vectors along what is folded, and how large their tiles are.

    found = dot_tiling(problem, lanes=16, registers=32)     # None where no folded one is dense

So is the gradient of a convolution to its kernel: its results are few, and no vectors, and both
factors are dense along what is folded. Problems are those of `tiling`; their `work` is that of both
factors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from tapestry.codegen.loops.tiles import Tiles
from tapestry.runtime.prepared.products.tiling import (
    FILLED,
    STEPS,
    TERMS,
    Problem,
    Tiling,
    access_of,
    in_blocks,
    merged,
)

_SIDE = 12
"""Places of a factor in a tile, at most."""

_LANE = 1 << 8
"""Terms of each lane along the dimension of vectors, at most: errors grow with them."""


_LOST = 2.4
"""How many times as long it takes as products and loads do, as that of `tiling`."""


def dot_tiling(problem: Problem, lanes: int, registers: int) -> Tiling | None:
    """The tiles for a problem, both factors in vectors; None where that is slow."""
    problem = in_blocks(merged(problem))
    extents = problem.extents
    vector = _vector(problem)
    if vector is None or not lanes <= FILLED * extents[vector] <= FILLED * lanes * _LANE:
        return None
    kept = [d for d, n in enumerate(extents) if d not in problem.folded and n > 1]
    near = [d for d in kept if problem.moves(problem.first, d)]
    far = [d for d in kept if problem.moves(problem.second, d)]
    both = [d for d in kept if d in near and d in far]
    before = [*(d for d in kept if d not in near and d not in far), *both]
    order = [*before, *(d for d in near if d not in far), *(d for d in far if d not in near)]
    sizes, time = _sizes(problem, registers, order[len(before) :], near)
    others = [d for d in problem.folded if extents[d] > 1 and d != vector]
    others.sort(key=lambda d: -max(abs(one.steps[d]) for one in problem.operands))
    dims = (*order, *others, vector)
    terms = prod(extents[d] for d in others) * -(-extents[vector] // lanes)
    apart = 0
    while terms > TERMS and apart < len(others) - 1:
        terms //= extents[others[apart]]
        apart += 1
    tiles = Tiles(
        lanes=lanes,
        kept=tuple(sizes.get(d, 1) for d in order),
        folded=(0,) * (len(others) + 1),
        arrays=tuple(access_of(one, dims, vector, len(extents)) for one in problem.operands),
        short=extents[vector] % lanes > 0,
        apart=apart,
        summed=True,
    )
    time *= _LOST * prod(extents[d] for d in (*before, *others)) * -(-extents[vector] // lanes)
    return Tiling(problem, tiles, dims, 0, time)


def _vector(problem: Problem) -> int | None:
    """The longest folded dimension along which both factors are dense, or every few cells."""
    found: list[tuple[int, int]] = []
    sides = problem.first, problem.second
    for dim in problem.folded:
        ins = [problem.operands[n] for n in (*problem.first, *problem.second)]
        whole = all(one.steps[dim] in range(0, STEPS * one.size + 1, one.size) for one in ins)
        read = all(one.steps[dim] or not one.guards for one in ins)
        moves = all(problem.moves(side, dim) for side in sides)
        near = any(one.steps[dim] == one.size for one in ins)
        if whole and read and moves and near:
            found.append((problem.extents[dim], dim))
    return max(found)[1] if found else None


def _sizes(
    problem: Problem, registers: int, dims: Sequence[int], near: Sequence[int]
) -> tuple[dict[int, int], float]:
    """How many places of some dimensions a tile has: those that take the least time, and that.

    A product of vectors takes as long as to read one; what is guarded takes longer.
    """
    extents = problem.extents
    cost = [
        sum(1 + len(problem.operands[n].guards) / 2 for n in side) + problem.work
        for side in (problem.first, problem.second)
    ]
    first = [d for d in dims if d in near]
    second = [d for d in dims if d not in near]
    found: list[tuple[float, int, dict[int, int]]] = []
    for left, right in product(_places(extents, first), _places(extents, second)):
        own = left | right
        rows, columns = prod(left.values()), prod(right.values())
        sums = rows * columns
        if sums > registers * 3 // 4 or sums + min(rows, columns) + 2 > registers:
            continue
        time = max(sums, cost[0] * rows + cost[1] * columns, 8)
        parts = prod(-(-extents[d] // n) for d, n in own.items())
        found.append((parts * time, -sums, own))
    time, _, sizes = min(found, key=lambda one: one[:2])
    return sizes, time


def _places(extents: Sequence[int], dims: Sequence[int]) -> Iterator[dict[int, int]]:
    """The places of a tile along some dimensions, of one factor."""
    for sizes in product(*(range(1, min(_SIDE, extents[d]) + 1) for d in dims)):
        if prod(sizes) <= _SIDE:
            yield dict(zip(dims, sizes, strict=True))
