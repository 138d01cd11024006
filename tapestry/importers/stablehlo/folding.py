"""Integers and truth values that are known when a program is imported.

Loop counters, trip counts, starts of slices: operations on a few integers whose operands are all
known are computed here, exactly as StableHLO says (two's complement, so they wrap).

    fold("stablehlo.add", [1, 2])       3, as a value that is known
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapestry.importers.stablehlo.affine import fold as affine_fold
from tapestry.importers.stablehlo.attributes import integers, word
from tapestry.importers.stablehlo.bindings import MlirOperation
from tapestry.importers.stablehlo.values import Spec, Value

MAX_CELLS = 4096
"""The largest tensor that is computed here."""


def _clamped(low: NDArray[Any], x: NDArray[Any], high: NDArray[Any]) -> NDArray[Any]:
    return np.minimum(np.maximum(x, low), high)


_POINTWISE: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "negate": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "select": np.where,
    "clamp": _clamped,
}
_TRUTH = {"add": np.logical_or, "multiply": np.logical_and}
"""What sums and products of truth values are."""

_ORDER: dict[str, Callable[..., Any]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def fold(
    name: str, operands: Sequence[Value], results: Sequence[Spec], source: MlirOperation
) -> list[Value] | None:
    """The result of an operation whose operands are known, or affine; else None."""
    affine = affine_fold(name, operands, results, source)
    if affine is not None:
        return [affine]
    known = [value.known for value in operands if value.known is not None]
    if len(results) != 1 or not known or len(known) != len(operands):
        return None
    (spec,) = results
    if name == "stablehlo.broadcast_in_dim" and operands[0].spec.size == 1:
        return [Value(spec, known=np.broadcast_to(known[0].reshape(()), spec.shape))]
    if name == "stablehlo.reshape" and not any(known[0].strides) and known[0].size:
        return [Value(spec, known=np.broadcast_to(known[0].reshape(-1)[0], spec.shape))]
    small = max(spec.size, *(cells.size for cells in known)) <= MAX_CELLS
    exact = all(one.spec.is_integer or one.spec.dtype == "i1" for one in operands)
    if not small or not exact or not (spec.is_integer or spec.dtype == "i1"):
        return None
    with np.errstate(over="ignore"):
        cells = _computed(name.removeprefix("stablehlo."), known, spec, source)
    return None if cells is None else [Value(spec, known=cells.astype(spec.numpy, copy=False))]


def _computed(
    name: str, known: Sequence[NDArray[Any]], spec: Spec, source: MlirOperation
) -> NDArray[Any] | None:
    if name in _POINTWISE:
        truths = spec.dtype == "i1" and name in _TRUTH
        return np.asarray((_TRUTH if truths else _POINTWISE)[name](*known))
    match name:
        case "compare":
            return _ORDER[word(source.attributes["comparison_direction"])](*known)
        case "convert":
            return (known[0] != 0) if spec.dtype == "i1" else known[0].astype(spec.numpy)
        case "reshape":
            return known[0].reshape(spec.shape)
        case "slice":
            starts, limits, steps = (
                integers(source.attributes[key])
                for key in ("start_indices", "limit_indices", "strides")
            )
            return known[0][tuple(map(slice, starts, limits, steps))]
        case "concatenate":
            return np.concatenate(known, integers(source.attributes["dimension"])[0])
        case "transpose":
            return known[0].transpose(integers(source.attributes["permutation"]))
        case "broadcast_in_dim":
            dims = integers(source.attributes["broadcast_dimensions"])
            shape = [1] * spec.rank
            for dim, size in zip(dims, known[0].shape, strict=True):
                shape[dim] = size
            order = sorted(range(len(dims)), key=dims.__getitem__)
            return np.broadcast_to(known[0].transpose(order).reshape(shape), spec.shape)
        case _:
            return None
