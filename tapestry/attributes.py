"""Attributes as plain Python values, for what is configured by them.

    {axis = 1 : i64, keepdim = true, perm = [1, 0], dtype = f32}  ->  1, True, [1, 0], "f32"

>>> from xdsl.dialects.builtin import ArrayAttr, StringAttr, f32
>>> plain_value(ArrayAttr([StringAttr("a"), f32]))
['a', 'f32']
>>> plain_value(attribute_of([1, 0.5, True, "a"]))
[1, 0.5, True, 'a']
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    f64,
    i1,
    i64,
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


def attribute_of(value: object) -> Attribute:
    """The attribute that holds a plain value (a dtype by its name); ValueError for others."""
    match value:
        case bool():
            return BoolAttr(value, i1)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case list() | tuple():
            return ArrayAttr(attribute_of(item) for item in cast("Sequence[object]", value))
        case _:
            raise ValueError(f"{value!r} is no number, truth value, string or list")
