"""The schedules of a kernel that are worth measuring.

    >>> task = Task("product", "contraction", {"M": 4096, "N": 4096, "K": 4096}, cell=2)
    >>> first, second, *others = candidates(task)
    >>> first == default(task, Tiling()), str(second)
    (True, 'M = 128, N = 256, K = 64, warps = 8, stages = 3')

The default comes first; around it are other sizes of blocks, and versions that differ in where
masks are, and in what loops wait for. All are legal, and fit the registers and shared memory of
Hopper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Final

from tapestry.dialects.triton import AGAIN, EXTRAS, LOADS, VISITS, Schedule
from tapestry.passes.triton.schedules.schedule import (
    LANES,
    cells_of,
    default,
    is_legal,
    without_idle,
)
from tapestry.passes.triton.schedules.task import PROCESSORS, Task
from tapestry.passes.triton.schedules.tiling import (
    MAX_SHARED_BYTES,
    MIN_DOT,
    Tiling,
    group_bytes,
    least_side,
    power_of_two,
)

STAGES = (3, 4, 2)
"""The stages that products are tried with."""

AHEAD = 4
"""The stages with which a step's cells are tried to be loaded ahead of it."""

UNROLLED = 4
"""How many steps of a loop are tried one after another."""

_MOVED = 4
"""Bytes of the largest cells of factors that come by descriptors: of float64 threads hold 30 to 130
registers more than by pointers, and spill."""

REGISTERS = 255
"""What a thread has on every target."""


def candidates(
    task: Task, tiling: Tiling | None = None, *, descriptors: bool = False
) -> Iterator[Schedule]:
    """Legal schedules of a task that may be fast, the default first, each once.

    They fit the shared memory and the registers of Hopper, as far as that is known beforehand.
    Those with `descriptors` need memory of their own at each launch, which not every host gives.
    """
    first = default(task, tiling or Tiling())
    seen = {first}
    yield first
    family = (without_idle(task, one) for one in _family(task, first))
    for schedule in (v for base in family for v in _versions(task, base)):
        if schedule.loads == "descriptor" and not (descriptors and task.cell <= _MOVED):
            continue
        if schedule not in seen and is_legal(task, schedule) and _fits(task, schedule):
            seen.add(schedule)
            yield schedule


def _family(task: Task, first: Schedule) -> Iterator[Schedule]:
    """Schedules around the default, by what the kernel does."""
    if task.kind == "contraction":
        yield from _products(task, first)
    elif task.dots:
        yield from _groups(task, first)
    elif task.kind == "map" and "M" in task.lengths:
        for m, n, warps in product((64, 32, 128), (64, 32, 128), (4, 8)):
            yield replace(first, tile=_clipped(task, {"M": m, "N": n}), warps=warps)
    elif task.kind == "map":
        for cells, warps in product((512, 1024, 2048, 4096, 8192), (4, 8)):
            yield replace(first, tile=_clipped(task, {"P": cells}), warps=warps)
    else:
        if task.matches:
            yield from _matching(task, first)
        yield from _rows(task, first)


def _versions(task: Task, schedule: Schedule) -> Iterator[Schedule]:
    """A schedule, and what differs from it only in where masks are, and what loops wait for."""
    yield schedule
    if schedule.visits != VISITS[0]:
        return
    if task.multiplied:
        # Code of products is long, and does not wait for masks.
        return
    if schedule.unroll > 1:
        # Its loop is written out: there is no other way to walk.
        yield replace(schedule, masks="boundary")
        return
    for segments, masks in ((2, "always"), (1, "boundary"), (2, "boundary")):
        yield replace(schedule, segments=segments, masks=masks)
    for again in AGAIN[1:]:
        yield replace(schedule, again=again)
    for segments in (1, 2):
        yield replace(schedule, segments=segments, unroll=UNROLLED)
        yield replace(schedule, segments=segments, pipeline="loads", stages=AHEAD)


_SIDES: Final = (
    *((128, 256), (256, 128), (128, 128), (64, 256), (64, 128), (128, 64), (64, 64)),
    *((32, 128), (16, 128), (16, 64), (32, 64)),
)
"""Rows and columns of tiles of products; the last are for few rows."""


def _products(task: Task, first: Schedule) -> Iterator[Schedule]:
    for (m, n), k, warps, stages in product(_SIDES, (64, 32, 128), (8, 4), STAGES):
        tile = _clipped(task, {"M": m, "N": n, "K": k})
        schedule = replace(first, tile=tile, warps=warps, stages=stages)
        for one in (schedule, *_shared_out(task, schedule)):
            yield one
            # Programs that share blocks load what ends one beside the steps of the next.
            if task.extras and not one.programs:
                yield replace(one, extras=EXTRAS[1])


def _shared_out(task: Task, schedule: Schedule) -> Iterator[Schedule]:
    """A schedule with descriptors and persistent programs, where tiles are large."""
    if schedule.tile["M"] * schedule.tile["N"] < 128 * 128:
        return
    for loads, programs in product(LOADS, (0, PROCESSORS)):
        if (loads == "descriptor" or programs) and (loads == "pointer" or task.described):
            yield replace(schedule, loads=loads, programs=programs)


