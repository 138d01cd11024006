"""Numbers that a program names in attributes, as the zeros of monoids and the fills of inputs are.

>>> from xdsl.dialects.builtin import f32
>>> print(number_attr(1.0, ComplexType(f32)))
#complex.number<:f32 1.000000e+00, 0.000000e+00> : complex<f32>
>>> number_in(number_attr(1.0, ComplexType(f32)))
(1+0j)

They are written `0.5 : f32`, `3 : i64` and `#complex.number<:f32 1.0, 0.0> : complex<f32>`.
"""

from __future__ import annotations

from math import copysign, inf
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.dialects.complex import ComplexNumberAttr
from xdsl.ir import Attribute

from tapestry.algebra.dtypes import integer_width

Number = FloatAttr[AnyFloat] | IntegerAttr[IntegerType | IndexType] | ComplexNumberAttr[AnyFloat]
"""A number with its type."""


def number_in(attribute: Attribute) -> int | float | complex | None:
    """The number that an attribute holds, as Python's own; None when it holds none."""
    match attribute:
        case FloatAttr() | IntegerAttr():
            return attribute.value.data
        case ComplexNumberAttr():
            return complex(attribute.real.data, attribute.imag.data)
        case _:
            return None


def float_attr(value: float, kind: AnyFloat) -> FloatAttr[AnyFloat]:
    """A real number as a float of a type, rounded as IEEE 754 does: out of range it is infinite."""
    try:
        return FloatAttr(float(value), kind)
    except OverflowError:
        return FloatAttr(copysign(inf, value), kind)


def number_attr(value: complex, element: Attribute) -> Number:
    """A number as one of an element type: the nearest float, or an integer's low bits.

    Only a type of complex numbers takes one that is not real.
    """
    if isinstance(element, ComplexType):
        kind = cast("ComplexType[AnyFloat]", element)
        parts = (value.real, value.imag)
        real, imaginary = (float_attr(part, kind.element_type).value.data for part in parts)
        return ComplexNumberAttr(real, imaginary, kind)
    assert not isinstance(value, complex)
    if isinstance(element, AnyFloat):
        return float_attr(value, element)
    if isinstance(element, IndexType):
        low = IntegerAttr(int(value), IntegerType(64), truncate_bits=True)
        return IntegerAttr(low.value, element)
    integer_width(element)  # a TypeError for what is no number
    return IntegerAttr(int(value), cast(IntegerType, element), truncate_bits=True)
