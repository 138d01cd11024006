"""What an operation reads: a tensor, a projection, and what lies outside the tensor.

    ins(%x : (d0, d1) -> (d0 + d1 - 1) clip 0.0 : f32, %w : (d0, d1) -> (d1))

`%x` is read from one cell before its start on, and what is not there is 0.0; reading `%w` outside
itself is an error. Outside is always outside the whole tensor, never outside what a shard selects:
a shard selects the cells that its points read, so what it does not have no point of it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from xdsl.dialects.builtin import ArrayAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from tapestry.algebra.literals import Number
from tapestry.issues import Problem
from tapestry.zspace import AffineMap, Projection, Range

Fill = Number
"""What an input reads outside its tensor: a number of the type that the body takes."""


class Read(NamedTuple):
    """A tensor, the projection it is read through, and its fill; without one it reads inside."""

    value: SSAValue
    projection: Projection
    fill: Fill | None = None

    @property
    def is_plain(self) -> bool:
        """Whether each point reads one cell that the tensor has."""
        return self.fill is None and self.projection.is_unit

    def compose(self, inner: AffineMap) -> Read:
        """What another index space reads whose points `inner` maps to those of this one."""
        return self._replace(projection=self.projection.compose(inner))


def fills_attr(fills: Sequence[Fill | None]) -> ArrayAttr[Attribute] | None:
    """The property that records fills, a unit for an input without one; None when none has one."""
    if all(fill is None for fill in fills):
        return None
    return ArrayAttr([UnitAttr() if fill is None else fill for fill in fills])


def fills_of(recorded: ArrayAttr[Attribute] | None, inputs: int) -> tuple[Fill | None, ...]:
    """What `fills_attr` recorded, for a number of inputs."""
    if recorded is None or len(recorded) != inputs:
        # The verifier says what is wrong with another number of clips.
        return (None,) * inputs
    return tuple(None if isinstance(fill, UnitAttr) else cast(Fill, fill) for fill in recorded)


def selected(projection: Projection, index: Range, tensor: Range, fill: Fill | None) -> Range:
    """The cells of a tensor that an index range reads; clipped, those that exist."""
    box = projection.apply_range(index)
    return box if fill is None else box.clip(tensor)


def fill_problems(
    what: str, recorded: ArrayAttr[Attribute] | None, elements: Sequence[Attribute]
) -> list[Problem]:
    """Fills that are not one number of the element type for each input that has one."""
    if recorded is None:
        return []
    if len(recorded) != len(elements):
        message = f"there are {len(elements)} {what}s, but {len(recorded)} clips"
        return [Problem("clip-count", message, clips=recorded)]
    problems: list[Problem] = []
    for position, (fill, element) in enumerate(zip(recorded, elements, strict=True)):
        if isinstance(fill, UnitAttr):
            continue
        if not isa(fill, Fill) or fill.type != element:
            message = (
                f"{what} {position} is clipped to {fill}, but its cells are {element}; write "
                f"`clip` and a number of type {element}"
            )
            problems.append(Problem("clip-type", message, clip=fill, element=element))
    return problems
