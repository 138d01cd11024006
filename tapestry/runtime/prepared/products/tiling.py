"""How to go along a sum of products in tiles: which dimension is for vectors, how large tiles are.

    found = tiling(problem, lanes=16, registers=32)         # None where no dimension is for vectors

A problem is what is known of a sum of products when there are arrays: extents, and by how many
bytes each array moves along each dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from tapestry.codegen.loops.tiles import SCATTERED, Access, Guard, Tiles

STEPS = 4
"""Cells from one of a vector to the next, at most."""

TERMS = 128
"""Terms that are summed one by one; more are summed in blocks, so that errors grow slowly."""

UNROLLED = 512
"""Products of vectors that are written one after another, at most."""

_AGAIN = 4
"""Tiles that meet the same numbers of the second factor, from which those are packed."""

_ACROSS, _DEEP = 12, 4
"""Places of a tile along dimensions of the second factor, and of the first one, at most."""

NUMBER = 4
"""Bytes of a number that is packed: it is what it is multiplied as, whatever memory holds."""

FILLED = 3
"""One of how many lanes has to be used at least."""

_COMPUTED = 3
"""How many times as long as the products it may take to compute the first factor, at most."""

_LOST = 1.55
"""How many times as long it takes as products and loads do, measured beside blocks on a Zen 3:
what is read lies apart, and guards take registers.
"""

Windows = tuple[tuple[tuple[int, int], ...], ...]
"""Coordinates of cells: the dimensions that move each, and by how much."""


@dataclass(frozen=True)
class Operand:
    """An array: bytes of a cell, and from a place to the next along each dimension.

    What it is read at outside of some `guards`, whose coordinates have `limits`, is zero.
    """

    size: int
    steps: tuple[int, ...]
    guards: tuple[Guard, ...] = ()
    limits: tuple[int, ...] = ()
    windows: Windows = ()


@dataclass(frozen=True)
class Problem:
    """A sum of products over some extents.

    The `first` and the `second` factor are computed of some of the operands, the first one by so
    many operations; the last of them are `results`.
    """

    extents: tuple[int, ...]
    folded: frozenset[int]
    operands: tuple[Operand, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    results: int
    work: int = 0

    def moves(self, operands: Iterable[int], dim: int) -> bool:
        """Whether some operands move along a dimension."""
        return any(self.operands[one].steps[dim] for one in operands)


@dataclass(frozen=True)
class Tiling:
    """Tiles for a problem, whose dimensions they have in the order `dims`."""

    problem: Problem
    tiles: Tiles
    dims: tuple[int, ...]
    room: int
    """Bytes that factors are copied to."""
    time: float = 0
    """How long it takes, in what two products of vectors take, of which two begin at once."""
    panel: int = 0
    """Where in the room the panel is."""
    blocks: Mapping[int, int] = field(default_factory=dict[int, int])
    """How many places a block has, along the dimensions that it has any."""
    paces: tuple[int, ...] = ()
    """By how many bytes each coordinate of the panel moves, but the last one."""


def tiling(problem: Problem, lanes: int, registers: int) -> Tiling | None:
    """The tiles for a problem, the first factor in vectors; None where that is slow."""
    if any(problem.operands[one].guards for one in problem.second):
        return None
    problem = in_blocks(merged(problem))
    extents = problem.extents
    kept = [d for d, n in enumerate(extents) if d not in problem.folded and n > 1]
    vector = _vector(problem, kept)
    if vector is None or FILLED * extents[vector] < lanes:
        return None
    others = [d for d in kept if d != vector]
    near = [d for d in others if problem.moves(problem.first, d)]
    far = [d for d in others if problem.moves(problem.second, d)]
    both = [d for d in near if d in far]
    second = sorted((d for d in others if d not in near), key=lambda d: extents[d])
    first = sorted((d for d in near if d not in far), key=lambda d: -_longest(problem, d))
    order = [*both, *second, *first, vector]
    sizes, time = sizes_of(problem, lanes, registers, vector, second[-1:], first[-1:])
    if problem.work > _COMPUTED * prod(sizes.get(d, 1) for d in second):
        return None
    tile = dict.fromkeys(order, 1) | sizes
    numbers = prod(tile[d] for d in second)
    inner = folded_order(problem, sliding_last=numbers == 1)
    taps = _taps(problem, inner, prod(tile.values())) if numbers == 1 else (0,) * len(inner)
    again = prod(-(-extents[d] // tile[d]) for d in first) * -(-extents[vector] // lanes)
    packed = numbers > 1 and again >= _AGAIN
    dims = (*order, *inner)
    tiles = Tiles(
        lanes=lanes,
        kept=tuple(tile[d] for d in order),
        folded=taps,
        arrays=tuple(access_of(one, dims, vector, len(extents)) for one in problem.operands),
        packed=packed,
        short=extents[vector] < lanes,
        apart=sums_apart(problem, inner, taps),
    )
    terms = prod(extents[d] for d in inner)
    time *= _LOST * terms * prod(extents[d] for d in order if d not in sizes)
    return Tiling(problem, tiles, dims, numbers * terms * NUMBER if packed else 0, time)


def _longest(problem: Problem, dim: int) -> int:
    return max(abs(one.steps[dim]) for one in problem.operands)


def merged(problem: Problem) -> Problem:
    """The same with dimensions in one where all arrays go on from one to the next."""
    bound = {dim for one in problem.operands for guard in one.guards for dim, _ in guard.terms}
    extents, steps = list(problem.extents), [one.steps for one in problem.operands]
    free = [d for d, n in enumerate(extents) if n > 1 and d not in bound]
    again = True
    while again:
        again = False
        for far, near in product(free, free):
            alike = (far in problem.folded) == (near in problem.folded)
            if far == near or not alike or extents[far] == 1 or extents[near] == 1:
                continue
            if all(own[far] == own[near] * extents[near] for own in steps):
                extents[near] *= extents[far]
                extents[far] = 1
                again = True
    gone = {d for d in free if extents[d] != problem.extents[d]}
    operands = tuple(
        replace(
            one,
            windows=tuple(tuple(t for t in w if t[0] not in gone) for w in one.windows),
            steps=tuple(0 if n == 1 else s for n, s in zip(extents, one.steps, strict=True)),
        )
        for one in problem.operands
    )
    return replace(problem, extents=tuple(extents), operands=operands)


def in_blocks(problem: Problem, terms: int = TERMS) -> Problem:
    """The same with long folded dimensions as two: blocks of so many terms, and what is in one."""
    bound = {dim for one in problem.operands for guard in one.guards for dim, _ in guard.terms}
    for dim in sorted(problem.folded - bound):
        extent = problem.extents[dim]
        fits = [n for n in range(max(2, terms // 4), terms + 1) if extent % n == 0]
        if extent <= terms or not fits:
            continue
        size, last = fits[-1], len(problem.extents)
        extents = list(problem.extents)
        extents[dim] = size
        operands = (
            replace(one, steps=(*one.steps, one.steps[dim] * size)) for one in problem.operands
        )
        problem = replace(
            problem,
            extents=(*extents, extent // size),
            folded=problem.folded | {last},
            operands=tuple(operands),
        )
    return problem


def _vector(problem: Problem, kept: Sequence[int]) -> int | None:
    """The dimension along which results and the first factor are dense, and the second is not.

    What is guarded moves along it: a number that all lanes have is read whatever guards say.
    """
    outs = problem.operands[len(problem.operands) - problem.results :]
    ins = [problem.operands[n] for n in problem.first]
    found: list[tuple[int, int]] = []
    for dim in kept:
        dense = all(one.steps[dim] == one.size for one in outs)
        whole = all(one.steps[dim] in range(0, STEPS * one.size + 1, one.size) for one in ins)
        read = all(one.steps[dim] or not one.guards for one in ins)
        moves = problem.moves(problem.first, dim), problem.moves(problem.second, dim)
        if dense and whole and read and moves == (True, False):
            found.append((problem.extents[dim], dim))
    return max(found)[1] if found else None


def sizes_of(
    problem: Problem,
    lanes: int,
    registers: int,
    vector: int,
    second: Sequence[int],
    first: Sequence[int],
    *,
    copied: bool = False,
) -> tuple[dict[int, int], float]:
    """How many places of some dimensions a tile has: those that take the least time, and that.

    Two products of vectors begin at once, and each takes four times as long as it takes until the
    next one may begin; two cells are read at once, and a vector that is not aligned counts for two.
    What is `copied` is neither computed again, nor anything but neighbours.
    """
    extents = problem.extents
    wide = -(-extents[vector] // lanes)
    long = [extents[second[0]] if second else 1, extents[first[0]] if first else 1]
    steps = (problem.operands[n] for n in problem.first)
    each = 2 if copied else sum(2 * one.steps[vector] // one.size or 1 for one in steps)
    work = 0 if copied else problem.work
    found: list[tuple[float, int, tuple[int, int, int]]] = []
    sides = (range(1, min(_ACROSS, long[0]) + 1), range(1, min(_DEEP, long[1]) + 1))
    for across, rows, columns in product(*sides, range(1, min(_DEEP, wide) + 1)):
        sums, vectors = across * rows * columns, rows * columns
        if sums > registers * 3 // 4 or sums + vectors + 2 > registers:
            continue
        parts = -(-long[0] // across) * -(-long[1] // rows) * -(-wide // columns)
        time = max(sums, each * vectors + across, 8) + work * vectors
        found.append((parts * time, -sums, (across, rows, columns)))
    time, _, (across, rows, columns) = min(found)
    made = {vector: columns}
    made |= dict.fromkeys(second, across) | dict.fromkeys(first, rows)
    return made, time


def _sliding(problem: Problem) -> set[int]:
    """The dimensions of windows that slide along what the second factor does not move along."""
    windows = (window for one in problem.operands for window in one.windows if len(window) > 1)
    far = problem.second
    return {
        dim
        for window in windows
        if any(d not in problem.folded and not problem.moves(far, d) for d, _ in window)
        for dim, _ in window
    }


def folded_order(problem: Problem, *, sliding_last: bool) -> list[int]:
    """The folded dimensions in order: those of windows last, or first."""
    sliding = _sliding(problem)
    dims = [d for d in problem.folded if problem.extents[d] > 1]
    far = problem.operands[problem.second[0]]
    return sorted(dims, key=lambda d: ((d in sliding) == sliding_last, -abs(far.steps[d]), d))


def _taps(problem: Problem, inner: Sequence[int], count: int) -> tuple[int, ...]:
    """The extents of the folded dimensions that are unrolled: the last ones, while it is little."""
    taps, sliding = [0] * len(inner), _sliding(problem)
    for n in reversed(range(len(inner))):
        count *= problem.extents[inner[n]]
        if inner[n] not in sliding or count > UNROLLED:
            break
        taps[n] = problem.extents[inner[n]]
    return tuple(taps)


def sums_apart(problem: Problem, inner: Sequence[int], taps: Sequence[int]) -> int:
    """How many outer folded dimensions have sums of their own at each place."""
    terms = prod(problem.extents[d] for d in inner)
    for n, dim in enumerate(inner):
        if terms <= TERMS or taps[n]:
            return n
        terms //= problem.extents[dim]
    return max(0, len(inner) - 1)


def access_of(one: Operand, dims: Sequence[int], vector: int, count: int) -> Access:
    """How an array is gone along in the order `dims`, of so many dimensions."""
    place = {dim: n for n, dim in enumerate(dims)}
    step = one.steps[vector]
    fits = step % one.size == 0 and 0 <= step <= STEPS * one.size
    shared: dict[int, list[tuple[int, int]]] = {}
    for number, window in enumerate(one.windows, count):
        for dim, factor in window:
            shared.setdefault(dim, []).append((number, factor))
    return Access(
        moves=tuple(one.steps[d] != 0 for d in dims),
        step=step // one.size if fits else SCATTERED,
        guards=tuple(
            Guard(tuple((place[d], f) for d, f in guard.terms if d in place), guard.offset)
            for guard in one.guards
        ),
        shared=tuple(tuple(shared.get(dim, [(dim, int(one.steps[dim] != 0))])) for dim in dims),
    )
