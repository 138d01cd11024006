"""NumPy's own functions on expressions: `np.exp(x)`, `np.sum(x, axis=1)`, `np.concatenate([x, y])`.

    >>> import numpy as np
    >>> import tapestry
    >>> x = tapestry.input("x", (3, 4), "float32")
    >>> np.exp(x), np.mean(x, axis=0, keepdims=True).shape
    (<float32[3, 4]: exp(x)>, (1, 4))

Each builds an expression, as the metakernel that computes the same would; what has none is refused
by name. NumPy calls them by its protocols `__array_ufunc__` and `__array_function__`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tapestry.diagnostics import UsageError
from tapestry.importers.expressions.functions import as_expression, function
from tapestry.importers.expressions.nodes import Expression, caller
from tapestry.importers.expressions.operators import of_truths
from tapestry.metakernels import load_library

_UFUNCS: Final = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "power": "pow",
    "absolute": "abs", "fabs": "abs", "negative": "neg", "positive": "clone", "rint": "round",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq",
    "not_equal": "ne", "invert": "bitwise_not", "bitwise_invert": "bitwise_not",
    "left_shift": "shift_left", "right_shift": "shift_right", "mod": "remainder",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "degrees": "rad2deg", "radians": "deg2rad",
}  # fmt: skip
"""The metakernels of ufuncs that are named otherwise."""

_REDUCED: Final = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min",
    "logical_and": "all", "logical_or": "any",
}  # fmt: skip
_ACCUMULATED: Final = {"add": "cumsum", "multiply": "cumprod"}


def apply_ufunc(
    ufunc: np.ufunc, method: str, given: Sequence[object], named: Mapping[str, object]
) -> Any:
    """What a ufunc gives, or its `reduce` or `accumulate`; UsageError where nothing computes it."""
    name = ufunc.__name__
    asked = _asked(f"np.{name}", named)
    if method == "__call__":
        if name == "divmod" and not asked:
            return divmod(as_expression(given[0]), given[1])
        metakernel: str | None = _UFUNCS.get(name, name)
        if metakernel not in load_library().names or asked:
            raise _refused(f"np.{name}", asked, metakernel or name)
        return function(of_truths(metakernel, *given))(*given)
    folded = {"reduce": _REDUCED, "accumulate": _ACCUMULATED}.get(method, {}).get(name)
    if folded is None or len(given) != 1:
        raise _refused(f"np.{name}.{method}", {}, name)
    axis = asked.pop("axis", 0)
    return getattr(as_expression(given[0]), folded)(axis=axis, **asked)


def apply_function(
    called: Callable[..., Any], given: Sequence[object], named: Mapping[str, object]
) -> Any:
    """What a function of NumPy's gives; UsageError where nothing computes it."""
    from tapestry.importers.expressions.numpy_composites import COMPOSITES  # seldom needed

    near = getattr(called, "__name__", str(called))
    name = f"{getattr(called, '__module__', 'numpy').replace('numpy', 'np', 1)}.{near}"
    handler = _FUNCTIONS.get(called, COMPOSITES.get(called))
    asked = _asked(name, named)
    if handler is None:
        raise _refused(name, {}, near)
    try:
        return handler(*given, **asked)
    except TypeError as error:
        raise UsageError(f"{name} of an expression: {error}", location=caller()) from None


def _asked(name: str, named: Mapping[str, object]) -> dict[str, object]:
    """The arguments by name that say something; UsageError for one that says where to write.

    An axis that is None does: it is all of them.
    """
    asked = {key: value for key, value in named.items() if value is not None or key == "axis"}
    if "out" in asked:
        hint = "an expression is a description: nothing is written until it runs"
        raise UsageError(f"{name} of an expression takes no `out`", location=caller(), hint=hint)
    return asked