def _groups(task: Task, first: Schedule) -> Iterator[Schedule]:
    columns = task.spread_columns
    sides = _SIDES if columns else ((128, 0), (64, 0))
    depths = (64, 128, 32)
    if task.split:
        # Threads hold parts of what they multiply: small blocks leave them registers.
        sides, depths = (*sides, *(() if columns else ((32, 0),))), (*depths, MIN_DOT)
    for (m, n), k, warps, stages in product(sides, depths, (8, 4), (3, 2, 4)):
        sized = {**first.tile, **dict.fromkeys(columns, n), "M": m, "K": k}
        tile = _clipped(task, sized)
        schedule = replace(first, tile=tile, warps=warps, stages=stages)
        for loads, segments in product(LOADS, (1, 2)):
            if task.described or loads == LOADS[0]:
                yield replace(schedule, loads=loads, segments=segments)


_DEPTHS: Final = (1024, 2048, 4096, 8192, 16384, 32768)
"""Columns of a step of a row."""

_SHORT: Final = 64
"""The most points that are folded one by one, each in code of its own."""

_WIDE: Final = 16
"""The least cells of a row that each thread has in a step, where there are 32 warps: all of them
wait for each other when a step is folded, which less is not worth."""


def _rows(task: Task, first: Schedule) -> Iterator[Schedule]:
    rows = "M" if "M" in task.lengths else "P"
    depth = "K" if "K" in task.lengths else "N"
    if depth not in task.lengths:
        return
    whole = power_of_two(task.lengths[depth])
    if task.kind == "fold" and 1 < whole <= _SHORT:
        for cells, warps in product((512, 256, 1024, 2048), (4, 8)):
            tile = _clipped(task, {rows: cells, depth: 1})
            yield replace(first, tile=tile, warps=warps, unroll=whole)
    if rows not in task.lengths:
        # A program is at one row; tiles are of the others.
        for k, warps in product((whole, 16, 32, 64, 128, 256), (4, 8, 2)):
            yield replace(first, tile=_clipped(task, {**first.tile, depth: k}), warps=warps)
        return
    for k, m, warps in product((whole, *_DEPTHS), (1, 2, 4, 16, 64), (4, 8, 16, 32)):
        tile = _clipped(task, {**first.tile, rows: m, depth: k})
        cells = tile[rows] * tile[depth]
        wide = cells >= _WIDE * LANES * warps
        # Of short rows a warp takes several: one leaves it threads without cells.
        full = cells >= LANES or tile[rows] >= task.lengths[rows]
        if 512 <= m * k <= 32768 and full and (warps <= 16 or wide):
            yield replace(first, tile=tile, warps=warps)


def _matching(task: Task, first: Schedule) -> Iterator[Schedule]:
    """Schedules that look for the points that count: many rows share what it takes to look."""
    for cells, keys, warps in product(_MATCHING, (1024, 2048), (4, 8)):
        tile = _clipped(task, {"P": cells, "K": keys})
        yield replace(first, tile=tile, warps=warps, visits=VISITS[1])


_MATCHING: Final = (16384, 8192, 4096, 2048, 1024, 512)
"""The cells of programs that look for points that count."""


def _clipped(task: Task, tile: Mapping[str, int]) -> dict[str, int]:
    """A tile no larger than what there is, or can be multiplied, of the axes in order."""
    multiplied = task.multiplied
    return {
        axis: max(
            least_side(axis, task.cell) if axis in multiplied else 1,
            min(tile[axis], power_of_two(length)),
        )
        for axis, length in task.lengths.items()
    }


def _fits(task: Task, schedule: Schedule) -> bool:
    """Whether tiles fit registers and shared memory."""
    tile, threads = schedule.tile, LANES * schedule.warps
    if not task.multiplied:
        return cells_of(schedule) <= threads * REGISTERS // 2
    size = task.cell
    if task.kind == "contraction":
        shared = size * schedule.stages * tile["K"] * (tile["M"] + tile["N"])
        if schedule.programs and schedule.loads == "descriptor":
            # The next block is loaded while one is stored.
            shared += size * tile["M"] * tile["N"]
        return shared <= MAX_SHARED_BYTES and _held(task, tile["M"] * tile["N"], threads)
    deep = [a for a, n in task.lengths.items() if a.startswith("C") and n > tile[a]]
    shared = group_bytes(tile, deep, schedule.stages, cell=task.cell)
    columns = sum(tile[a] for a in task.held) + task.sums * sum(
        tile[a] for a in task.spread_columns
    )
    cells = tile["M"] * (tile.get("K", 1) + columns)
    return shared <= MAX_SHARED_BYTES and _held(task, cells, threads)


def _held(task: Task, cells: int, threads: int) -> bool:
    """Whether accumulators, of float32 at least, leave threads some registers."""
    return cells * max(1, task.cell // 4) <= threads * (REGISTERS - 63)
