"""What a kernel takes at least with another schedule, known before it is built.

    least = least_of(task, default, works, grids, find_spec("h200"))
    least(Schedule({"M": 128, "N": 64, "K": 32}))       # if it does not fit, or spills; seconds

Of a kernel of products that share their rows, columns and terms it is known how many programs there
are, and how often each multiplies tiles of which size. Work of that alone, which loads nothing and
holds no more than a sum, takes no longer than the kernel: in the model more bytes, operations,
registers and shared memory never take less time. For products of float32 that multiply parts of
their factors it is most of what they take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import prod

from tapestry.devices import DeviceSpec
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.cost.calls import Call
from tapestry.passes.triton.cost.lanes import split_lanes
from tapestry.passes.triton.cost.predicting import summed
from tapestry.passes.triton.cost.ranking import BEST, Least, Worth, worth_of
from tapestry.passes.triton.cost.roofline import estimate_of
from tapestry.passes.triton.cost.work import Work
from tapestry.passes.triton.schedules.task import Task

_SUM = 4
"""Bytes of a cell of a sum, at least."""

_FREE = ("tile", "warps", "stages", "loads", "programs", "segments", "extras")
"""What decides that together with lengths, or not at all: several loops along an axis, such as one
for whole blocks, take its steps together."""

Counted = tuple[Work, Call, int]
"""What a launch does with the default schedule, the launch, and how many there are of it."""


def least_of(task: Task, default: Schedule, counted: Sequence[Counted], spec: DeviceSpec) -> Least:
    """What bounds the worth of a task's schedules from below; nothing where too little is known."""
    if not all(_is_plain(task, default, work, call) for work, call, _ in counted):
        return lambda _: BEST

    @cache
    def worth(tile: tuple[int, int, int], warps: int, programs: int) -> Worth:
        alone = [
            (_products_alone(work, call, task, tile, warps, programs, spec), count)
            for work, call, count in counted
        ]
        return worth_of(summed([(estimate_of(work, spec), count) for work, count in alone]))

    def least(schedule: Schedule) -> Worth:
        if not _is_alike(schedule, default):
            return BEST
        return worth(_tile(schedule), schedule.warps, schedule.programs)

    return least


def _is_plain(task: Task, default: Schedule, work: Work, call: Call) -> bool:
    """Whether a launch makes products of whole blocks, each program in as many steps."""
    if set(task.lengths) != {"M", "N", "K"} or task.bounded or task.grows or work.walks:
        return False
    if default.programs or not work.products:
        return False
    if any(axis.block not in (None, "BLOCK_M", "BLOCK_N") for axis in call.grid):
        return False
    m, n, k = _tile(default)
    steps = -(-task.lengths["K"] // k)
    return all((one.m, one.n, one.k, one.count) == (m, n, k, steps) for one in work.products)


def _tile(schedule: Schedule) -> tuple[int, int, int]:
    """The rows, columns and terms of a product's tiles."""
    return schedule.tile["M"], schedule.tile["N"], schedule.tile["K"]


def _is_alike(schedule: Schedule, default: Schedule) -> bool:
    """Whether schedules differ in nothing that decides how often tiles are multiplied."""
    return schedule.besides(*_FREE) == default.besides(*_FREE)


def _products_alone(
    work: Work,
    call: Call,
    task: Task,
    tile: tuple[int, int, int],
    warps: int,
    programs: int,
    spec: DeviceSpec,
) -> Work:
    """What a launch does of its products, if tiles have m rows, n columns, and k terms each."""
    m, n, k = tile
    sizes = {"BLOCK_M": m, "BLOCK_N": n}
    pairs = zip(call.grid, call.lengths(), strict=True)
    blocks = prod(
        length if axis.block is None else -(-length // sizes[axis.block]) for axis, length in pairs
    )
    programs = min(blocks, programs or blocks)
    # Of the programs that share blocks each takes so many at least; where no two of them share a
    # multiprocessor, all wait for those that take one more.
    alone = programs <= spec.multiprocessors
    each = -(-blocks // programs) if alone else blocks // programs
    count = -(-task.lengths["K"] // k) * each
    products = tuple(replace(one, m=m, n=n, k=k, count=float(count)) for one in work.products)
    split = sum(product.is_split for product in products)
    lanes = split_lanes(m, n, k, warps) * count * split
    return Work(
        programs=programs,
        warps=warps,
        stages=1,
        steps=0.0,
        streams=(),
        products=products,
        lanes=lanes,
        waiting_lanes=lanes,
        specials=0.0,
        requests=0.0,
        live=_SUM * m * n,
        walking=_SUM * m * n,
        staged=0,
        passing=0,
        direct=0,
        rows=0.0,
        descriptors=0,
        held=0,
        exchanged=0,
        late=0.0,
        addresses=0,
        buffers=work.buffers,
    )