def _refused(name: str, asked: Mapping[str, object], near: str) -> UsageError:
    if asked:
        what = f"{name} of an expression takes no `{next(iter(asked))}`"
        return UsageError(what, location=caller())
    close = get_close_matches(near, load_library().names, n=3)
    hint = f"the nearest metakernels are {', '.join(close)}" if close else None
    return UsageError(f"{name} does not take expressions", location=caller(), hint=hint)


def _apply(metakernel: str, *given: object, **parameters: object) -> Any:
    return function(metakernel)(*given, **parameters)


def _own(metakernel: str) -> Callable[..., Any]:
    """A function whose arguments are those of the metakernel."""

    def own(*given: object, **named: object) -> Any:
        return _apply(metakernel, *given, **named)

    return own


def _method(name: str) -> Callable[..., Any]:
    """A function that is the method `name` of its first argument."""

    def method(x: object, *given: object, **named: object) -> Any:
        return getattr(as_expression(x), name)(*given, **named)

    return method


def _property(name: str) -> Callable[..., Any]:
    def read(x: object) -> Any:
        return getattr(as_expression(x), name)

    return read


def _spread(metakernel: str) -> Callable[..., Any]:
    """`np.var`, `np.std`: of all cells, unless `ddof` says of a sample."""

    def spread(x: object, axis: object = None, ddof: float = 0, keepdims: bool = False) -> Any:
        return _apply(metakernel, x, axis=axis, correction=float(ddof), keepdim=keepdims)

    return spread


_ALIKE: Final = (
    "max", "min", "all", "any", "stack", "outer", "tril", "triu", "trace",
    "swapaxes", "broadcast_to", "zeros_like", "ones_like", "diagonal", "round", "tile",
    "count_nonzero", "kron", "take_along_axis",
)  # fmt: skip
"""Functions whose arguments are those of the metakernel of that name."""

_METHODS: Final = (
    "reshape", "transpose", "clip", "ravel", "dot", "argmax", "argmin", "argsort", "copy",
    "sum", "mean", "prod", "cumsum", "cumprod", "take", "repeat",
)  # fmt: skip

_FUNCTIONS: Final[dict[object, Callable[..., Any]]] = {
    **{getattr(np, name): _own(name) for name in _ALIKE},
    **{getattr(np, name): _method(name) for name in _METHODS},
    **{getattr(np, name): _property(name) for name in ("shape", "ndim", "size")},
    np.amax: _own("max"),
    np.amin: _own("min"),
    np.around: _own("round"),
    np.empty_like: _own("zeros_like"),
    np.std: _spread("std"),
    np.var: _spread("var"),
}
"""By a function of NumPy's, what builds the expression."""


