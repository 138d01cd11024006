"""The inputs that programs are compared on: dyadic rationals, exact in wide floats and beyond.

    >>> draw_inputs(CLASSES["small"], [(np.dtype(np.float32), (2, 2))], seed=0)[0].as_floats(
    ...     np.dtype(np.float64)).shape
    (2, 2)

A class says how numbers are drawn; a draw is settled by class and seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapestry.runtime.executor import Array

BITS = 60
"""Bits of a drawn number: its grid has 2^60 steps on either side of zero."""


@dataclass(frozen=True)
class InputClass:
    """How floats are drawn: uniformly within `size`, on a grid of 2^-60 of it or of halves.

    Either sign, or `positive`; or `tiny` ones, of any size down to `TINY` bits below it.
    """

    name: str
    size: int
    halves: bool = False
    positive: bool = False
    tiny: bool = False


CLASSES = {
    kind.name: kind
    for kind in (
        InputClass("generic", 2),
        InputClass("wide", 32),
        InputClass("huge", 256),
        InputClass("small", 2, halves=True),
        InputClass("zero", 0),
        InputClass("unit", 1, positive=True),
        InputClass("tiny", 1, tiny=True),
    )
}
"""What is drawn, unit where others gave what is no number: logarithms of many cells, say. What is
added to keep a quotient finite shows on tiny inputs alone."""

TINY = 80
"""How many bits below its size tiny numbers are: as what is added to squares, 1e-12 say, and less.

All cells of an argument may be smaller than that of another: sums over them are small only then.
"""


_BESIDE = (-1, 0, 1)
"""How many 1024ths a float is beside another one."""


@dataclass(frozen=True, eq=False)
class Draw:
    """One input. A float input is `numbers * 2^-exponent`; an integer input is `numbers`."""

    dtype: np.dtype[Any]
    numbers: Array
    exponent: int = 0

    @property
    def is_float(self) -> bool:
        """Whether the program takes floats here."""
        return self.dtype.kind not in "iub"

    def as_floats(self, real: np.dtype[Any]) -> Array:
        """A float input in a float type."""
        return np.ldexp(self.numbers.astype(real), -self.exponent)

    def as_cells(self, real: np.dtype[Any]) -> Array:
        """An input whose floats are in a float type."""
        return self.as_floats(real) if self.is_float else self.numbers

    def as_argument(self) -> Array:
        """The array that `tapestry run` takes; a float is rounded to its type."""
        return (
            self.as_floats(np.dtype(np.float64)).astype(self.dtype)
            if self.is_float
            else self.numbers
        )

    def rounded(self) -> Draw:
        """The draw that the argument's own type holds exactly."""
        if not self.is_float:
            return self
        narrow = self.as_argument().astype(np.longdouble)
        return Draw(self.dtype, np.ldexp(narrow, self.exponent).astype(np.int64), self.exponent)

    def peaked(self, cell: int, end: int) -> Draw:
        """The draw with one cell, by its number in order, far above (`end` 1) or below (-1) all."""
        numbers = self.numbers.copy()
        farthest = 4 * int(np.max(np.abs(numbers), initial=1))
        limits = np.iinfo(numbers.dtype)
        numbers.flat[cell] = min(max(end * farthest, limits.min), limits.max)
        return Draw(self.dtype, numbers, self.exponent)

    def naming(self, numbers: Sequence[float], rng: np.random.Generator) -> Draw:
        """The draw with half of its cells one of some numbers, or beside it; floats a little.

        Floats far larger than the draw's own would leave no bits for these: they are left out.
        """
        if not self.is_float:
            limits, exponent, own = np.iinfo(self.dtype), 0, self.numbers
            near = [round(x) + step for x in numbers for step in (-1, 0, 1)]
            pool = [x for x in near if limits.min <= x <= limits.max]
        else:
            few = [x for x in numbers if abs(x) < 1 << (BITS // 2)]
            exponent = min(self.exponent, BITS - max((frexp(x)[1] for x in few), default=0) - 1)
            own = self.numbers >> (self.exponent - exponent)
            pool = [round(x * (2**10 + by) * 2.0 ** (exponent - 10)) for x in few for by in _BESIDE]
        if not pool:
            return self
        chosen = rng.choice(np.array(pool, own.dtype), own.shape)
        return Draw(self.dtype, np.where(rng.random(own.shape) < 0.5, chosen, own), exponent)

    def zeroed(self, where: NDArray[np.bool_]) -> Draw:
        """The draw with some cells set to zero."""
        kept = np.where(where, np.zeros((), self.numbers.dtype), self.numbers)
        return Draw(self.dtype, kept, self.exponent)


def draw_inputs(
    kind: InputClass,
    arguments: Sequence[tuple[np.dtype[Any], tuple[int, ...]]],
    seed: int,
    bounds: tuple[int, int] = (-4, 20),
    *,
    all_bits: bool = True,
) -> list[Draw]:
    """An input per argument, given by dtype and shape.

    Integers lie in the half-open range `bounds` and within the class's size; those of the huge
    class take `all_bits`, unless they are indices.
    """
    order = list(CLASSES).index(kind.name)
    all_bits = all_bits and kind.name == "huge"
    return [
        _draw(kind, dtype, shape, np.random.default_rng((seed, order, place)), bounds, all_bits)
        for place, (dtype, shape) in enumerate(arguments)
    ]


def _draw(
    kind: InputClass,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    rng: np.random.Generator,
    bounds: tuple[int, int],
    all_bits: bool,
) -> Draw:
    if dtype == np.bool_:
        return Draw(dtype, rng.integers(0, 2 if kind.size else 1, shape).astype(np.bool_))
    if dtype.kind in "iu":
        return Draw(dtype, _integers(kind, dtype, shape, rng, bounds, all_bits))
    if kind.halves or not kind.size:
        return Draw(dtype, rng.integers(-2 * kind.size, 2 * kind.size + 1, shape), 1)
    if kind.tiny:
        lowest = int(rng.integers(TINY // 2 + 1))
        numbers = rng.integers(1 << (BITS - 1), 1 << BITS, shape)
        numbers >>= rng.integers(TINY // 2, size=shape)
        return Draw(dtype, rng.choice([-1, 1], shape) * numbers, BITS + lowest)
    exponent = BITS - (kind.size.bit_length() - 1)
    low, high = (1, 1 << BITS) if kind.positive else (-(1 << BITS), (1 << BITS) + 1)
    return Draw(dtype, rng.integers(low, high, shape), exponent)


def _integers(
    kind: InputClass,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    rng: np.random.Generator,
    bounds: tuple[int, int],
    all_bits: bool,
) -> Array:
    limits = np.iinfo(dtype)
    low, high = max(bounds[0], limits.min), min(bounds[1], limits.max + 1)
    if all_bits:
        low, high = int(limits.min), int(limits.max) + 1
    elif kind.name != "generic":
        low = max(low, -kind.size)
        high = max(low + 1, min(high, kind.size + 1))
    return rng.integers(low, high, shape, dtype=dtype)
