"""Inputs at the edges of their types, and around the numbers that programs name.

    >>> edge_values(np.dtype(np.int8), ()).size
    256
    >>> [int(x) for x in edge_values(np.dtype(np.int32), (1000,)) if 990 < x < 1010]
    [999, 1000, 1001]

Random numbers of moderate size see neither what wraps nor what overflows, nor a bound that a rule
writes as 1000000. These do: the least and largest integers, infinities, NaN, zeros, huge and tiny
floats, and each literal with its neighbours. The values of an 8-bit type are all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, Final

import ml_dtypes
import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, i1

from tapestry.dialects import loom
from tapestry.proving.covering import sites
from tapestry.proving.inputs import Draw
from tapestry.runtime.executor import Array

MAX_LITERALS: Final = 16
"""Literals of two programs that inputs are drawn around."""

MAX_ROUNDS: Final = 16
"""Inputs per kind: as many as show each value once, at most this many."""

_FLOATS: Final = (
    *(0.0, -0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0, 0.1, 20.0, 100.0, 1000.0, 2000.0),
    *(16777217.0, 1e9, 1e16, 1e20, 1e38, 2e38, 1e-8, 1e-20, 1e-38, 1e-45, np.inf, np.nan),
)

_WIDTHS: Final = (7, 8, 11, 15, 16, 24, 31, 32, 53)
"""Powers of two around which narrower types wrap or round."""

_MODERATE: Final = 1e4


def literals_of(*modules: ModuleOp) -> tuple[float, ...]:
    """The finite numbers that programs name, each once; not zero, which every type's edges have."""
    found: dict[float, None] = {}
    for op in (op for module in modules for op in module.walk()):
        value: float | int | None = None
        match op:
            case arith.ConstantOp(value=FloatAttr() as number):
                value = number.value.data
            case arith.ConstantOp(value=IntegerAttr() as number):
                value = number.value.data
            case loom.ConstantOp() if op.splat is not None:
                value = op.splat.item()
            case _:
                continue
        if value is not None and isfinite(value) and value:
            found[value] = None
    return tuple(found)[:MAX_LITERALS]


def compared_numbers(*modules: ModuleOp) -> tuple[float, ...]:
    """The finite numbers that cells are compared with, and what is between two; but not zero."""
    found: dict[float, None] = {}
    for site in (site for module in modules for site in sites(module)):
        for operand in site.op.operands:
            match operand.owner:
                case arith.ConstantOp(value=FloatAttr() | IntegerAttr() as number):
                    if operand.type != i1 and isfinite(number.value.data):
                        found[number.value.data] = None
                case _:
                    pass
    numbers = sorted(tuple(found)[:MAX_LITERALS])
    between = [(one + other) / 2 for one, other in pairwise(numbers)]
    return tuple(number for number in (*numbers, *between) if number)


def edge_values(dtype: np.dtype[Any], literals: Sequence[float]) -> Array:
    """The values of a type that are worth trying."""
    if dtype == np.bool_:
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        if dtype.itemsize == 1:
            return np.arange(low, high + 1).astype(dtype)
        near = {low, low + 1, high - 1, high, *range(-3, 4), 100, -100}
        for middle in (*(2**width for width in _WIDTHS), *map(round, literals)):
            near.update((middle - 1, middle, middle + 1, -middle))
        return np.array(sorted(x for x in near if low <= x <= high), dtype)
    with np.errstate(all="ignore"):
        positive = np.array([*_FLOATS, *map(float, literals)]).astype(dtype)
        named = np.array([float(x) for x in literals]).astype(dtype)
        steps = np.array([1 - 2.0**-6, 1 + 2.0**-6, 2, 4]).astype(dtype)
        beside = [np.nextafter(named, named.dtype.type(end)) for end in (-np.inf, np.inf)]
        largest = float(ml_dtypes.finfo(dtype).max)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        most = np.array([0.5 * largest, 0.75 * largest, largest]).astype(dtype)
        positive = np.concatenate([positive, most])
        values = [positive, -positive, *beside, (named[:, None] * steps).reshape(-1)]
    return np.concatenate(values)


def edge_inputs(
    arguments: Sequence[tuple[np.dtype[Any], tuple[int, ...]]],
    literals: Sequence[float],
    *,
    moderate: bool = False,
) -> Iterator[list[Array]]:
    """Inputs of moderate size first; then of all sizes; then NaN, too, which spoils whole folds.

    With `moderate`, only the first.
    """
    rng = np.random.default_rng(0)
    whole = [edge_values(dtype, literals) for dtype, _ in arguments]
    limit = max([_MODERATE, *(8.0 * abs(x) for x in literals)])
    kinds = [[pool[_is_at_most(pool, limit)] for pool in whole]]
    if not moderate and any(pool.dtype.kind not in "iub" for pool in whole):
        kinds += [[pool[_is_at_most(pool, np.inf)] for pool in whole], whole]
    for pools in kinds:
        sizes = [int(np.prod(shape)) for _, shape in arguments]
        wanted = (-(-pool.size // max(size, 1)) for pool, size in zip(pools, sizes, strict=True))
        rounds = min(max((2, *wanted)), MAX_ROUNDS)
        streams = [_stream(pool, rounds * n, rng) for pool, n in zip(pools, sizes, strict=True)]
        for place in range(rounds):
            yield [
                stream[place * size : (place + 1) * size].reshape(shape)
                for stream, size, (_, shape) in zip(streams, sizes, arguments, strict=True)
            ]


def edge_draws(
    arguments: Sequence[tuple[np.dtype[Any], tuple[int, ...]]],
    literals: Sequence[float],
    *,
    moderate: bool = False,
) -> list[list[Draw]]:
    """The inputs as draws."""
    return [
        [Draw(x.dtype, x if x.dtype.kind in "iub" else x.astype(np.float64)) for x in given]
        for given in edge_inputs(arguments, literals, moderate=moderate)
    ]


def _is_at_most(pool: Array, limit: float) -> Array:
    """Which floats are; every integer is, and NaN is not."""
    if pool.dtype.kind in "iub":
        return np.ones(pool.shape, np.bool_)
    with np.errstate(invalid="ignore"):
        return np.abs(pool.astype(np.float64)) <= limit


def _stream(pool: Array, count: int, rng: np.random.Generator) -> Array:
    """So many values: the pool in one order after another."""
    orders = [rng.permutation(pool) for _ in range(-(-count // pool.size))]
    return np.concatenate([*orders, pool[:0]])[:count]
