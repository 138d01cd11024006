"""Numbers that are known at expansion, and how they (and typed values) become another type.

    >>> coerce(Known(2), "f32")
    Constant(value=2.0, dtype='f32')
    >>> coerce(Known(0.5), "i32")
    Traceback (most recent call last):
    ...
    tapestry.metakernels.errors.DtypeMismatchError: error: 0.5 is no i32
      hint: convert the other operand: cast(..., f32)
      rule: nothing is converted silently, except that floats are rounded to the result's dtype

Arithmetic among such numbers is done at expansion, in Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, nan, pi
from typing import Final

from tapestry.metakernels.dtypes import INTEGERS, is_float, is_unsigned
from tapestry.metakernels.errors import DtypeMismatchError, KindMismatchError
from tapestry.metakernels.scalars import Constant, Scalar, cast
from tapestry.metakernels.symbols import Quantity, is_symbolic

NAMED: Final = {"inf": inf, "nan": nan, "pi": pi}
"""Numbers that bodies name."""

_LARGEST: Final = {
    "f16": "0x1.FFCp15", "bf16": "0x1.FEp127", "f32": "0x1.FFFFFEp127",
    "f64": "0x1.FFFFFFFFFFFFFp1023",
}  # fmt: skip
_WIDTHS = {dtype: int(dtype.lstrip("ui")) for dtype in ("i1", *INTEGERS)}


@dataclass(frozen=True, slots=True)
class Known:
    """A number, truth value or choice without a type: it takes that of what it meets."""

    value: int | float | str


def number(known: Known) -> int | float:
    """The value of `known` as a number."""
    if isinstance(known.value, str):
        raise KindMismatchError(
            f"{known.value!r} is a choice, and choices only compare: $p == '{known.value}'"
        )
    return known.value


def truth(known: Known) -> bool:
    """The value of `known` as a condition."""
    value = number(known)
    if isinstance(value, float) or value not in (0, 1):
        raise KindMismatchError(f"{value} is no condition", hint="compare it: $n > 0")
    return bool(value)


def coerce(term: Scalar | Known, dtype: str, *, explicit: bool = False) -> Scalar:
    """`term` as a value of `dtype`; a number must be representable unless `explicit`."""
    if isinstance(term, Known):
        return Constant(_represented(number(term), dtype, explicit), dtype)
    return cast(term, dtype)


def _represented(value: float, dtype: str, explicit: bool) -> int | float:
    if is_symbolic(value):
        return Quantity.of(value) if is_float(dtype) else value
    if is_float(dtype):
        return float(value)
    if dtype == "i1":
        if explicit:
            return int(value != 0)
    elif isinstance(value, float) and (value.is_integer() or (explicit and isfinite(value))):
        value = int(value)
    low, high = limits(dtype)
    if isinstance(value, float) or not low <= value <= high:
        hint = "convert the other operand: cast(..., f32)" if isinstance(value, float) else None
        raise DtypeMismatchError(f"{value} is no {dtype}", hint=hint)
    return int(value)


def extreme(name: str, dtype: str) -> Constant:
    """`lowest`, `highest` or `largest` value of a dtype: the largest one is finite."""
    if name == "largest" and is_float(dtype):
        return Constant(float.fromhex(_LARGEST[dtype]), dtype)
    if is_float(dtype):
        return Constant(-inf if name == "lowest" else inf, dtype)
    return Constant(limits(dtype)[name != "lowest"], dtype)


def limits(dtype: str) -> tuple[int, int]:
    """The least and greatest value of an integer dtype."""
    width = _WIDTHS[dtype]
    if dtype == "i1" or is_unsigned(dtype):
        return 0, (1 << width) - 1
    return -(1 << (width - 1)), (1 << (width - 1)) - 1
