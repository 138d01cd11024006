"""What a kernel is tried with when it does not run: the rungs of a ladder, each more careful.

    GIVEN      the schedule that is given, or chosen by the cost model, else the default
    DEFAULT    the default schedule
    WAITING    that with one stage: loops wait for their loads, and for their products
    SMALL      the least tiles, one stage, four warps: what fits any GPU, if anything does
    APART      that, without `tl.dot`, and each member of a group in a kernel of its own

Every rung computes the same; only its speed differs.

    >>> task = Task("product", "contraction", {"M": 4096, "N": 4096, "K": 4096}, cell=2)
    >>> str(smallest(task))
    'M = 16, N = 16, K = 16, warps = 4, stages = 1'
"""

from __future__ import annotations

from enum import IntEnum
from math import prod

from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.schedules.tiling import least_side, power_of_two

_DEPTH = 64
_CELLS = 1024
"""Cells of a tile: eight for each thread of four warps."""


class Rung(IntEnum):
    """How careful a kernel is made."""

    GIVEN = 0
    DEFAULT = 1
    WAITING = 2
    SMALL = 3
    APART = 4

    @property
    def said(self) -> str:
        """What a kernel on this rung is made with."""
        return {
            Rung.GIVEN: "the schedule given or chosen for it",
            Rung.DEFAULT: "the default schedule",
            Rung.WAITING: "the default schedule, with one stage",
            Rung.SMALL: "the smallest schedule",
            Rung.APART: "the smallest schedule, without tl.dot, in kernels of its own",
        }[self]


def smallest(task: Task) -> Schedule:
    """The legal schedule of a task that takes least of a GPU."""
    tile = {a: least_side(a, task.cell) if task.multiplied else 1 for a in task.lengths}
    for axis, length in task.lengths.items():
        whole = power_of_two(length)
        if axis in task.held:
            tile[axis] = max(whole, tile[axis])
        elif axis == "K" and not task.multiplied:
            tile[axis] = min(whole, _DEPTH)
    rows = next(iter(task.lengths))
    if rows not in task.held and not task.multiplied:
        tile[rows] = min(power_of_two(task.lengths[rows]), max(1, _CELLS // prod(tile.values())))
    return Schedule(tile, warps=4, stages=1)
