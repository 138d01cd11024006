"""Parameters of applications, from attributes to the values that templates compute with.

    {axis = 1 : i64, keepdim = true, perm = [1, 0], dtype = f32}  ->  1, True, [1, 0], "f32"

What a template expects of each is its own business (`tapestry.metakernels.parameters`).
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i1,
)
from xdsl.ir import Attribute

from tapestry.algebra.dtypes import is_element_type
from tapestry.metakernels.errors import ParameterError


def parameter_values(parameters: DictionaryAttr) -> dict[str, object]:
    """The parameters as Python values; ParameterError for an attribute that none can be."""
    return {name: _value(name, attribute) for name, attribute in parameters.data.items()}


def _value(name: str, attribute: Attribute) -> object:
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
            return [_value(name, item) for item in items]
        case DenseArrayBase():
            return list(cast("DenseArrayBase[IntegerType]", attribute).get_values())
        case _ if is_element_type(attribute):
            return str(attribute)
        case _:
            raise ParameterError(
                f"parameter {name} is {attribute}",
                hint="a parameter is a number, truth value, string, dtype or list of integers",
            )
