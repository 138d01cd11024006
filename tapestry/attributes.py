"""Attributes as plain Python values, for what is configured by them.

    {axis = 1 : i64, keepdim = true, perm = [1, 0], dtype = f32}  ->  1, True, [1, 0], "f32"

>>> from xdsl.dialects.builtin import ArrayAttr, StringAttr, f32
>>> plain_value(ArrayAttr([StringAttr("a"), f32]))
['a', 'f32']
"""

from __future__ import annotations

from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i1,
)
from xdsl.ir import Attribute

from tapestry.algebra.dtypes import is_element_type

Plain: TypeAlias = "bool | int | float | str | list[Plain]"


def plain_value(attribute: Attribute) -> Plain:
    """A number, truth value, string, dtype (by name) or list of them; ValueError for others."""
    match attribute:
        case IntegerAttr():
            value = attribute.value.data
            return bool(value) if attribute.type == i1 else value
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            items: tuple[Attribute, ...] = attribute.data
            return [plain_value(item) for item in items]
        case DenseArrayBase():
            return list(cast("DenseArrayBase[IntegerType]", attribute).get_values())
        case _ if is_element_type(attribute):
            return str(attribute)
        case _:
            raise ValueError(f"{attribute} is no number, truth value, string, dtype or list")
