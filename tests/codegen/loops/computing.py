"""Functions of loops on arrays, and how far results are from what they should be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapestry.codegen.loops import Cell, Graph
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops.loop import Loop


def computed(function: Callable[..., Any], *given: Array) -> Array:
    """A function of numbers, of each of some float32 or float64."""
    kind = "float" if given[0].dtype == np.float32 else "double"
    count = len(given)
    cell = Cell(lambda write, values: function(write, *values), tuple(range(count)), kind)
    graph = Graph((kind,) * count, (), (cell,), (count,))
    (made,) = Loop(graph, given[0].shape)(given)
    return made


def units_off(made: Array, want: NDArray[np.longdouble]) -> NDArray[np.longdouble]:
    """How far results are, in units in the last place, where they are normal numbers."""
    with np.errstate(all="ignore"):
        rounded = want.astype(made.dtype)
        normal = np.abs(want) >= np.finfo(made.dtype).smallest_normal
        unit = np.spacing(np.abs(rounded))
        return np.abs((made - want) / unit)[normal & np.isfinite(rounded)]


def near_and_far(dtype: str) -> tuple[Array, Array]:
    """Numbers around 1 and much less, and numbers of any size and sign."""
    random = np.random.default_rng(0)
    limit = np.log(np.finfo(dtype).max)
    near = random.normal(0, 1, 50_000) * 2.0 ** random.uniform(-60, 3, 50_000)
    return near, np.exp(random.uniform(-limit, limit, 50_000)) * random.choice([-1, 1], 50_000)


def special(dtype: str) -> Array:
    """Numbers at which functions are of a kind of their own."""
    form = np.finfo(dtype)
    ones = [0.0, 0.5, 1.0, 2.0, 2.5, 3.0, np.inf, form.max, form.tiny, form.smallest_subnormal]
    return np.array([*ones, *(-one for one in ones), np.nan], dtype)


def assert_same_kinds(made: Array, want: Array) -> None:
    """The same infinities, NaN and zeros, and signs of all, and nearly the same numbers."""
    np.testing.assert_array_equal(np.isnan(made), np.isnan(want))
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(made)[known], np.signbit(want)[known])
    near = 16 * np.finfo(want.dtype).eps
    np.testing.assert_allclose(made[known], want[known], rtol=near, atol=0)
