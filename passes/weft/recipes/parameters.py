"""Parameters of applications, from attributes to the values that templates compute with.

    {axis = 1 : i64, keepdim = true, perm = [1, 0], dtype = f32}  ->  1, True, [1, 0], "f32"

What a template expects of each is its own business (`tapestry.metakernels.parameters`).
"""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute

from tapestry.attributes import plain_value
from tapestry.metakernels.errors import ParameterError


def parameter_values(parameters: DictionaryAttr) -> dict[str, object]:
    """The parameters as Python values; ParameterError for an attribute that none can be."""
    return {name: _value(name, attribute) for name, attribute in parameters.data.items()}


def _value(name: str, attribute: Attribute) -> object:
    try:
        return plain_value(attribute)
    except ValueError:
        raise ParameterError(
            f"parameter {name} is {attribute}",
            hint="a parameter is a number, truth value, string, dtype or list of integers",
        ) from None
