"""What the calls of a tape make, found without computing it.

    seen = shapes(tape, values)         # of arrays in the slots of sources and constants

Results of scalar operations, folds and products follow from their operands. Other functions are
called with zeros: those are few, and take little, as they move numbers or merge states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from mmap import mmap
from typing import Any, cast

import numpy as np

from tapestry.algebra.named import Scalar
from tapestry.runtime.arrays.access import moving_shape
from tapestry.runtime.arrays.blocks import BlockCells
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.memory import is_large
from tapestry.runtime.prepared.tapes.meanings import (
    Cast,
    Copied,
    Masked,
    Merged,
    Placed,
    Product,
    Reduced,
    Running,
)
from tapestry.runtime.prepared.tapes.places import Seen
from tapestry.runtime.prepared.tapes.tape import Call, Tape


def shapes(tape: Tape, values: Sequence[Any]) -> dict[int, Seen] | None:
    """How the values of slots lie; None where that depends on what is read, as for indices."""
    seen: dict[int, Seen] = {}
    held = list(values)
    for slot in (*tape.sources, *tape.constants):
        value = held[slot]
        if isinstance(value, BlockCells):
            if value.is_inside:
                extents = value.projection.shape
                seen[slot] = replace(Seen.of(value.corners), extents=extents)
        elif isinstance(value, np.ndarray | np.generic):
            seen[slot] = Seen.of(np.asarray(cast("Array", value)))
        else:
            return None
    for call in tape.calls:
        made: Any = _like(call, [held[slot] for slot in call.ins])
        held[call.out] = made
        if not isinstance(made, list):
            seen[call.out] = Seen.of(np.asarray(made))
    return seen


def _zeros(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """As `np.zeros`, in pages that take no memory until they are read, which few are."""
    size = prod(shape) * dtype.itemsize
    if not is_large(size):
        return np.zeros(shape, dtype)
    return np.frombuffer(mmap(-1, size), np.uint8)[:size].view(dtype).reshape(shape)


def _shape(value: Any) -> tuple[int, ...]:
    if isinstance(value, BlockCells):
        return moving_shape(value.projection, value.index)
    return () if isinstance(value, list) else np.shape(cast("Array", value))


def _like(call: Call, given: Sequence[Any]) -> Array | list[Array]:
    """An array that lies as the result does, or a list of them."""
    have = [_shape(value) for value in given]
    match call.meaning:
        case Scalar(result=dtype):
            return _zeros(np.broadcast_shapes(*have), dtype)
        case Cast(dtype):
            return _zeros(have[0], dtype)
        case Placed(rank, counted):
            last = rank + 1 if counted else None
            return _zeros(np.broadcast_shapes(*have[:last]), given[0].data.dtype)
        case Copied():
            return _zeros(have[0], given[0].dtype)
        case Masked():
            return _zeros(np.broadcast_shapes(*have), given[1].dtype)
        case Reduced(axes=axes):
            kept = [1 if axis in axes else extent for axis, extent in enumerate(have[0])]
            return _zeros(kept, given[0].dtype)
        case Merged(merging, axes=axes):
            whole = np.broadcast_shapes(*have)
            kept = [1 if axis in axes else extent for axis, extent in enumerate(whole)]
            return [_zeros(kept, dtype) for dtype in merging.dtypes]
        case Running(merging):
            return [_zeros(np.broadcast_shapes(*have), dtype) for dtype in merging.dtypes]
        case Product():
            left, right = given[:2]
            batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
            shape = (*batch, left.shape[-2], right.shape[-1])
            return _zeros(shape, np.result_type(left, right))
        case _:
            return call.function(*given)
