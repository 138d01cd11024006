"""Which sums of products have their factors copied in blocks, and how large blocks and tiles are.

    found = block_tiling(problem, lanes=8, registers=16)    # None where no panel can be

Problems are those of `tiling`. What a convolution reads is met by all its channels, at several
places of a window, and is copied for a block of places at a time, zeros and all
(`tapestry.codegen.loops.blocks`). So vectors may be along any dimension that only the first factor
moves along: of the gradient to a kernel, whose results are few, along channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from tapestry.codegen.loops.tiles import SCATTERED, Access, Guard, Panel, Tiles
from tapestry.codegen.loops.vectors import LINE
from tapestry.runtime.prepared.products.tiling import (
    NUMBER,
    TERMS,
    UNROLLED,
    Operand,
    Problem,
    Tiling,
    access_of,
    in_blocks,
    merged,
    sizes_of,
    sums_apart,
)

_CACHED = 3 << 15
"""Bytes of a panel that a core's cache keeps beside what else there is."""

_LARGEST = 1 << 22
"""Bytes of a panel at most, which all cores' cache keeps."""

_MOST = 1 << 26
"""Bytes that the second factor's numbers may take: each thread has memory for its own."""

_BLOCKS = 8
"""Tiles along a dimension of blocks that make one, at most."""

_TURNED = 5
"""How many times as long it takes to copy a cell whose neighbours lie elsewhere."""

_PACKED = 4
"""As how many products of vectors it counts to copy a number of the second factor."""

_SCATTERED = 8
"""As how many products of vectors it counts to write a number whose neighbours lie elsewhere."""

_COPIES = 10
"""As how many products of vectors it counts to copy a vector."""

Coordinate = tuple[tuple[int, int], ...]
"""Dimensions that move the same coordinate, and by how much."""


