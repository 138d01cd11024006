"""Element types: how IR types, NumPy dtypes and their names correspond.

>>> from xdsl.dialects.builtin import f32
>>> numpy_dtype(f32)
dtype('float32')
>>> type_named("bf16")
BFloat16Type()
"""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    ComplexType,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    IndexType,
    IntegerType,
    Signedness,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute

ui8, ui16, ui32, ui64 = (IntegerType(width, Signedness.UNSIGNED) for width in (8, 16, 32, 64))
UNSIGNED = (ui8, ui16, ui32, ui64)
"""Cells without a sign: NumPy's uint8 to uint64. Bodies hold their bits, as i8 to i64."""

_NUMPY: dict[Attribute, np.dtype[Any]] = {
    f64: np.dtype(np.float64),
    f32: np.dtype(np.float32),
    f16: np.dtype(np.float16),
    bf16: np.dtype(ml_dtypes.bfloat16),
    i64: np.dtype(np.int64),
    i32: np.dtype(np.int32),
    i16: np.dtype(np.int16),
    i8: np.dtype(np.int8),
    i1: np.dtype(np.bool_),
    ui8: np.dtype(np.uint8),
    ui16: np.dtype(np.uint16),
    ui32: np.dtype(np.uint32),
    ui64: np.dtype(np.uint64),
    IndexType(): np.dtype(np.int64),
    Float8E4M3FNType(): np.dtype(ml_dtypes.float8_e4m3fn),
    Float8E5M2Type(): np.dtype(ml_dtypes.float8_e5m2),
    ComplexType(f32): np.dtype(np.complex64),
    ComplexType(f64): np.dtype(np.complex128),
}

_NAMES: dict[str, Attribute] = {str(element): element for element in _NUMPY}
_CALLED = {element: name for name, element in _NAMES.items()}

ELEMENT_TYPES: tuple[Attribute, ...] = tuple(_NUMPY)
"""Every type a tensor's cell may have."""

BODY_TYPES = tuple(element for element in ELEMENT_TYPES if element not in UNSIGNED)
"""Every type a value of a body may have."""

_RANKED = (i1, *UNSIGNED, i8, i16, i32, i64, f16, bf16, f32, f64)
"""From what promotes to what it is promoted to."""


def is_element_type(element: Attribute) -> bool:
    """Whether a tensor may hold cells of this type."""
    return element in _NUMPY


def numpy_dtype(element: Attribute) -> np.dtype[Any]:
    """The NumPy dtype that stores cells of `element`; KeyError when it is not an element type."""
    return _NUMPY[element]


def body_type(element: Attribute) -> Attribute:
    """The type that bodies hold cells of `element` in: that of its bits, where operations carry
    the sign.
    """
    return IntegerType(integer_width(element)) if is_unsigned(element) else element


def type_named(name: str) -> Attribute | None:
    """The element type written `name` in IR (`f32`, `i1`, ...), or None."""
    return _NAMES.get(name)


def name_of(element: Attribute) -> str:
    """What `type_named` finds an element type by; printing it is slower."""
    return _CALLED[element]


def is_float(element: Attribute) -> bool:
    """Whether `element` is a floating-point type."""
    return isinstance(element, AnyFloat)


def is_complex(element: Attribute) -> bool:
    """Whether `element` is a type of complex numbers."""
    return isinstance(element, ComplexType)


def is_half(element: Attribute) -> bool:
    """Whether `element` is a 16-bit float."""
    return isinstance(element, Float16Type | BFloat16Type)


def is_storage_only(element: Attribute) -> bool:
    """Whether cells of `element`, an 8-bit float, are only stored: bodies extend them first."""
    return isinstance(element, Float8E4M3FNType | Float8E5M2Type)


def is_narrow(element: Attribute) -> bool:
    """Whether `element` is a float of 8 or 16 bits, which meets others by way of f32."""
    return is_half(element) or is_storage_only(element)


def promote(left: Attribute, right: Attribute) -> Attribute:
    """The type that holds the result of an operation on two types, as in PyTorch.

    Truth values are below integers, integers below floats; a float keeps its type beside any
    integer, and the two half types meet in f32. Integers with and without a sign meet in the least
    signed type that holds both (i8 and ui8 in i16), at most i64, where numbers wrap. Beside a
    complex type everything is complex, its parts as wide as the parts meet in. TypeError where a
    type is only stored.
    """
    if is_complex(left) or is_complex(right):
        parts = promote(_part(left), _part(right))
        assert isinstance(parts, AnyFloat)
        return ComplexType(parts)
    for element in (left, right):
        if element not in _RANKED:
            raise TypeError(f"{element} promotes to nothing; cast it first")
    if left != right and is_half(left) and is_half(right):
        return f32
    if is_integer(left) and is_integer(right) and i1 not in (left, right):
        for unsigned, signed in ((left, right), (right, left)):
            if is_unsigned(unsigned) and not is_unsigned(signed):
                wide = min(2 * integer_width(unsigned), 64)
                return IntegerType(max(wide, integer_width(signed)))
    return max(left, right, key=_RANKED.index)


def _part(element: Attribute) -> Attribute:
    """The type of the real part: of a real type, itself."""
    if not isinstance(element, ComplexType):
        return element
    return cast("ComplexType[AnyFloat]", element).element_type


def accumulation_type(element: Attribute) -> Attribute:
    """The type that sums of `element` are kept in, as in PyTorch.

    f32 for narrow floats, i64 for integers and truth values, which are counted.
    """
    if is_narrow(element):
        return f32
    return i64 if is_integer(element) else element


def is_integer(element: Attribute) -> bool:
    """Whether `element` is an integer type, i1 (a truth value) and index included."""
    return isinstance(element, IntegerType | IndexType)


def is_unsigned(element: Attribute) -> bool:
    """Whether `element` is a type of integers without a sign."""
    return element in UNSIGNED


def integer_width(element: Attribute) -> int:
    """Bits of an integer element type, 64 of an index; TypeError for any other."""
    if isinstance(element, IndexType):
        return 64
    if not isinstance(element, IntegerType):
        raise TypeError(f"{element} is not an integer type")
    return cast(IntegerType[int], element).width.data


def byte_size(element: Attribute) -> int:
    """Bytes that one stored cell takes (i1 takes a whole byte)."""
    return _NUMPY[element].itemsize
