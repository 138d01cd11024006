"""The default schedule of a kernel, and which ones are legal.

    >>> task = Task("product", "contraction", {"M": 4096, "N": 4096, "K": 4096}, cell=2)
    >>> str(default(task, Tiling()))
    'M = 128, N = 128, K = 64, warps = 8, stages = 3'
    >>> check(task, Schedule({"M": 128, "N": 128, "K": 8}))
    Traceback (most recent call last):
        ...
    tapestry.dialects._triton_schedule.ScheduleError: @product multiplies tiles along K: K = 8 is \
less than 16, the least side that tl.dot takes

A schedule is given to an operation as its attribute `schedule`, or by the option `schedules` of
`loom-to-triton`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from math import prod

from tapestry.dialects.triton import AGAIN, MAX_CELLS, VISITS, Schedule, ScheduleError
from tapestry.passes.triton.schedules.task import PROCESSORS, Task
from tapestry.passes.triton.schedules.tiling import MAX_SIDE, Tiling, least_side, power_of_two

MIN_AHEAD = 2
"""The least stages with which a step's cells are loaded ahead of it."""

GROUP = 8
"""How many blocks of rows take their columns together, where there are more."""

LANES = 32
"""The threads of a warp."""

FILLED = 4
"""How many blocks of rows per multiprocessor take their longest walks together."""


