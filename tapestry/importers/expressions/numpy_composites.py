"""NumPy's functions that are several metakernels: `np.median(x)`, `np.isclose(x, y)`.

    >>> import numpy as np
    >>> import tapestry
    >>> x = tapestry.input("x", (3, 4), "float32")
    >>> np.median(x, axis=1).shape, np.dstack([x, x]).shape, np.isclose(x, 1).dtype
    ((3,), (3, 4, 2), dtype('bool'))

Sizes of results are known before anything runs; so `np.nonzero` and `np.unique` are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np

from tapestry.importers.expressions.functions import as_expression, function
from tapestry.importers.expressions.nodes import Expression

COMPOSITES: Final[dict[object, Callable[..., Any]]] = {}
"""By a function of NumPy's, what builds the expression."""


def _numpy(called: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated function is what `called` does with expressions."""

    def register(made: Callable[..., Any]) -> Callable[..., Any]:
        COMPOSITES[called] = made
        return made

    return register


def _apply(metakernel: str, *given: object, **parameters: object) -> Any:
    return function(metakernel)(*given, **parameters)


@_numpy(np.median)
def _median(x: object, axis: int | None = None, keepdims: bool = False) -> Expression:
    whole = as_expression(x)
    if whole.dtype.kind in "biu":
        whole = whole.astype("float64")
    if axis is None:
        middle = _median(whole.ravel(), 0)
        return middle.reshape([1] * whole.ndim) if keepdims else middle
    size = whole.shape[axis]
    ordered = _apply("sort", whole, axis=axis)[0]
    middle = _apply("slice", ordered, start=(size - 1) // 2, stop=size // 2 + 1, axis=axis)
    # NaN comes last in order, and is the median wherever there is one.
    last = _apply("slice", ordered, start=size - 1, stop=size, axis=axis)
    mean = middle.mean(axis=axis, keepdims=True)
    median = _apply("where", _apply("isnan", last), last, mean)
    return median if keepdims else _apply("squeeze", median, axes=[axis])


@_numpy(np.ptp)
def _ptp(x: object, axis: Any = None, keepdims: bool = False) -> Expression:
    options = {"axis": axis, "keepdim": keepdims}
    return _apply("max", x, **options) - _apply("min", x, **options)


@_numpy(np.average)
def _average(
    x: object, axis: int | None = None, weights: object = None, keepdims: bool = False
) -> Expression:
    whole = as_expression(x)
    if weights is None:
        return whole.mean(axis=axis, keepdims=keepdims)
    counted = as_expression(weights, whole.dtype)
    if axis is not None and counted.ndim == 1:
        counted = counted.reshape([-1 if d == axis % whole.ndim else 1 for d in range(whole.ndim)])
    counted = _apply("broadcast_to", counted, shape=list(whole.shape))
    total = (whole * counted).sum(axis=axis, keepdims=keepdims)
    return total / counted.sum(axis=axis, keepdims=keepdims)


@_numpy(np.isclose)
def _isclose(
    a: object, b: object, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Expression:
    one = as_expression(a)
    other = as_expression(b, one.dtype)
    finite = _apply("isfinite", one) & _apply("isfinite", other)
    near = abs(one - other) <= atol + rtol * abs(other)
    close = _apply("where", finite, near, one == other)
    both = _apply("isnan", one) & _apply("isnan", other)
    return close | both if equal_nan else close


@_numpy(np.allclose)
def _allclose(a: object, b: object, *given: Any, **named: Any) -> Expression:
    return _apply("all", _isclose(a, b, *given, **named))


@_numpy(np.array_equal)
def _array_equal(a: object, b: object) -> Expression:
    one, other = as_expression(a), as_expression(b)
    if one.shape != other.shape:
        return as_expression(np.array(False))
    return _apply("all", one == other)


@_numpy(np.select)
def _select(conditions: Sequence[object], choices: Sequence[object], default: Any = 0) -> Any:
    if len(conditions) != len(choices):
        raise TypeError(f"{len(conditions)} conditions choose among {len(choices)} choices")
    chosen: object = default
    for condition, choice in reversed([*zip(conditions, choices, strict=True)]):
        chosen = _apply("where", condition, choice, chosen)
    return chosen


@_numpy(np.nan_to_num)
def _nan_to_num(
    x: object, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> Expression:
    whole = as_expression(x)
    if not copy:
        raise TypeError("an expression is not changed in place: copy is True")
    if whole.dtype.kind in "biu":
        return whole
    ends = {"posinf": posinf, "neginf": neginf}
    given = {name: float(end) for name, end in ends.items() if end is not None}
    return _apply("nan_to_num", whole, nan=float(nan), **given)


@_numpy(np.atleast_1d)
def _atleast_1d(x: object) -> Expression:
    whole = as_expression(x)
    return whole if whole.ndim else whole.reshape(1)


@_numpy(np.atleast_2d)
def _atleast_2d(x: object) -> Expression:
    whole = as_expression(x)
    return whole if whole.ndim > 1 else whole.reshape(1, whole.size)


@_numpy(np.atleast_3d)
def _atleast_3d(x: object) -> Expression:
    whole = as_expression(x)
    return whole if whole.ndim > 2 else _atleast_2d(whole)[..., None]


@_numpy(np.dstack)
def _dstack(tensors: Sequence[object]) -> Expression:
    return _apply("concat", [_atleast_3d(one) for one in tensors], axis=2)


@_numpy(np.column_stack)
def _column_stack(tensors: Sequence[object]) -> Expression:
    given = [as_expression(one) for one in tensors]
    return _apply("concat", [one if one.ndim > 1 else one[:, None] for one in given], axis=1)


@_numpy(np.array_split)
def _array_split(x: object, parts: int | Sequence[int], axis: int = 0) -> list[Expression]:
    whole = as_expression(x)
    size = whole.shape[axis]
    if isinstance(parts, int):
        least, more = divmod(size, parts)
        edges = [n * least + min(n, more) for n in range(parts + 1)]
    else:
        edges = [0, *parts, size]
    return [
        _apply("slice", whole, start=start, stop=stop, axis=axis) for start, stop in pairwise(edges)
    ]


@_numpy(np.fliplr)
def _fliplr(x: object) -> Expression:
    return _apply("flip", x, axes=[1])


@_numpy(np.flipud)
def _flipud(x: object) -> Expression:
    return _apply("flip", x, axes=[0])


@_numpy(np.diag)
def _diag(x: object, k: int = 0) -> Expression:
    whole = as_expression(x)
    if whole.ndim == 2:
        return _apply("diagonal", whole, offset=k)
    size = whole.size + abs(k)
    padded = _apply(
        "pad", whole, before=[max(-k, 0)], after=[max(k, 0)], mode="constant", value=0.0
    )
    places = np.eye(size, k=k, dtype=bool)
    return _apply("where", places, padded[:, None], np.zeros((), whole.dtype))


@_numpy(np.meshgrid)
def _meshgrid(*vectors: object, indexing: str = "xy") -> Any:
    return _apply("meshgrid", list(vectors), indexing=indexing)


@_numpy(np.searchsorted)
def _searchsorted(row: object, values: object, side: str = "left") -> Expression:
    if side not in ("left", "right"):
        raise TypeError(f"side is left or right, not {side!r}")
    sorted_row = as_expression(row)
    if sorted_row.ndim != 1:
        raise TypeError("what is searched has one axis")
    wanted = as_expression(values, sorted_row.dtype)
    places = _apply("searchsorted", sorted_row, wanted.ravel(), right=side == "right")
    return places.reshape(wanted.shape)


@_numpy(np.vdot)
def _vdot(a: object, b: object) -> Expression:
    return as_expression(a).ravel().dot(as_expression(b).ravel())


@_numpy(np.cross)
def _cross(a: object, b: object) -> Expression:
    one, other = as_expression(a), as_expression(b)
    if one.shape[-1] != 3 or other.shape[-1] != 3:
        raise TypeError("the vectors have three components each")

    def turned(x: Expression, by: int) -> Expression:
        return _apply("roll", x, shifts=by, axes=-1)

    return turned(one, -1) * turned(other, -2) - turned(one, -2) * turned(other, -1)


@_numpy(np.result_type)
def _result_type(*given: object) -> np.dtype[Any]:
    plain = [one.dtype if isinstance(one, Expression) else one for one in given]
    return np.result_type(*cast(Any, plain))
