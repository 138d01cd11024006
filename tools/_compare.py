"""How far the outputs of a run are from those expected, output by output.

    >>> import numpy as np
    >>> compare("out0", np.float32([1.0, 2.0]), np.float32([1.0, 2.5]), Tolerance()).agrees
    False

Integers and truth values must be equal. A float or complex number `a` agrees with the expected `e`
when `|a - e| <= atol + rtol * |e|`, as in NumPy's allclose; a NaN agrees with a NaN, an infinity
with the same infinity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapestry.runtime.executor import Array
from tapestry.runtime.fitting import BFLOAT16, EXTENDED
from tapestry.tools._arrays import ArrayFileError, output_name

# What reordering a sum of a few thousand terms may cost in each type.
_DEFAULTS: dict[np.dtype[Any], tuple[float, float]] = {
    np.dtype(np.float64): (1e-9, 1e-12),
    np.dtype(np.float32): (1e-4, 1e-5),
    np.dtype(np.float16): (1e-2, 1e-3),
    np.dtype(np.complex128): (1e-9, 1e-12),
    np.dtype(np.complex64): (1e-4, 1e-5),
    BFLOAT16: (2e-2, 1e-2),
}


@dataclass(frozen=True)
class Tolerance:
    """How far a float may be from the expected one; None takes the default of its type."""

    rtol: float | None = None
    atol: float | None = None

    def of(self, dtype: np.dtype[Any]) -> tuple[float, float]:
        """The relative and the absolute tolerance for cells of `dtype`."""
        rtol, atol = _DEFAULTS.get(dtype, (0.0, 0.0))
        return (
            rtol if self.rtol is None else self.rtol,
            atol if self.atol is None else self.atol,
        )


@dataclass(frozen=True)
class Agreement:
    """How one output compares: cells beyond tolerance, and the largest errors of its cells.

    `mismatch` says why the arrays cannot be compared cell by cell at all, when they cannot.
    """

    name: str
    exact: bool
    cells: int = 0
    beyond: int = 0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    mismatch: str | None = None

    @property
    def agrees(self) -> bool:
        """Whether every cell is within tolerance."""
        return self.mismatch is None and self.beyond == 0


def compare(name: str, actual: Array, expected: Array, tolerance: Tolerance) -> Agreement:
    """The agreement of one output with what was expected of it.

    The error of a cell is infinite where one of the two is not finite, and they are not the same.
    """
    exact = not _is_float(actual.dtype)
    if actual.shape != expected.shape or exact == _is_float(expected.dtype):
        mismatch = f"{_describe(actual)}, but expected {_describe(expected)}"
        return Agreement(name, exact, mismatch=mismatch)
    if exact:
        beyond = int(np.count_nonzero(actual != expected))
        error = np.abs(actual.astype(object) - expected.astype(object)) if beyond else np.zeros(1)
        return Agreement(name, exact, actual.size, beyond, float(np.max(error, initial=0)))
    rtol, atol = tolerance.of(actual.dtype)
    wide = np.complex128 if "c" in (actual.dtype.kind, expected.dtype.kind) else np.float64
    a, e = actual.astype(wide), expected.astype(wide)
    comparable = np.isfinite(a) & np.isfinite(e)
    same = (a == e) | (np.isnan(a) & np.isnan(e))
    difference = np.abs(np.where(comparable, a, 0.0) - np.where(comparable, e, 0.0))
    size = np.where(comparable, np.abs(e), 0.0)
    agree = same | (comparable & (difference <= atol + rtol * size))
    with np.errstate(over="ignore"):
        relative = np.divide(difference, size, out=np.zeros_like(difference), where=size > 0)
    apart = np.where(comparable | same, 0.0, np.inf)
    return Agreement(
        name,
        exact,
        actual.size,
        int(np.count_nonzero(~agree)),
        float(np.max(difference + apart, initial=0.0)),
        float(np.max(relative + apart, initial=0.0)),
    )


def compare_all(
    outputs: Sequence[Array], expected: Mapping[str, Array], source: str, tolerance: Tolerance
) -> tuple[Agreement, ...]:
    """The agreement of each output with the array of its name in `expected`.

    Raises ArrayFileError when `expected`, which came from `source`, lacks an output or holds more.
    """
    names = [output_name(position) for position in range(len(outputs))]
    missing = [name for name in names if name not in expected]
    spare = [name for name in expected if name not in names]
    if missing or spare:
        parts = [f"lacks {', '.join(missing)}"] if missing else []
        parts += [f"also holds {', '.join(spare)}"] if spare else []
        raise ArrayFileError(
            f"{source} {' and '.join(parts)}",
            hint=f"it should hold the program's outputs: {', '.join(names) or 'none'}",
        )
    return tuple(
        compare(name, output, expected[name], tolerance)
        for name, output in zip(names, outputs, strict=True)
    )


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype in EXTENDED or np.issubdtype(dtype, np.inexact)


def _describe(array: Array) -> str:
    return f"{array.dtype.name} of shape {list(array.shape)}"
