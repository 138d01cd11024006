"""A computation over an index space as tapes, one for each kind of its parts.

    tapes = Tapes.of(index, parts, inputs, record, kind)
    wholes = tapes.wholes([x, w])
    tapes.frame(part).play(tapes.given(wholes, part), outs)

Where parts are does not matter to a tape, only how long they are, and whether all of their points
count; so there are few. Every thread has frames of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
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
from tapestry.runtime.prepared.looping import Loops
from tapestry.runtime.prepared.memory import empty
from tapestry.runtime.prepared.recording import Recorder, Slots
from tapestry.runtime.prepared.sources import slicer
from tapestry.zspace import Projection, Range


class _Frames(threading.local):
    """The frames of a thread, by the kind of the part."""

    def __init__(self) -> None:
        self.known: dict[Hashable, Frame] = {}


class Tapes:
    """Tapes for some parts, none where they cannot be written."""

    def __init__(
        self,
        recorders: dict[Hashable, Recorder],
        stores: dict[Hashable, Slots],
        kinds: dict[Range, Hashable],
        loops: Loops | None,
    ) -> None:
        self._recorders = recorders
        self._stores = stores
        self._kinds = kinds
        self._loops = loops
        self._frames = _Frames()

    @staticmethod
    def of(
        index: Range,
        parts: Sequence[Range],
        inputs: Sequence[SSAValue],
        record: Callable[[Recorder], Slots | None],
        kind: Callable[[Range], Hashable],
        loops: Loops | None = None,
    ) -> Tapes | None:
        """Tapes for all parts of an index space; `record` writes one for parts of a `kind`."""
        recorders: dict[Hashable, Recorder] = {}
        stores: dict[Hashable, Slots] = {}
        cut = [d for d, low in enumerate(index.start) if any(p.start[d] != low for p in parts)]
        kinds = {part: kind(part) for part in parts}
        for part, own in kinds.items():
            if own in recorders:
                continue
            recorder = recorders[own] = Recorder(index, part, cut, inputs)
            slots = record(recorder)
            if slots is None:
                return None
            stores[own] = slots
        return Tapes(recorders, stores, kinds, loops)

    def wholes(self, operands: Sequence[Array]) -> Mapping[Hashable, list[Any]]:
        """What parts of each kind are taken of, once per call."""
        return {
            kind: [source.whole(operands) for source in recorder.sources]
            for kind, recorder in self._recorders.items()
        }

    def given(self, wholes: Mapping[Hashable, list[Any]], part: Range) -> list[Any]:
        """What a part reads."""
        kind = self._kinds[part]
        sources = zip(self._recorders[kind].sources, wholes[kind], strict=True)
        return [source.at(whole, part) for source, whole in sources]

    def frame(self, part: Range) -> Frame:
        """This thread's frame for a part."""
        known, kind = self._frames.known, self._kinds[part]
        if kind not in known:
            tape, times = self._recorders[kind].tape, len(self._kinds)
            known[kind] = Frame(tape, self._stores[kind], self._loops, times)
        return known[kind]


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
        return empty(self.box.shape, self.dtype)

    def cells(self, array: Array) -> Array:
        """A view with an axis per dimension of the index space."""
        return cells(array, self.box, self.projection, self.index)

    @property
    def at(self) -> Callable[[Array, Range], Array]:
        """What a part writes, of that view."""
        return slicer(moving_dims(self.projection), self.index)
