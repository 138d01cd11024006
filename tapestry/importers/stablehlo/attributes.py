"""Attributes of MLIR as plain Python.

integers(array<i64: 1, 0>)                              [1, 0]
word(#stablehlo<comparison_direction GT>)               "GT"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tapestry.importers.stablehlo.bindings import mlir


def integers(attribute: Any) -> list[int]:
    """The integers of an attribute: an array, dense elements, or one integer."""
    ir = mlir()
    if isinstance(attribute, ir.IntegerAttr):
        return [attribute.value]
    if isinstance(attribute, ir.DenseIntElementsAttr):
        return [int(cell) for cell in np.asarray(attribute).reshape(-1)]
    return [int(cell) for cell in attribute]


def integers_or(attributes: Mapping[str, Any], name: str, otherwise: list[int]) -> list[int]:
    """The integers of an attribute that may be left out."""
    return integers(attributes[name]) if name in attributes else otherwise


def flag(attributes: Mapping[str, Any], name: str) -> bool:
    """A truth value that is false when it is left out."""
    return name in attributes and str(attributes[name]) == "true"


def word(attribute: Any) -> str:
    """The word of an enumeration: `GT` of `#stablehlo<comparison_direction GT>`."""
    return str(attribute).rstrip(">").split()[-1]


def text(attribute: Any) -> str:
    """A string, or the name of a symbol."""
    return str(attribute).removeprefix("@").strip('"')