def default(task: Task, tiling: Tiling) -> Schedule:
    """The schedule of a kernel for which none is given.

    Sides of products that are many blocks are swizzled, rows with longer walks come first: of so
    many heads together that they fill the device some times, and what they read stays in the L2.
    """
    schedule = without_idle(task, _tiles(task, tiling))
    if task.swizzles and task.multiplied:
        rows, columns = (_blocks(task, schedule.tile, axis) for axis in task.grid[-2:])
        schedule = replace(schedule, swizzle=GROUP if rows > GROUP and columns > 1 else 1)
    if task.grows and "M" in task.grid and "M" in task.lengths:
        schedule = replace(schedule, order="descending")
    if task.staggers:
        blocks = -(-task.lengths["M"] // schedule.tile["M"])
        schedule = replace(schedule, swizzle=_floor_power(FILLED * PROCESSORS // blocks))
    return schedule


def without_idle(task: Task, schedule: Schedule) -> Schedule:
    """A schedule with no more warps than a tile has cells for: others compute the same again.

    Where tiles are multiplied, it is matrix units that say how many warps there are.
    """
    if task.multiplied:
        return schedule
    most = max(1, cells_of(schedule) // LANES)
    return replace(schedule, warps=min(schedule.warps, _floor_power(most)))


def cells_of(schedule: Schedule) -> int:
    """The cells of the largest tile: it has two axes at most, where nothing is multiplied.

    Keys that are matched are a tile of their own.
    """
    if schedule.visits != VISITS[0]:
        return max(schedule.tile.values())
    return prod(sorted(schedule.tile.values())[-2:])


def is_point_by_point(task: Task, schedule: Schedule) -> bool:
    """Whether the loop of a kernel along K is written out, point by point."""
    one = schedule.tile.get("K", 0) == 1
    return one and task.loops(schedule.tile) and task.lengths["K"] <= schedule.unroll


def _floor_power(n: int) -> int:
    """The largest power of two that is at most n; 1 for less."""
    return 1 << max(1, n).bit_length() - 1


def _tiles(task: Task, tiling: Tiling) -> Schedule:
    """The tiles of a kernel, with warps and stages."""
    n = task.lengths
    match task.kind:
        case "map":
            return tiling.points(n["P"]) if "P" in n else tiling.sides(n["M"], n["N"])
        case "scan":
            return tiling.fold(n["P"], n["K"])
        case "fold":
            return tiling.fold(n["P"], n["K"], across=task.across)
        case "contraction":
            return tiling.contraction(n["M"], n["N"], n["K"], cell=task.cell, split=task.split)
        case "group":
            return tiling.group(
                n,
                cell=task.cell,
                dots=task.dots,
                walks=task.walks,
                across=task.across,
                spread=task.spread_columns,
                split=task.split,
            )


def check(task: Task, schedule: Schedule) -> None:
    """Raise ScheduleError, which says what would be right, where a task cannot have a schedule."""
    tile = schedule.tile
    if set(tile) != set(task.lengths):
        raise ScheduleError(
            f"@{task.name} has tile axes {_listed(task.lengths)}; the schedule has {_listed(tile)}"
        )
    for axis in task.multiplied:
        least = least_side(axis, task.cell)
        if tile[axis] < least:
            raise ScheduleError(
                f"@{task.name} multiplies tiles along {axis}: {axis} = {tile[axis]} is less than "
                f"{least}, the least side that tl.dot takes"
            )
    for axis in sorted(task.held):
        if tile[axis] < task.lengths[axis]:
            raise ScheduleError(
                f"@{task.name} holds all {task.lengths[axis]} points along {axis} in one block: "
                f"{axis} = {tile[axis]} is too small, {power_of_two(task.lengths[axis])} would do"
            )
    if schedule.swizzle > 1 and not (task.swizzles or task.staggers):
        raise ScheduleError(
            f"@{task.name} has no blocks of rows and columns to swizzle: its programs are along "
            f"{', '.join(task.grid) or 'one axis'}"
        )
    if schedule.swizzle > 1 and schedule.swizzle * _blocks(task, tile, task.grid[-1]) >= 1 << 31:
        raise ScheduleError(
            f"@{task.name} has groups of 2^31 blocks or more with swizzle = {schedule.swizzle}"
        )
    if schedule.order == "descending" and not ("M" in task.grid and "M" in task.lengths):
        raise ScheduleError(f"@{task.name} has no blocks of rows whose order could be descending")
    if schedule.segments > 1 and not _has_boundary(task, tile):
        raise ScheduleError(
            f"@{task.name} has no boundary along K: no loop, or all blocks are full and inside"
        )
    if schedule.masks == "boundary" and not task.has_full(tile):
        raise ScheduleError(
            f"@{task.name} has no programs with full blocks beside others: along "
            f"{', '.join(task.grid) or 'no axis'}, all blocks are full, or there is one"
        )
    if schedule.extras == "early" and not task.extras:
        raise ScheduleError(f"@{task.name} reads nothing at the end of a walk that could be early")
    if schedule.parts > 1:
        _check_parts(task, schedule)
    if schedule.visits != VISITS[0]:
        _check_visits(task, schedule)
    if (schedule.pipeline == "loads" or schedule.unroll > 1) and not task.loops(tile):
        raise ScheduleError(
            f"@{task.name} has no loop of loads alone to unroll, or to load ahead in: "
            + ("it multiplies tiles" if task.multiplied else "one block covers K")
        )
    if schedule.pipeline == "loads" and schedule.stages < MIN_AHEAD:
        raise ScheduleError(
            f"@{task.name} loads ahead stages - 1 steps: stages = {schedule.stages} is less than "
            f"{MIN_AHEAD}"
        )
    if schedule.again != AGAIN[0] and not (task.walks > 1 and task.loops(tile)):
        raise ScheduleError(
            f"@{task.name} reads no rows again: they are walked once, or one block holds them"
        )
    if schedule.again != AGAIN[0] and (schedule.segments > 1 or schedule.masks != "always"):
        raise ScheduleError(
            f"@{task.name} is {schedule.again}: segments = 1 and masks = always go with that"
        )
    if schedule.loads == "descriptor" and not task.described:
        raise ScheduleError(
            f"@{task.name} has no tensor that a descriptor describes: along two axes, one of them "
            "with neighbours side by side, in rows of multiples of 16 bytes"
        )
    if schedule.loads == "descriptor" and sum(n <= MAX_SIDE for n in tile.values()) < 2:
        raise ScheduleError(
            f"@{task.name} has no block that a descriptor moves: these have {MAX_SIDE} rows and "
            "columns at most"
        )
    pairs = combinations(tile.values(), 2) if schedule.visits == VISITS[0] else ()
    for a, b in pairs:
        if a * b > MAX_CELLS:
            raise ScheduleError(f"@{task.name} has a tile of {a} x {b} cells; Triton's have 2^20")


def _check_visits(task: Task, schedule: Schedule) -> None:
    """Raise ScheduleError where points cannot be found by their keys."""
    if not task.matches:
        raise ScheduleError(
            f"@{task.name} has no points to find: what it folds is not chosen by whether a number "
            "that varies along the fold alone is the row"
        )
    plain = replace(schedule, visits=VISITS[0], unroll=1, pipeline="products", segments=1, parts=1)
    if schedule != replace(plain, visits=schedule.visits):
        raise ScheduleError(
            f"@{task.name} visits what is {schedule.visits}: segments = 1, unroll = 1, parts = 1 "
            "and pipeline = products go with that"
        )


def _check_parts(task: Task, schedule: Schedule) -> None:
    """Raise ScheduleError where programs cannot share the fold of each point."""
    if not task.atomic:
        raise ScheduleError(
            f"@{task.name} has no fold whose parts memory merges: a sum of 32 or 64 bits, or a "
            "maximum or minimum of integers"
        )
    if task.lengths.get("K", 1) <= schedule.tile.get("K", 1):
        raise ScheduleError(f"@{task.name} has one block along K, and no parts to share")
    if schedule.programs or schedule.segments > 1:
        raise ScheduleError(
            f"@{task.name} is shared in {schedule.parts} parts: programs = 0 and segments = 1 go "
            "with that"
        )
    size = schedule.tile.get("K", 1)
    steps = -(-task.lengths["K"] // (schedule.parts * size))
    if schedule.parts * steps * size >= 1 << 31:
        raise ScheduleError(
            f"@{task.name} has parts of 2^31 points together or more, with parts = "
            f"{schedule.parts} and K = {size}: of its {task.lengths['K']} points, "
            f"{-(-task.lengths['K'] // size)} parts have some"
        )


def _blocks(task: Task, tile: Mapping[str, int], axis: str) -> int:
    """How many blocks an axis has."""
    return -(-task.lengths[axis] // tile[axis])


def _has_boundary(task: Task, tile: Mapping[str, int]) -> bool:
    """Whether a loop along K has blocks that are masked, and may have others."""
    length, size = task.lengths.get("K", 1), tile.get("K", 1)
    return length > size and (task.bounded or length % size != 0)


def is_legal(task: Task, schedule: Schedule) -> bool:
    """Whether a task can have a schedule."""
    try:
        check(task, schedule)
    except ScheduleError:
        return False
    return True


def _listed(axes: Mapping[str, int]) -> str:
    return ", ".join(axes) or "none"
