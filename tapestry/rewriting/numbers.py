"""Numbers in the place of tensors: their values, and whether a dtype can hold them.

    >>> cell(3, "f16"), cell(2049, "f16") is None, cell(0.5, "i32") is None
    (3, True, True)

An integer must be held exactly, because it may count something; any other number is rounded to the
dtype, as it is in a body.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from tapestry.algebra.dtypes import numpy_dtype, type_named
from tapestry.metakernels.bodies import Body
from tapestry.metakernels.constants import Known, limits, number
from tapestry.metakernels.dtypes import is_float
from tapestry.metakernels.errors import KindMismatchError
from tapestry.metakernels.evaluation import Scope
from tapestry.metakernels.syntax import Expr
from tapestry.metakernels.templates import Source
from tapestry.metakernels.values import Names


def evaluate_number(source: Source[Expr], names: Names) -> int | float:
    """The value of `source`, a scalar expression over sizes and parameters alone."""
    with source.explain("the number"):
        term = Body(Scope(names), {}).term(source.tree)
        if not isinstance(term, Known):
            raise KindMismatchError("it is no number that is known")
        return number(term)


def cell(value: float, dtype: str) -> int | float | None:
    """`value` as a cell of `dtype`; None when that cannot hold it."""
    if not isfinite(value):
        return None
    is_whole = value == int(value)
    if not is_float(dtype):
        low, high = limits(dtype)
        return int(value) if is_whole and low <= value <= high else None
    element = type_named(dtype)
    assert element is not None
    with np.errstate(over="ignore"):
        held = float(numpy_dtype(element).type(value))
    if not isfinite(held) or (is_whole and held != value):
        return None
    return int(value) if is_whole else held
