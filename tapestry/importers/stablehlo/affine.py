"""Integers that are affine in their coordinates: iotas, and what is computed of them.

    iota dim = 1 : tensor<4x6xi32>, plus 2, compared with 8        always less

JAX makes index vectors of iotas, and guards against negative ones: `x[jnp.arange(4), i]` compares
an iota with zero and selects. That is decided here, by the range of the function, so a gather sees
that one of its indices is a coordinate.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np

from tapestry.importers.stablehlo.attributes import integers, word
from tapestry.importers.stablehlo.bindings import MlirOperation
from tapestry.importers.stablehlo.values import Affine, Spec, Value

_ORDER: dict[str, Callable[[int, int], bool]] = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


def affine_of(value: Value) -> Affine | None:
    """The affine function that a value of integers is, also one number everywhere; or None."""
    if value.affine is not None:
        return value.affine
    if value.spec.is_integer and value.splat is not None:
        return Affine((0,) * value.spec.rank, int(value.splat))
    return None


def fold(
    name: str, operands: Sequence[Value], results: Sequence[Spec], source: MlirOperation
) -> Value | None:
    """The result of an operation on affine integers, or None where it is none."""
    if len(results) != 1:
        return None
    (spec,) = results
    if name == "stablehlo.iota":
        return _fitting(iota(spec, source), spec)
    if name == "stablehlo.select" and operands[0].splat is not None:
        return operands[1 if operands[0].splat else 2]
    if not any(value.affine for value in operands):
        return None
    found = [affine_of(value) for value in operands]
    functions = [one for one in found if one is not None]
    if len(functions) != len(operands):
        return None
    if name == "stablehlo.compare":
        direction = word(source.attributes["comparison_direction"])
        truth = _compared(direction, functions, operands[0].spec.shape)
        return None if truth is None else Value(spec, known=np.broadcast_to(truth, spec.shape))
    made = _computed(name, functions, operands, spec, source)
    return None if made is None else _fitting(made, spec)


def iota(spec: Spec, source: MlirOperation) -> Affine:
    """The coordinate along the dimension that an iota names."""
    dimension = integers(source.attributes["iota_dimension"])[0]
    return Affine(tuple(int(d == dimension) for d in range(spec.rank)), 0)


def _fitting(made: Affine, spec: Spec) -> Value | None:
    """The value, unless numbers of its type would wrap or be rounded."""
    low, high = made.bounds(spec.shape)
    if spec.is_integer:
        limits = np.iinfo(spec.numpy)
        fits = limits.min <= low and high <= limits.max
    else:
        fits = spec.is_float and max(-low, high) <= 1 << 8
    return Value(spec, affine=made) if fits else None


def _compared(
    direction: str, functions: Sequence[Affine], shape: tuple[int, ...]
) -> np.bool_ | None:
    """What a comparison is everywhere, if it is the same."""
    low, high = _combined(functions[0], functions[1], -1).bounds(shape)
    if direction in ("EQ", "NE"):
        if low <= 0 <= high and (low, high) != (0, 0):
            return None
        return np.bool_((low == high == 0) == (direction == "EQ"))
    if low != high and _ORDER[direction](low, 0) != _ORDER[direction](high, 0):
        return None
    return np.bool_(_ORDER[direction](low, 0))


def _combined(a: Affine, b: Affine, factor: int) -> Affine:
    pairs = zip(a.coefficients, b.coefficients, strict=True)
    return Affine(tuple(x + factor * y for x, y in pairs), a.constant + factor * b.constant)


def _computed(
    name: str,
    functions: Sequence[Affine],
    operands: Sequence[Value],
    spec: Spec,
    source: MlirOperation,
) -> Affine | None:
    first = functions[0]
    match name.removeprefix("stablehlo."):
        case "add" | "subtract":
            return _combined(first, functions[1], 1 if name.endswith("add") else -1)
        case "negate":
            return Affine(tuple(-c for c in first.coefficients), -first.constant)
        case "multiply":
            return _product(first, functions[1])
        case "convert" if operands[0].spec.is_integer:
            return first
        case "broadcast_in_dim":
            row = [0] * spec.rank
            dims = integers(source.attributes["broadcast_dimensions"])
            pairs = zip(dims, first.coefficients, operands[0].spec.shape, strict=True)
            for dim, coefficient, size in pairs:
                row[dim] = coefficient if size > 1 else 0
            return Affine(tuple(row), first.constant)
        case "transpose":
            order = integers(source.attributes["permutation"])
            return Affine(tuple(first.coefficients[dim] for dim in order), first.constant)
        case "reshape":
            return _reshaped(first, operands[0].spec.shape, spec.shape)
        case "slice":
            starts = integers(source.attributes["start_indices"])
            steps = integers(source.attributes["strides"])
            moved = sum(c * s for c, s in zip(first.coefficients, starts, strict=True))
            row = tuple(c * s for c, s in zip(first.coefficients, steps, strict=True))
            return Affine(row, first.constant + moved)
        case _:
            return None


def _product(a: Affine, b: Affine) -> Affine | None:
    if any(a.coefficients):
        a, b = b, a
    if any(a.coefficients):
        return None
    return Affine(tuple(a.constant * c for c in b.coefficients), a.constant * b.constant)


def _reshaped(function: Affine, before: tuple[int, ...], after: tuple[int, ...]) -> Affine | None:
    """The function over a shape that differs in dimensions of one cell."""
    kept = [c for c, n in zip(function.coefficients, before, strict=True) if n != 1]
    if [n for n in before if n != 1] != [n for n in after if n != 1]:
        return None
    rest = iter(kept)
    return Affine(tuple(0 if n == 1 else next(rest) for n in after), function.constant)
