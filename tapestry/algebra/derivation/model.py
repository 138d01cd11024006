"""What a derivation is of and what it gives: folds, centres, the parts of a state, results.

    >>> centre = Centre("m", "max", "x", ("m",))
    >>> centre.distance, centre.shift, value_of("l")
    ('from m', 'to m', '[l]')

All are named by symbols of `polynomials`: a fold's result by its name, the value of a part by its
name in brackets, the distance of a cell from a centre and how far a centre moves by the centre's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tapestry.algebra.derivation.polynomials import Polynomial

LN2 = "ln 2"
"""The symbol that stands for the natural logarithm of two: `exp2(z)` is `exp(z * LN2)`."""


class NotDerivableError(Exception):
    """Folds that do not become one pass: why, and which fold it is that does not fit."""

    def __init__(self, reason: str, fold: str | None = None) -> None:
        super().__init__(reason)
        self.fold = fold


@dataclass(frozen=True)
class Fold:
    """A fold over all points of `body`, whose result later bodies call by its name.

    Bodies are over cells, results of earlier folds, and symbols that do not vary along the fold.
    """

    name: str
    monoid: str
    body: Polynomial

    @property
    def said(self) -> str:
        """What the fold is, as people say it."""
        return "sum" if self.monoid == "add" else self.monoid


def mean_of(name: str) -> str:
    """The symbol of a sum over the number of points."""
    return f"mean {name}"


@dataclass(frozen=True)
class Centre:
    """What some parts are seen from: an extremum or the mean of `cell` over the state's points.

    `parts` are those that it is computed of: the extremum itself; the sum and the count.
    """

    name: str
    kind: Literal["max", "min", "mean"]
    cell: str
    parts: tuple[str, ...]

    @property
    def distance(self) -> str:
        """The symbol of a cell less the centre."""
        return f"from {self.name}"

    @property
    def shift(self) -> str:
        """The symbol of the old centre less the new one."""
        return f"to {self.name}"


@dataclass(frozen=True)
class Part:
    """A part of the state: how it merges, and what it is for one point.

    `moved` is the part after a change of centres, over the parts before and `Centre.shift`s; None
    where there is nothing to move. In `point`, the distance of a cell from itself is zero where
    that cell is finite: `Centre.distance` stands for it.
    """

    name: str
    monoid: str
    point: Polynomial
    moved: Polynomial | None = None
    centres: tuple[str, ...] = ()

    @property
    def symbol(self) -> str:
        """The symbol of the part's value: a fold's result may go by the same name."""
        return value_of(self.name)


def value_of(part: str) -> str:
    """The symbol of the value of a part."""
    return f"[{part}]"


@dataclass(frozen=True)
class Result:
    """A fold's result over the parts, other results, and what does not vary along the fold.

    Where an extremum in `guards` is its monoid's zero, nothing finite was folded: then the fold as
    written is NaN, unless there was no point at all. Where a centre in `finite` is not finite, one
    of its cells less the centre is NaN, and so is the result.
    """

    value: Polynomial
    guards: tuple[str, ...] = ()
    finite: tuple[str, ...] = ()


@dataclass(frozen=True)
class Derivation:
    """One pass for several folds: its state, its centres, each fold's result, and how it came."""

    parts: tuple[Part, ...]
    centres: tuple[Centre, ...]
    results: dict[str, Result]
    count: str | None
    steps: tuple[str, ...]
