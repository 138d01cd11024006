"""A computation over an index space as tapes, one for each shape of its parts.

    tapes = Tapes(index, parts, record)     # `record` writes the calls for a part, and says what
    tapes.wholes([x, w])                    #  slots are written out
    tapes.frame(part).play(tapes.given(wholes, part), outs)

Where parts are does not matter to a tape, only how long they are; so there are few. Every thread
has frames of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from tapestry.algebra.bodies import moving_dims
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.dialects.loom import tensor_type
from tapestry.runtime.access import cells
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.frames import Frame
from tapestry.runtime.prepared.recording import Recorder, Slots
from tapestry.runtime.prepared.sources import slicer
from tapestry.zspace import Projection, Range


class _Frames(threading.local):
    """The frames of a thread, by the shape of the part."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, ...], Frame] = {}


class Tapes:
    """Tapes for some parts, none where they cannot be written."""

    def __init__(
        self, recorders: dict[tuple[int, ...], Recorder], stores: dict[tuple[int, ...], Slots]
    ) -> None:
        self._recorders = recorders
        self._stores = stores
        self._sources = next(iter(recorders.values())).sources  # the same for every shape
        self._frames = _Frames()

    @staticmethod
    def of(
        index: Range,
        parts: Sequence[Range],
        inputs: Sequence[SSAValue],
        record: Callable[[Recorder], Slots | None],
    ) -> Tapes | None:
        """Tapes for all parts of an index space; `record` writes one."""
        recorders: dict[tuple[int, ...], Recorder] = {}
        stores: dict[tuple[int, ...], Slots] = {}
        cut = [dim for dim, extent in enumerate(parts[0].shape) if extent < index.shape[dim]]
        for part in parts:
            if part.shape in recorders:
                continue
            recorder = recorders[part.shape] = Recorder(index, part, cut, inputs)
            slots = record(recorder)
            if slots is None:
                return None
            stores[part.shape] = slots
        return Tapes(recorders, stores)

    def wholes(self, operands: Sequence[Array]) -> list[Any]:
        """What parts are taken of, once per call."""
        return [source.whole(operands) for source in self._sources]

    def given(self, wholes: Sequence[Any], part: Range) -> list[Any]:
        """What a part reads."""
        return [s.at(whole, part) for s, whole in zip(self._sources, wholes, strict=True)]

    def frame(self, part: Range) -> Frame:
        """This thread's frame for a part."""
        known, shape = self._frames.known, part.shape
        if shape not in known:
            known[shape] = Frame(self._recorders[shape].tape, self._stores[shape])
        return known[shape]


@dataclass(frozen=True)
class Output:
    """An output that the points of an index space write to."""

    box: Range
    dtype: np.dtype[Any]
    projection: Projection
    index: Range

    @staticmethod
    def of(value: SSAValue, projection: Projection, index: Range) -> Output:
        kind = tensor_type(value)
        return Output(kind.box, numpy_dtype(kind.element_type), projection, index)

    def empty(self) -> Array:
        """Its array, not written yet."""
        return np.empty(self.box.shape, self.dtype)

    def cells(self, array: Array) -> Array:
        """A view with an axis per dimension of the index space."""
        return cells(array, self.box, self.projection, self.index)

    @property
    def at(self) -> Callable[[Array, Range], Array]:
        """What a part writes, of that view."""
        return slicer(moving_dims(self.projection), self.index)
