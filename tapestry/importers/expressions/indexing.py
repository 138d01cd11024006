"""Indices of expressions: `x[0]`, `x[1:, ::2]`, `x[..., None]`, `x[rows]`, by slices and views.

    >>> import tapestry
    >>> x = tapestry.input("x", (4, 6, 2), "float32")
    >>> [x[key].shape for key in (0, slice(1, None), (..., None), (slice(None), [1, 5, 5]))]
    [(6, 2), (3, 6, 2), (4, 6, 2, 1), (4, 3, 2)]
    >>> x[[0, 1, 2], [5, -1, 0]].shape  # the cells (0, 5), (1, 5) and (2, 0)
    (3, 2)

Sizes of results are known before anything runs, so only truth values that are known index, along
one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np

from tapestry.diagnostics import UsageError
from tapestry.importers.expressions.functions import as_expression, function
from tapestry.importers.expressions.nodes import Constant, Expression, caller


def indexed(source: Expression, key: object) -> Expression:
    """The cells of `source` that `key` selects; UsageError for a key that selects none."""
    keys = list(cast("tuple[object, ...]", key)) if isinstance(key, tuple) else [key]
    keys = _complete(source, keys)
    _check_order(keys)
    result, axis, place = source, 0, 0
    while place < len(keys):
        one, place = keys[place], place + 1
        if one is None:
            result, axis = _call("unsqueeze", result, axes=[axis]), axis + 1
        elif isinstance(one, slice):
            result, axis = _sliced(result, cast("slice[Any, Any, Any]", one), axis), axis + 1
        else:
            together = [one]
            while place < len(keys) and not isinstance(keys[place], slice | None):
                together.append(keys[place])
                place += 1
            result, axis = _gathered(result, together, axis)
    return result


def _gathered(source: Expression, keys: Sequence[object], axis: int) -> tuple[Expression, int]:
    """The cells at numbers and tensors of places along neighbouring axes, and the next axis.

    Tensors are broadcast: cell by cell they name a place along each of their axes.
    """
    if all(map(_is_number, keys)):
        for one in keys:
            index = _place(source, int(cast(int, one)), axis)
            source = _call("select", source, index=index, axis=axis)
        return source, axis
    sizes = source.shape[axis : axis + len(keys)]
    before, after = source.shape[:axis], source.shape[axis + len(keys) :]
    if len(keys) > 1:
        source = source.reshape(*before, prod(sizes), *after)
    flat: Expression | None = None
    for one, size in zip(keys, sizes, strict=True):
        places = _places(one, size)
        flat = places if flat is None else _joined(flat, size, places)
    assert flat is not None
    found = _call("index_select", source, flat.reshape(-1), axis=axis)
    if flat.ndim != 1:
        found = found.reshape(*before, *flat.shape, *after)
    return found, axis + flat.ndim


def _joined(flat: Expression, size: int, places: Expression) -> Expression:
    """Places along two axes as places along both in one; known ones are computed here."""
    if isinstance(flat.node, Constant) and isinstance(places.node, Constant):
        try:
            cells = flat.node.cells.astype(np.int64) * size + places.node.cells
        except ValueError as error:
            raise _wrong(str(error), "tensors that index together are broadcast") from None
        return as_expression(cells)
    inside = (places >= 0) & (places < size)
    both = flat.astype("int64") * size + places.astype("int64")
    return _call("where", inside, both, -1)  # which is no place, and is said when it runs


def _complete(source: Expression, keys: list[object]) -> list[object]:
    """The keys with an ellipsis, written or not, spelled out: one for each axis."""
    given = sum(one is not None and one is not Ellipsis for one in keys)
    rank = len(source.shape)
    if given > rank:
        raise _wrong(f"{given} indices for {rank} axes", f"the shape is {source.shape}")
    dots = [number for number, one in enumerate(keys) if one is Ellipsis]
    if len(dots) > 1:
        raise _wrong("there are two ellipses", "one stands for all axes that are not named")
    at = dots[0] if dots else len(keys)
    after = keys[at + 1 :] if dots else []
    return [*keys[:at], *[slice(None)] * (rank - given), *after]


def _check_order(keys: Sequence[object]) -> None:
    """Refuse what NumPy and PyTorch disagree about: a number and a tensor that are not neighbours.

    In NumPy they index together, and what they select is the first axis then.
    """
    apart = [n for n, one in enumerate(keys) if one is not None and not isinstance(one, slice)]
    tensors = [n for n in apart if not isinstance(keys[n], int | np.integer)]
    if tensors and len(apart) > 1 and apart[-1] - apart[0] >= len(apart):
        raise _wrong(
            "numbers and a tensor index axes with others between them",
            "index one after the other: x[0][:, rows]",
        )


def _is_number(key: object) -> bool:
    return isinstance(key, int | np.integer) and not isinstance(key, bool)


def _sliced(source: Expression, key: slice[Any, Any, Any], axis: int) -> Expression:
    size = source.shape[axis]
    try:
        start, stop, step = key.indices(size)
    except TypeError:
        raise _wrong(f"{key} is no slice of numbers", "sizes are known when it is built") from None
    if (start, stop, step) == (0, size, 1):
        return source
    if step < 0:
        source = _call("flip", source, axes=[axis])
        start, stop, step = size - 1 - start, size - 1 - stop, -step
    stop = max(start, stop)
    return _call("slice", source, start=start, stop=stop, step=step, axis=axis)


def _place(source: Expression, place: int, axis: int) -> int:
    size = source.shape[axis]
    if not -size <= place < size:
        raise _wrong(f"index {place} is outside of axis {axis}", f"its size is {size}")
    return place


def _places(key: object, size: int) -> Expression:
    """A list of places, which may be an expression; those that are known are checked."""
    if _is_number(key):
        key = np.int64(cast(int, key))
    if isinstance(key, list) and not cast("list[object]", key):
        key = np.empty(0, np.int64)
    if isinstance(key, str | bytes | bool | float | np.bool_):
        raise _wrong(f"{key!r} is no index", "integers, slices, None, ... and integer lists are")
    places = as_expression(cast(object, key))
    if places.dtype.kind == "b" and isinstance(places.node, Constant) and places.shape == (size,):
        places = as_expression(np.flatnonzero(places.node.cells))
    if places.dtype.kind == "b":
        raise _wrong(
            "how many cells are true is known when it runs, and sizes are known before",
            "tapestry.where chooses cell by cell; a known list of truth values indexes one axis",
        )
    if places.dtype.kind not in "iu":
        raise _wrong(f"an index of {places.dtype}", "an index is made of integers")
    if isinstance(places.node, Constant):
        cells = places.node.cells
        if ((cells < -size) | (cells >= size)).any():
            raise _wrong(f"an index is outside of its axis: {cells}", f"its size is {size}")
        return as_expression(np.where(cells < 0, cells + size, cells))
    if places.dtype.kind == "i":  # from the end, if it is negative
        if size > np.iinfo(places.dtype).max:
            places = places.astype("int64")
        places = _call("where", places < 0, places + size, places)
    return places


def _call(metakernel: str, *given: object, **parameters: object) -> Expression:
    return cast(Expression, function(metakernel)(*given, **parameters))


def _wrong(message: str, hint: str) -> UsageError:
    return UsageError(message, location=caller(), hint=hint)
