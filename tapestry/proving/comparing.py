"""Whether two programs' outputs agree, each computed in float64 and in a wider type.

What float64 gets wrong says how much the wider type may: a share of that is the tolerance of each
tensor. Where the tolerance would be large against the numbers themselves, nothing can be said.

Cells far smaller than the largest are compared again by themselves, where they are known well: what
masks with -1e30 leaves tolerances that hide everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapestry.proving.doubled import BITS, DOUBLED, minus, plain
from tapestry.proving.floats import NARROW, WIDE
from tapestry.runtime.executor import Array

MARGIN = 64
"""How much worse a wide result may be than float64's error, scaled to its precision, suggests."""

LEAST = 2.0**-50
"""The least relative tolerance."""

WORST = 1e-6
"""The largest relative tolerance at which agreement still says something."""

TINY = 1e-6
"""The least size that a tolerance is judged against: what is smaller may be noise on zero."""

APART = 2.0**-40
"""Cells smaller than this share of the largest are compared by themselves too."""

_BITS = {WIDE: np.finfo(WIDE).nmant, DOUBLED: BITS}


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of one program on one input, in both float types."""

    wide: Sequence[Array]
    narrow: Sequence[Array]


@dataclass(frozen=True)
class Difference:
    """The first cell where two outputs part: its output, its place, both values, the tolerance."""

    output: int
    cell: tuple[int, ...]
    first: Any
    second: Any
    tolerance: float
    count: int
    size: int


def is_real(x: Array) -> bool:
    """Whether an output holds floats of a wide kind."""
    return x.dtype in (WIDE, DOUBLED)


class IllConditionedError(Exception):
    """The numbers are too uncertain to compare."""


def first_difference(a: Outputs, b: Outputs) -> Difference | None:
    """Where two programs' outputs part; IllConditionedError where nothing can be said."""
    for place in range(len(a.wide)):
        x, y = a.wide[place], b.wide[place]
        if not is_real(x):
            tolerance = 0.0
            parts = x != y
        else:
            tolerance = max(_tolerance(a, place), _tolerance(b, place))
            parts = _parts(x, y, tolerance)
            if not parts.any():
                tolerance, parts = _apart_among_small(a, b, place)
        if parts.any():
            cell = tuple(int(n) for n in np.argwhere(parts)[0])
            count = int(np.count_nonzero(parts))
            first, second = plain(x)[cell], plain(y)[cell]
            return Difference(place, cell, first, second, tolerance, count, x.size)
    return None


def _parts(x: Array, y: Array, tolerance: float) -> Array:
    near_x, near_y = plain(x), plain(y)
    finite = np.isfinite(near_x) & np.isfinite(near_y)
    with np.errstate(invalid="ignore"):
        apart = np.abs(np.where(finite, minus(x, y), 0)) > tolerance
    same = (near_x == near_y) | (np.isnan(near_x) & np.isnan(near_y))
    return apart | (~finite & ~same)


def _apart_among_small(a: Outputs, b: Outputs, place: int) -> tuple[float, Array]:
    """Where outputs part among cells far smaller than the largest, at a tolerance of their own.

    As long as those are known well: what is left of a cancellation is noise.
    """
    sizes = np.maximum(*(np.abs(plain(outputs.wide[place])) for outputs in (a, b)))
    within = np.isfinite(sizes)
    nowhere = np.zeros(sizes.shape, np.bool_)
    while True:
        within = within & (sizes < APART * np.max(sizes, where=within, initial=0))
        if not np.max(sizes, where=within, initial=0) >= TINY:
            return 0.0, nowhere
        try:
            tolerance = max(_tolerance(a, place, within), _tolerance(b, place, within))
        except IllConditionedError:
            return 0.0, nowhere
        parts = _parts(a.wide[place], b.wide[place], tolerance) & within
        if parts.any():
            return tolerance, parts


def _tolerance(outputs: Outputs, place: int, among: Array | None = None) -> float:
    """How well an output is known, or the cells `among` it."""
    wide, narrow = outputs.wide[place], outputs.narrow[place]
    finite = np.isfinite(plain(wide))
    if among is not None:
        finite &= among
    values = np.where(finite, plain(wide), 0)
    size = float(np.max(np.abs(values), initial=0))
    with np.errstate(invalid="ignore"):
        error = np.max(np.abs(np.where(finite, minus(wide, narrow), 0)), initial=0)
    scale = MARGIN * 2.0 ** (np.finfo(NARROW).nmant - _BITS[wide.dtype])
    tolerance = max(scale * float(error), LEAST * size)
    if not tolerance <= WORST * max(size, TINY):
        raise IllConditionedError(
            f"output {place} is known to {tolerance:.1e} only, and is {size:.1e} at most"
        )
    return tolerance