def block_tiling(problem: Problem, lanes: int, registers: int) -> Tiling | None:
    """The tiles for a problem whose first factor is in vectors, and is copied."""
    whole = merged(problem)
    tail = prod(whole.extents[d] for d in _order(whole)[1:])
    whole = in_blocks(whole, TERMS // tail if 4 * tail <= TERMS else TERMS)
    kept = [d for d, n in enumerate(whole.extents) if d not in whole.folded and n > 1]
    near = [d for d in kept if whole.moves(whole.first, d)]
    own = [d for d in near if not whole.moves(whole.second, d)]
    found = [_along(whole, dim, kept, near, lanes, registers) for dim in own]
    return min((one for one in found if one is not None), key=lambda one: one.time, default=None)


def _along(
    problem: Problem,
    vector: int,
    kept: Sequence[int],
    near: Sequence[int],
    lanes: int,
    registers: int,
) -> Tiling | None:
    """The tiles with vectors along a dimension."""
    extents, operands = problem.extents, problem.operands
    if any(operands[one].guards for one in problem.second):
        return None
    if any(operands[n].guards and not operands[n].steps[vector] for n in problem.first):
        return None
    both = [d for d in near if problem.moves(problem.second, d)]
    second = sorted((d for d in kept if d not in near), key=lambda d: extents[d])
    if not any(problem.moves(problem.second, d) for d in second):
        return None
    first = sorted(
        (d for d in near if d not in both and d != vector),
        key=lambda d: -max(abs(one.steps[d]) for one in operands),
    )
    order = [*both, *second, *first, vector]
    sizes, time = sizes_of(problem, lanes, registers, vector, second[-1:], first[-1:], copied=True)
    tile = dict.fromkeys(order, 1) | sizes
    inner = _order(problem)
    taps = _taps([extents[d] for d in inner], prod(tile.values()))
    dims = (*order, *inner)
    coordinates = _coordinates(problem, vector, {*first, vector, *inner}, inner)
    least = {d: tile[d] * (lanes if d == vector else 1) for d in (*first, vector)}
    blocks = {d: min(n, extents[d]) for d, n in least.items()}
    if extents[vector] < lanes:
        blocks[vector] = lanes
    cells = _cells(coordinates, extents, blocks, lanes)
    if prod(cells) * NUMBER > _LARGEST:
        return None
    for d in (vector, *reversed(first)):
        blocks[d] = _longer(coordinates, extents, blocks, d, least[d], lanes)
    cells = _cells(coordinates, extents, blocks, lanes)
    place = {dim: n for n, dim in enumerate(dims)}
    arrays = tuple(_panel_access(operands[n], coordinates, place, order) for n in problem.first)
    panel = Panel(
        outer=len(both),
        dims=tuple(place[d] for d in (*first, vector)),
        coordinates=tuple(tuple((place[d], f) for d, f in own) for own in coordinates),
        arrays=arrays,
    )
    numbers = prod(tile[d] for d in second if problem.moves(problem.second, d))
    tiles = Tiles(
        lanes=lanes,
        kept=tuple(tile[d] for d in order),
        folded=taps,
        arrays=tuple(access_of(one, dims, vector, len(extents)) for one in operands),
        packed=True,
        short=extents[vector] < lanes,
        apart=sums_apart(problem, inner, taps),
        panel=panel,
    )
    terms = prod(extents[d] for d in inner)
    packs = prod(-(-extents[d] // tile[d]) for d in second if problem.moves(problem.second, d))
    room = _lines(numbers * packs * terms * NUMBER)
    if room > _MOST:
        return None
    groups = prod(extents[d] for d in both)
    others = prod(extents[d] for d in (*second, *first) if d not in sizes)
    count = prod(-(-extents[d] // blocks[d]) for d in (*first, vector))
    copying = prod(cells) / lanes * (_COPIES + problem.work)
    if any(one.step == SCATTERED for one in arrays):
        copying *= _TURNED
    time = groups * (others * time * terms + count * copying + _PACKED * packs * numbers * terms)
    if any(one.step != 1 for one in tiles.arrays[len(tiles.arrays) - problem.results :]):
        time += _SCATTERED * prod(extents[d] for d in order)
    paces = [NUMBER * prod(cells[n + 1 :]) for n in range(len(cells) - 1)]
    return Tiling(
        problem,
        tiles,
        dims,
        room + _lines((prod(cells) + lanes) * NUMBER),
        time=time,
        panel=room,
        blocks={place[d]: n for d, n in blocks.items()},
        paces=tuple(paces),
    )


def _lines(size: int) -> int:
    """So many bytes as whole lines of a cache."""
    return -(-size // LINE) * LINE


def _order(problem: Problem) -> list[int]:
    """The folded dimensions in order: as the second factor lies, which is copied so."""
    dims = [d for d in problem.folded if problem.extents[d] > 1]
    far = [problem.operands[n] for n in problem.second]
    return sorted(dims, key=lambda d: (-max(abs(one.steps[d]) for one in far), d))


def _taps(extents: Sequence[int], sums: int) -> tuple[int, ...]:
    """The extents of the last folded dimensions, which are unrolled, while it is little."""
    taps = [0] * len(extents)
    for n in reversed(range(len(extents))):
        sums *= extents[n]
        if sums > UNROLLED:
            break
        taps[n] = extents[n]
    return tuple(taps)


def _coordinates(
    problem: Problem, vector: int, dims: set[int], inner: Sequence[int]
) -> list[Coordinate]:
    """The coordinates of a panel that some dimensions move, that with the vectors' one last."""
    operands = [problem.operands[n] for n in problem.first]
    windows: set[Coordinate] = set()
    for one in operands:
        for window in one.windows:
            terms = tuple((d, f) for d, f in window if d in dims and one.steps[d])
            if terms:
                windows.add(tuple(sorted(terms)))
    moved = {d for d in dims if any(one.steps[d] for one in operands)}
    found: list[Coordinate] = []
    for window in sorted(windows):
        apart = any({d for d, _ in window} & {d for d, _ in one} for one in windows - {window})
        unit = gcd(*(f for _, f in window))
        terms = tuple((d, f // unit) for d, f in window)
        if apart or len(terms) < 2 or dict(terms).get(vector, 1) != 1:
            continue
        if any(
            one.steps[d] * f != one.steps[e] * g
            for one in operands
            for d, g in terms
            for e, f in terms
        ):
            continue
        span = 1 + sum(abs(f) * (problem.extents[d] - 1) for d, f in terms)
        if span < prod(problem.extents[d] for d, _ in terms):
            found.append(terms)
    slid = {d for own in found for d, _ in own}
    found += [((d, 1),) for d in sorted(moved - slid)]
    depth = {d: n for n, d in enumerate(inner, 1)}

    def order(own: Coordinate) -> tuple[bool, int]:
        return any(d == vector for d, _ in own), max(depth.get(d, 0) for d, _ in own)

    return sorted(found, key=order)


def _cells(
    coordinates: Sequence[Coordinate], extents: Sequence[int], blocks: dict[int, int], lanes: int
) -> list[int]:
    """How many cells a panel has along each coordinate; whole vectors along the last."""
    cells = [
        1 + sum(abs(f) * (blocks.get(d, extents[d]) - 1) for d, f in own) for own in coordinates
    ]
    cells[-1] = -(-cells[-1] // lanes) * lanes
    return cells


def _longer(
    coordinates: Sequence[Coordinate],
    extents: Sequence[int],
    blocks: dict[int, int],
    dim: int,
    least: int,
    lanes: int,
) -> int:
    """So many places of a block along a dimension that the cache keeps its panel."""
    if extents[dim] <= least:
        return blocks[dim]
    most = -(-extents[dim] // least)
    for count in range(1, most + 1):
        size = -(-most // count) * least
        if size > _BLOCKS * least:
            continue
        cells = _cells(coordinates, extents, {**blocks, dim: min(size, extents[dim])}, lanes)
        if prod(cells) * NUMBER <= _CACHED:
            return min(size, extents[dim])
    return blocks[dim]


def _panel_access(
    one: Operand, coordinates: Sequence[Coordinate], place: dict[int, int], order: Sequence[int]
) -> Access:
    """How an array is read for a panel: along places of kept dimensions, and then coordinates."""
    kept = len(order)
    count = kept + len(coordinates)
    found = {d: (kept + n, f) for n, own in enumerate(coordinates) for d, f in own}
    guards: list[Guard] = []
    for guard in one.guards:
        terms: dict[int, int] = {}
        for d, f in guard.terms:
            if d not in place:
                continue
            if place[d] < kept:
                terms[place[d]] = f
            if d in found:
                number, by = found[d]
                terms[number] = f // by
        guards.append(Guard(tuple(terms.items()), guard.offset))
    vector = order[-1]
    step = one.steps[vector]
    fits = step % one.size == 0 and 0 <= step <= 4 * one.size
    return Access(
        moves=(False,) * count,
        step=step // one.size if fits else SCATTERED,
        guards=tuple(guards),
        shared=((),) * count,
    )
