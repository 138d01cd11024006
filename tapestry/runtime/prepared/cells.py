"""Functions of arrays that tapes call, which NumPy has not as such.

    tape.call(partial(masked, 0.0), (mask, value))

What is known before there is an array comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapestry.algebra.reducing import Reduction
from tapestry.runtime.executor import Array
from tapestry.zspace import Range


def bits(cells: Array) -> Array:
    """Cells as bodies hold them: the bits of unsigned ones."""
    return cells.view(f"i{cells.itemsize}") if cells.dtype.kind == "u" else cells


def of_bits(dtype: np.dtype[Any], value: Array) -> Array:
    """What a body made as cells of a dtype: unsigned ones of their bits."""
    return value.view(dtype) if dtype.kind == "u" else in_dtype(dtype, value)


def in_dtype(dtype: np.dtype[Any], value: Array) -> Array:
    """A value in a dtype, itself where it has that."""
    return value if value.dtype == dtype else value.astype(dtype)


def converted(dtype: np.dtype[Any], value: Array) -> Array:
    """A copy in a dtype, also of a number."""
    return np.asarray(value).astype(dtype)


def masked(zero: complex, mask: Array, value: Array) -> Array:
    """The value where a mask holds, and elsewhere a number."""
    value = np.asarray(value)
    return np.where(mask, value, value.dtype.type(zero))


def of_rank(rank: int, function: Callable[[Array], Array], value: Array) -> Array:
    """A function of a value with so many axes, also of a single number."""
    value = np.asarray(value)
    return function(value if value.ndim == rank else value.reshape((1,) * rank))


def at(where: tuple[Any, ...], value: Array) -> Array:
    """Some cells of a value."""
    return value[where]


def spread(extents: tuple[tuple[int, int], ...], value: Array) -> Array:
    """A value all along some axes."""
    have = value.shape
    if all(have[axis] == extent for axis, extent in extents):
        return value
    shape = list(have)
    for axis, extent in extents:
        shape[axis] = extent
    return np.broadcast_to(value, shape)


def reduced(reduction: Reduction, axes: tuple[int, ...], value: Array) -> Array:
    """A value folded along some axes, which keep an extent of 1."""
    kept = tuple(None if axis in axes else slice(None) for axis in range(value.ndim))
    return np.asarray(reduction.fold(value, axes))[kept]


def zeroed(outside: Array, state: Array) -> Array:
    """A state of new memory, zero where points do not count."""
    shape = np.broadcast_shapes(state.shape, outside.shape)
    if state.shape != shape:
        state = np.broadcast_to(state, shape).copy()
    np.copyto(state, 0, where=outside)
    return state


def with_neighbours(array: Array, axis: int) -> Array:
    """A copy whose cells are neighbours along an axis."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, axis, -1)), -1, axis)


def some_of(
    run: Callable[[Sequence[Any]], Sequence[Any]], numbers: Sequence[int], given: Sequence[Any]
) -> list[Any]:
    """Some of what a function of a list makes."""
    made = run(given)
    return [made[number] for number in numbers]


def in_turn(functions: Sequence[Callable[[Any], Any]], array: Any) -> Any:
    """What functions make of an array, one after another."""
    for function in functions:
        array = function(array)
    return array


def arranged(axes: tuple[int, ...], shape: tuple[int, ...], array: Array) -> Array:
    """An array with its axes in another order, and then another shape."""
    return array.transpose(axes).reshape(shape)


def part_of(number: int, parts: list[Array]) -> Array:
    """One of several arrays."""
    return parts[number]


def all_over(box: Range, read: Callable[[Array], Array], array: Array) -> Array:
    """What is read of an array, all over a box."""
    return np.broadcast_to(read(array), box.shape)
