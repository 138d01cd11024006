"""What a kernel's schedule may be: the default, which are legal, and those worth measuring.

A *task* is what a schedule is chosen for: the tile axes of a kernel with their lengths, and what is
done along them. The lowering makes it from projections and bodies; no operation is known by name.

    >>> task = Task("product", "contraction", {"M": 4096, "N": 4096, "K": 4096}, half=True)
    >>> schedule = next(candidates(task))
    >>> schedule == default(task, Tiling())
    True
    >>> check(task, Schedule({"M": 128, "N": 128, "K": 8}))
    Traceback (most recent call last):
        ...
    tapestry.dialects._triton_schedule.ScheduleError: @product multiplies tiles along K: K = 8 is \
less than 16, the least side that tl.dot takes

`tasks(module)` are the tasks of a program. A schedule is given to an operation as its attribute
`schedule`, or by the option `schedules` of `loom-to-triton`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import prod
from types import MappingProxyType
from typing import Final, Literal

from tapestry.dialects.triton import AGAIN, LOADS, MAX_CELLS, Schedule, ScheduleError
from tapestry.passes.triton.schedules.tiling import (
    MAX_SHARED_BYTES,
    MIN_DOT,
    Tiling,
    group_bytes,
    power_of_two,
)

Kind = Literal["map", "fold", "scan", "contraction", "group"]

SCHEDULE = "schedule"
"""The attribute of an operation that says its schedule."""

GROUP = 8
"""How many blocks of rows take their columns together, where there are more."""

PROCESSORS = 132
"""The multiprocessors of a Hopper GPU: as many persistent programs run at once."""

FILLED = 4
"""How many blocks of rows per multiprocessor take their longest walks together."""

MIN_AHEAD, AHEAD = 2, 4
"""The least stages with which a step's cells are loaded ahead of it, and what is tried."""

UNROLLED = 4
"""How many steps of a loop are tried one after another."""

REGISTERS = 255
"""What a thread has on every target."""


@dataclass(frozen=True)
class Task:
    """What a schedule is chosen for.

    `lengths` has the tile axes, in order, and the most points of each in a shard; 1 where it is
    unknown. `half` says that 16-bit factors are multiplied, `split` that those of float32 are taken
    apart, `dots` that a group multiplies tiles at all, `sums` how many products of rows and columns
    it sums along K. `grid` are the axes that programs are spread over, and `held` those that one
    block has to hold. An `ordered` fold takes one point at a time; one `across` memory has points
    that lie side by side; rows are read in `walks` walks. `described` says that some tensor can be
    moved by descriptors, `bounded` that a domain ends or starts walks along K, `grows` that they
    are longer for later rows. States of an `atomic` fold are merged by memory itself.
    """

    name: str
    kind: Kind
    lengths: Mapping[str, int]
    half: bool = False
    split: bool = False
    dots: bool = False
    sums: int = 1
    grid: tuple[str, ...] = ()
    held: frozenset[str] = field(default_factory=frozenset[str])
    ordered: bool = False
    across: bool = False
    walks: int = 1
    described: bool = False
    bounded: bool = False
    grows: bool = False
    atomic: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", MappingProxyType(dict(self.lengths)))

    def __hash__(self) -> int:
        return hash((self.name, self.kind, tuple(self.lengths.items())))

    @property
    def multiplied(self) -> tuple[str, ...]:
        """The axes that are sides of a `tl.dot`."""
        return tuple(self.lengths) if self.kind == "contraction" or self.dots else ()

    @property
    def spread_columns(self) -> tuple[str, ...]:
        """The columns of products that programs are spread over, in blocks as rows are.

        Where an inner fold is folded again for each block of these, blocks are as long as can be.
        """
        folds_inside = any(axis.startswith("C") for axis in self.lengths)
        columns = (axis for axis in self.grid if axis.startswith("N") and axis in self.lengths)
        return tuple(columns) if self.dots and not folds_inside else ()

    @property
    def swizzles(self) -> bool:
        """Whether programs are along blocks of rows and of columns."""
        return len(self.grid) > 1 and all(axis in self.lengths for axis in self.grid[-2:])

    @property
    def staggers(self) -> bool:
        """Whether blocks of rows with longer walks can come first for many heads together."""
        last = self.grid[-1:] == ("M",) and "M" in self.lengths
        return self.grows and last and len(self.grid) > 1 and self.grid[-2] not in self.lengths

    def loops(self, tile: Mapping[str, int]) -> bool:
        """Whether there is a loop along K that multiplies nothing."""
        return not self.multiplied and self.lengths.get("K", 1) > tile.get("K", 1)

    def has_full(self, tile: Mapping[str, int]) -> bool:
        """Whether some programs have full blocks of the axes that are masked in others."""
        sides = [(self.lengths[a], tile[a]) for a in self.grid if a in self.lengths]
        masked = [(length, size) for length, size in sides if length % size]
        return bool(masked) and all(length > size for length, size in masked)