def _numpy(called: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated function is what `called` does with expressions."""

    def register(made: Callable[..., Any]) -> Callable[..., Any]:
        _FUNCTIONS[called] = made
        return made

    return register


@_numpy(np.concatenate)
def _concatenate(tensors: Sequence[object], axis: int | None = 0) -> Any:
    if axis is None:
        return _apply("concat", [as_expression(one).ravel() for one in tensors])
    return _apply("concat", list(tensors), axis=axis)


@_numpy(np.vstack)
def _vstack(tensors: Sequence[object]) -> Any:
    given = [as_expression(one) for one in tensors]
    return _apply("concat", [one if one.ndim > 1 else one.reshape(1, -1) for one in given])


@_numpy(np.hstack)
def _hstack(tensors: Sequence[object]) -> Any:
    given = [as_expression(one) for one in tensors]
    return _apply("concat", given, axis=min(1, given[0].ndim - 1))


@_numpy(np.pad)
def _pad(x: object, pad_width: Any, mode: str = "constant", constant_values: float = 0) -> Any:
    widths = np.broadcast_to(np.asarray(pad_width), (as_expression(x).ndim, 2))
    before, after = widths.T.tolist()
    kind = {"edge": "replicate", "wrap": "circular"}.get(mode, mode)
    return _apply("pad", x, before=before, after=after, mode=kind, value=float(constant_values))


@_numpy(np.roll)
def _roll(x: object, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Any:
    whole = as_expression(x)
    if axis is None:
        return _roll(whole.ravel(), shift, 0).reshape(whole.shape)
    return _apply("roll", whole, shifts=shift, axes=axis)


@_numpy(np.flip)
def _flip(x: object, axis: int | Sequence[int] | None = None) -> Any:
    return _apply("flip", x, axes=list(range(as_expression(x).ndim)) if axis is None else axis)


@_numpy(np.expand_dims)
def _expand_dims(x: object, axis: int | Sequence[int]) -> Any:
    return _apply("unsqueeze", x, axes=axis)


@_numpy(np.squeeze)
def _squeeze(x: object, axis: int | Sequence[int] | None = None) -> Any:
    if axis == ():
        return as_expression(x)
    return _apply("squeeze", x, axes=() if axis is None else axis)


@_numpy(np.moveaxis)
def _moveaxis(x: object, source: int, destination: int) -> Any:
    return _apply("movedim", x, source, destination)


@_numpy(np.tensordot)
def _tensordot(a: object, b: object, axes: Any = 2) -> Any:
    if isinstance(axes, int):
        rank = as_expression(a).ndim
        axes = (list(range(rank - axes, rank)), list(range(axes)))
    of_a, of_b = axes
    return _apply("tensordot", a, b, axes_a=of_a, axes_b=of_b)


@_numpy(np.inner)
def _inner(a: object, b: object) -> Any:
    return _tensordot(a, b, (as_expression(a).ndim - 1, as_expression(b).ndim - 1))


@_numpy(np.einsum)
def _einsum(equation: str, *operands: object) -> Any:
    return _apply("einsum", list(operands), equation)


@_numpy(np.linalg.norm)
def _norm(x: object, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002
    if ord is not None and as_expression(x).ndim > 1 and not isinstance(axis, int):
        raise TypeError("norms of matrices have no metakernel; give one axis")
    if ord == np.inf:
        return _apply("vector_norm_max", x, axis=axis, keepdim=keepdims)
    if ord == -np.inf:
        return _apply("min", _apply("abs", x), axis=axis, keepdim=keepdims)
    power = 2.0 if ord is None else float(ord)
    return _apply("vector_norm", x, axis=axis, keepdim=keepdims, ord=power)


@_numpy(np.diff)
def _diff(x: object, n: int = 1, axis: int = -1) -> Any:
    result = as_expression(x)
    for _ in range(n):
        size = result.shape[axis]
        later = _apply("slice", result, start=1, stop=size, axis=axis)
        result = later - _apply("slice", result, start=0, stop=size - 1, axis=axis)
    return result


@_numpy(np.split)
def _split(x: object, parts: int | Sequence[int], axis: int = 0) -> list[Expression]:
    whole = as_expression(x)
    size = whole.shape[axis]
    if isinstance(parts, int) and (parts < 1 or size % parts):
        raise TypeError(f"{size} cells do not split into {parts} equal parts")
    at = [size * n // parts for n in range(1, parts)] if isinstance(parts, int) else parts
    edges = [0, *at, size]
    return [
        _apply("slice", whole, start=start, stop=stop, axis=axis) for start, stop in pairwise(edges)
    ]


@_numpy(np.where)
def _where(condition: object, *chosen: object) -> Any:
    if len(chosen) != 2:
        raise TypeError("how many cells are true is known when it runs; give both alternatives")
    return _apply("where", condition, *chosen)


@_numpy(np.sort)
def _sort(x: object, axis: int | None = -1) -> Any:
    if axis is None:
        return _sort(as_expression(x).ravel())
    whole = as_expression(x)
    if whole.dtype.kind == "b":
        return _sort(whole.astype("int8"), axis).astype(bool)
    return _apply("sort", whole, axis=axis)[0]


@_numpy(np.full_like)
def _full_like(x: object, fill_value: float) -> Any:
    return _apply("full_like", x, value=fill_value)
