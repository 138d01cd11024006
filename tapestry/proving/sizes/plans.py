"""What is known of one operation when sizes are made smaller: its rows, and those in its bodies.

plan = Plan(op, space, ins=..., outs=...)
plan.body.comparisons       # places in the index space that its bodies tell apart
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import arith
from xdsl.ir import Operation

from tapestry.proving.sizes.axes import Axes
from tapestry.proving.sizes.coordinates import (
    Use,
)
from tapestry.proving.sizes.rows import Dimension, Row

Space = tuple[Dimension, ...]
"""The dimensions of a box, in order."""

Rows = tuple[Row, ...]
"""The rows of one projection."""


@dataclass(frozen=True)
class Comparison:
    """`left - right` against zero, at one operation of a body, as rows of new lines."""

    op: Operation
    dims: tuple[int, ...]
    """The index dimensions that the terms of both rows stand for."""
    left: Row | None
    right: Row | None
    offset: int
    """`lhs - rhs = left - right + offset`."""


@dataclass(frozen=True)
class Number:
    """A coordinate used as a number, and its row."""

    use: Use
    dims: tuple[int, ...]
    row: Row


@dataclass
class Body:
    """What an operation's bodies say about its index space."""

    comparisons: list[Comparison] = field(default_factory=list[Comparison])
    numbers: list[Number] = field(default_factory=list[Number])
    literals: list[arith.ConstantOp] = field(default_factory=list[arith.ConstantOp])


@dataclass
class Plan:
    """The rows of one operation: of its inputs, extra inputs and outputs, and in its bodies."""

    op: Operation
    space: Space = ()
    ins: tuple[Rows, ...] = ()
    extras: tuple[Rows, ...] = ()
    outs: tuple[Rows, ...] = ()
    domain: tuple[Comparison, ...] = ()
    """The rows of its domain, compared with zero."""
    folded: Space = ()
    """The dimensions that the operation folds, where it sees all of them."""
    body: Body = field(default_factory=Body)

    @property
    def folds(self) -> int:
        """How many cells are folded into one."""
        return prod(d.extent for d in self.folded)


def border(comparison: Comparison) -> int:
    """Where the one row of a comparison with a constant meets it."""
    return comparison.offset if comparison.left is None else -comparison.offset


def gap(axes: Axes, comparison: Comparison) -> int:
    """How far apart, on the axis of both rows, the places are that a comparison tells apart."""
    assert comparison.left is not None
    assert comparison.right is not None
    left, right = axes.frame(comparison.left.target), axes.frame(comparison.right.target)
    return right.shift - left.shift - comparison.offset