def default(task: Task, tiling: Tiling) -> Schedule:
    """The schedule of a kernel for which none is given.

    Sides of products that are many blocks are swizzled, rows with longer walks come first: of so
    many heads together that they fill the device some times, and what they read stays in the L2.
    """
    schedule = _tiles(task, tiling)
    if task.swizzles and task.multiplied:
        rows, columns = (_blocks(task, schedule.tile, axis) for axis in task.grid[-2:])
        schedule = replace(schedule, swizzle=GROUP if rows > GROUP and columns > 1 else 1)
    if task.grows and "M" in task.grid and "M" in task.lengths:
        schedule = replace(schedule, order="descending")
    if task.staggers:
        blocks = -(-task.lengths["M"] // schedule.tile["M"])
        schedule = replace(schedule, swizzle=_floor_power(FILLED * PROCESSORS // blocks))
    return schedule


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
            return tiling.fold(n["P"], n["K"], ordered=task.ordered, across=task.across)
        case "contraction":
            return tiling.contraction(n["M"], n["N"], n["K"], half=task.half, split=task.split)
        case "group":
            return tiling.group(
                n,
                half=task.half,
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
        if tile[axis] < MIN_DOT:
            raise ScheduleError(
                f"@{task.name} multiplies tiles along {axis}: {axis} = {tile[axis]} is less than "
                f"{MIN_DOT}, the least side that tl.dot takes"
            )
    for axis in sorted(task.held):
        if tile[axis] < task.lengths[axis]:
            raise ScheduleError(
                f"@{task.name} holds all {task.lengths[axis]} points along {axis} in one block: "
                f"{axis} = {tile[axis]} is too small, {power_of_two(task.lengths[axis])} would do"
            )
    if task.ordered and tile["K"] != 1:
        raise ScheduleError(f"@{task.name} folds in order: K = {tile['K']} has to be 1")
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
    if schedule.parts > 1:
        _check_parts(task, schedule)
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
    for a, b in combinations(tile.values(), 2):
        if a * b > MAX_CELLS:
            raise ScheduleError(f"@{task.name} has a tile of {a} x {b} cells; Triton's have 2^20")


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
    for schedule in (v for base in _family(task, first) for v in _versions(task, base)):
        if schedule.loads == "descriptor" and not descriptors:
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
        yield from _rows(task, first)


def _versions(task: Task, schedule: Schedule) -> Iterator[Schedule]:
    """A schedule, and what differs from it only in where masks are, and what loops wait for."""
    yield schedule
    if task.multiplied:
        # Code of products is long, and does not wait for masks.
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
    for (m, n), k, warps, stages in product(_SIDES, (64, 32, 128), (8, 4), (3, 4, 2)):
        tile = _clipped(task, {"M": m, "N": n, "K": k}, least=MIN_DOT)
        schedule = replace(first, tile=tile, warps=warps, stages=stages)
        yield schedule
        yield from _shared_out(task, schedule)


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
        tile = _clipped(task, sized, least=MIN_DOT)
        schedule = replace(first, tile=tile, warps=warps, stages=stages)
        for loads, segments in product(LOADS, (1, 2)):
            if task.described or loads == LOADS[0]:
                yield replace(schedule, loads=loads, segments=segments)


_DEPTHS: Final = (1024, 2048, 4096, 8192, 16384, 32768)
"""Columns of a step of a row."""

_WIDE: Final = 16
"""The least cells of a row that each thread has in a step, where there are 32 warps: all of them
wait for each other when a step is folded, which less is not worth."""


def _rows(task: Task, first: Schedule) -> Iterator[Schedule]:
    rows = "M" if "M" in task.lengths else "P"
    depth = "K" if "K" in task.lengths else "N"
    if depth not in task.lengths:
        return
    whole = power_of_two(task.lengths[depth])
    if rows not in task.lengths:
        # A program is at one row; tiles are of the others.
        for k, warps in product((whole, 16, 32, 64, 128, 256), (4, 8)):
            yield replace(first, tile=_clipped(task, {**first.tile, depth: k}), warps=warps)
        return
    for k, m, warps in product((whole, *_DEPTHS), (1, 2, 4, 16, 64), (4, 8, 16, 32)):
        tile = _clipped(task, {**first.tile, rows: m, depth: k})
        wide = tile[rows] * tile[depth] >= _WIDE * 32 * warps
        if 512 <= m * k <= 32768 and (warps <= 16 or wide):
            yield replace(first, tile=tile, warps=warps)


def _clipped(task: Task, tile: Mapping[str, int], least: int = 1) -> dict[str, int]:
    """A tile no larger than what there is, of the task's axes in order."""
    return {
        axis: max(least, min(tile[axis], power_of_two(length)))
        for axis, length in task.lengths.items()
    }


def _fits(task: Task, schedule: Schedule) -> bool:
    """Whether tiles fit registers and shared memory."""
    tile, threads = schedule.tile, 32 * schedule.warps
    if not task.multiplied:
        # A tile has two axes at most.
        largest = sorted(tile.values())[-2:]
        return prod(largest) <= threads * REGISTERS // 2
    size = 2 if task.half else 4
    if task.kind == "contraction":
        shared = size * schedule.stages * tile["K"] * (tile["M"] + tile["N"])
        if schedule.programs and schedule.loads == "descriptor":
            # The next block is loaded while one is stored.
            shared += size * tile["M"] * tile["N"]
        return shared <= MAX_SHARED_BYTES and _held(tile["M"] * tile["N"], threads)
    deep = [a for a, n in task.lengths.items() if a.startswith("C") and n > tile[a]]
    shared = group_bytes(tile, deep, schedule.stages, half=task.half)
    columns = sum(tile[a] for a in task.held) + task.sums * sum(
        tile[a] for a in task.spread_columns
    )
    cells = tile["M"] * (tile.get("K", 1) + columns)
    return shared <= MAX_SHARED_BYTES and _held(cells, threads)


def _held(cells: int, threads: int) -> bool:
    """Whether float32 accumulators leave threads some registers."""
    return cells <= threads * (REGISTERS - 63)


def _listed(axes: Mapping[str, int]) -> str:
    return ", ".join(axes) or "none"
