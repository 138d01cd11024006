"""What the calls of a tape read of the whole arrays, part by part.

    source = cells_read(0, read, tensor_box, index)
    whole = source.whole([x, w])            # once per call: a view with an axis per dimension
    source.at(whole, part)                  # for each part: the slice that it reads

A source whose projection stays inside the tensor is a slice of one view; where it does not, and a
cache has room for all that it reads, the view is of a padded copy. What is clipped of more is
copied part by part; blocks, and coordinates along a long dimension, are made for each part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tapestry.runtime.arrays.access import coordinates, moving_shape
from tapestry.runtime.arrays.blocks import BlockCells
from tapestry.runtime.arrays.domains import inside_mask
from tapestry.runtime.arrays.gathering import clipped_cells
from tapestry.runtime.cpu.addresses import address
from tapestry.runtime.cpu.threads import Team
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.cells import bits
from tapestry.runtime.prepared.linking import Traced
from tapestry.runtime.prepared.memory import CACHE
from tapestry.runtime.prepared.padding import Padding
from tapestry.runtime.prepared.views import View, reader
from tapestry.zspace import Domain, Projection, Range

if TYPE_CHECKING:
    from tapestry.runtime.prepared.script import Script


class Source(Protocol):
    """What is read; `at` is of `whole`, and a part of the index space."""

    @property
    def lies(self) -> bool:
        """Whether what a part reads lies in the memory of `whole`, which is an array."""
        ...

    def whole(self, operands: Sequence[Array]) -> Any:
        """What parts are taken of, from the operands of a call."""
        ...

    def traced(self, operands: Sequence[Array]) -> Traced | None:
        """The same as an array that compiled functions make; None where it is more."""
        ...

    def at(self, whole: Any, part: Range) -> Any:
        """What a part reads."""
        ...

    def record(self, script: Script, operands: Sequence[int], part: Range) -> int:
        """The slot of what a part reads, of a script that has the operands in some slots."""
        ...


class _Lasting:
    """What is made once, or is a view of an operand; or else for each call, and gone after it."""

    def traced(self: Source, operands: Sequence[Array]) -> Traced | None:
        """Nothing is called for what lasts."""
        if not self.lies:
            return None
        whole: Array | None = self.whole(operands)
        again: Array | None = self.whole(operands)
        if whole is None or again is None or address(whole) != address(again):
            return None
        return Traced([], [whole], [])


class _Alike(_Lasting):
    """What a part reads at every call, whatever the operands are."""

    def record(
        self: Source,
        script: Script,
        operands: Sequence[int],  # noqa: ARG002
        part: Range,
    ) -> int:
        """The slot of a constant."""
        return script.constant(self.at(self.whole(()), part))


@dataclass(frozen=True)
class Slicer:
    """The part of an array that has an axis for each of `rank` dimensions.

    `moving` has those that parts are slices along, and where the array starts there.
    """

    rank: int
    moving: tuple[tuple[int, int], ...]
    _slices: dict[Range, tuple[Any, ...]] = field(
        default_factory=dict[Range, tuple[Any, ...]], init=False, repr=False, compare=False
    )

    def at(self, whole: Array, part: Range) -> Array:
        """A view."""
        slices = self._slices.get(part)
        if slices is None:
            slices = self._slices[part] = self._found(part)
        return whole[slices]

    def _found(self, part: Range) -> tuple[Any, ...]:
        where: list[Any] = [slice(None)] * self.rank
        for dim, low in self.moving:
            where[dim] = slice(part.start[dim] - low, part.end[dim] - low)
        return (*where, ...)  # a view also where there is no dimension to slice


def slicer(dims: frozenset[int], index: Range) -> Slicer:
    """The parts of an array with an axis per dimension of `index`, of extent 1 off `dims`."""
    moving = [(dim, index.start[dim]) for dim in sorted(dims) if index.shape[dim] > 1]
    return Slicer(index.rank, tuple(moving))


@dataclass(frozen=True)
class _Slices(_Lasting):
    operand: int
    view: View
    slicer: Slicer

    @property
    def lies(self) -> bool:
        return True

    def whole(self, operands: Sequence[Array]) -> Array:
        return self.view(bits(operands[self.operand]))

    def at(self, whole: Array, part: Range) -> Array:
        return self.slicer.at(whole, part)

    def record(self, script: Script, operands: Sequence[int], part: Range) -> int:
        whole = script.view(self.view, script.view(bits, operands[self.operand]))
        return script.view(partial(self.slicer.at, part=part), whole)


@dataclass(frozen=True, eq=False)
class _Taken(_Lasting, ABC):
    """What each part takes for itself of the cells of an operand, which stores `box`."""

    operand: int
    box: Range
    projection: Projection
    outside: Array | None

    def whole(self, operands: Sequence[Array]) -> Array:
        return bits(operands[self.operand])

    @abstractmethod
    def at(self, whole: Array, part: Range) -> Any: ...

    def record(self, script: Script, operands: Sequence[int], part: Range) -> int:
        whole = script.view(bits, operands[self.operand])
        return script.call(partial(self.at, part=part), (whole,))


@dataclass(frozen=True, eq=False)
class _Clipped(_Taken):
    @property
    def lies(self) -> bool:
        return False

    def at(self, whole: Array, part: Range) -> Array:
        assert self.outside is not None
        return clipped_cells(whole, self.box, self.projection, part, self.outside)


@dataclass(frozen=True, eq=False)
class _Blocks(_Taken):
    @property
    def lies(self) -> bool:
        return self.outside is None

    def at(self, whole: Array, part: Range) -> BlockCells:
        return BlockCells(whole, self.box, self.projection, part, self.outside)

    def record(self, script: Script, operands: Sequence[int], part: Range) -> int:
        whole = script.view(bits, operands[self.operand])
        return script.view(partial(self.at, part=part), whole)


@dataclass(frozen=True, eq=False)
class _Padded:
    """What `inner` reads of an operand that is padded before: of the only one that it is given."""

    operand: int
    padding: Padding
    inner: Source

    @property
    def lies(self) -> bool:
        return self.inner.lies

    def whole(self, operands: Sequence[Array]) -> Any:
        return self.inner.whole([self.padding(bits(operands[self.operand]))])

    def traced(self, operands: Sequence[Array]) -> Traced | None:
        padded = self.padding.traced([bits(operands[self.operand])])
        inner = None if padded is None else self.inner.traced(padded.made)
        if padded is None or inner is None:
            return None
        return Traced([*padded.steps, *inner.steps], inner.made, [*padded.held, *inner.held])

    def at(self, whole: Any, part: Range) -> Any:
        return self.inner.at(whole, part)

    def record(self, script: Script, operands: Sequence[int], part: Range) -> int:
        cells = script.view(bits, operands[self.operand])
        return self.inner.record(script, [script.call(self.padding, (cells,), new=True)], part)


def cells_read(
    operand: int,
    projection: Projection,
    outside: Array | None,
    box: Range,
    index: Range,
    team: Team | None = None,
) -> Source:
    """What a body takes of an operand, which stores `box`; a `team` pads it."""
    over = projection.apply_range(index)
    if outside is not None and not box.contains_range(over):
        small = over.size * outside.itemsize <= CACHE
        if small and (not projection.is_unit or over.size <= prod(moving_shape(projection, index))):
            padding = Padding(box, over, outside, team)
            return _Padded(operand, padding, cells_read(0, projection, None, over, index))
    else:
        outside = None
    if not projection.is_unit:
        return _Blocks(operand, box, projection, outside)
    if outside is not None:
        return _Clipped(operand, box, projection, outside)
    moving = frozenset(dim for terms in projection.map.terms for _, dim in terms)
    return _Slices(operand, reader(projection, box, index), slicer(moving, index))


_KEPT = 1 << 20
"""Coordinates up to which all are kept, 8 MiB: more take longer to make than a call may."""

_LEAST, _MOST = -(1 << 31), (1 << 31) - 1


def is_kept(index: Range, dim: int) -> bool:
    """Whether all coordinates along a dimension are kept."""
    return index.shape[dim] <= _KEPT


def is_bounded(index: Range, dim: int, shift: int) -> bool:
    """Whether coordinates, `shift` added, are between the least and the most of 32-bit integers."""
    return index.start[dim] + shift > _LEAST and index.end[dim] - 1 + shift < _MOST


@dataclass(frozen=True)
class Coordinate(_Alike):
    """The coordinates along a dimension of an index space, `shift` added.

    Those of a long dimension are made for each part.
    """

    dim: int
    shift: int
    index: Range
    dtype: np.dtype[Any]

    @property
    def lies(self) -> bool:
        return is_kept(self.index, self.dim)

    def whole(self, operands: Sequence[Array]) -> Array | None:  # noqa: ARG002
        """All of them, if they are kept."""
        return self._all if self.lies else None

    def at(self, whole: Array | None, part: Range) -> Array:
        """Those of a part."""
        if whole is None:
            return self._of(part)
        return self._slicer.at(whole, part)

    def _of(self, box: Range) -> Array:
        return (coordinates(box)(self.dim) + np.int64(self.shift)).astype(self.dtype)

    @cached_property
    def _all(self) -> Array:
        return self._of(self.index)

    @cached_property
    def _slicer(self) -> Slicer:
        return slicer(frozenset({self.dim}), self.index)


@dataclass(frozen=True)
class Place(_Alike):
    """How far the points of a part are from its first one, along a dimension: as 32-bit integers.

    There are at most `extent` of them.
    """

    dim: int
    extent: int
    rank: int

    @property
    def lies(self) -> bool:
        return True

    def whole(self, operands: Sequence[Array]) -> Array:  # noqa: ARG002
        """Those of the longest part."""
        return self._all

    def at(self, whole: Array, part: Range) -> Array:
        """Those of a part."""
        where: list[Any] = [slice(None)] * self.rank
        where[self.dim] = slice(part.shape[self.dim])
        return whole[tuple(where)]

    @cached_property
    def _all(self) -> Array:
        shape = [1] * self.rank
        shape[self.dim] = self.extent
        return np.arange(self.extent, dtype=np.int32).reshape(shape)


@dataclass(frozen=True)
class First(_Alike):
    """The first coordinate of a part along a dimension, `shift` added: a 32-bit integer.

    Parts start at one of the coordinates `starts`.
    """

    dim: int
    shift: int
    starts: tuple[int, ...]
    rank: int

    @property
    def lies(self) -> bool:
        return True

    def whole(self, operands: Sequence[Array]) -> Array:  # noqa: ARG002
        """That of each part."""
        return self._all

    def at(self, whole: Array, part: Range) -> Array:
        """That of a part."""
        return whole[self._numbers[part.start[self.dim]]]

    @cached_property
    def _all(self) -> Array:
        numbers = np.array(self.starts, np.int64) + self.shift
        return numbers.astype(np.int32).reshape(-1, *(1,) * self.rank)

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {start: number for number, start in enumerate(self.starts)}


@dataclass(frozen=True, eq=False)
class Filled(_Alike):
    """What is read where a tensor has nothing."""

    fill: Array
    rank: int

    @property
    def lies(self) -> bool:
        return True

    def whole(self, operands: Sequence[Array]) -> Array:  # noqa: ARG002
        """One cell, along all dimensions."""
        return self.fill.reshape((1,) * self.rank)

    def at(self, whole: Array, part: Range) -> Array:  # noqa: ARG002
        """The same."""
        return whole


@dataclass(frozen=True)
class Mask(_Alike):
    """Which points are inside."""

    inside: Domain

    @property
    def lies(self) -> bool:
        return False

    def whole(self, operands: Sequence[Array]) -> None:
        """Nothing."""

    def at(self, whole: None, part: Range) -> Array:  # noqa: ARG002
        """Those of a part."""
        found = inside_mask(self.inside, part)
        return np.ones((1,) * part.rank, np.bool_) if found is None else found
