"""Cells of a tensor as written numbers: `0.5`, `[[1, 2], [3, 4]]`, `[(1.0, -2.0)]`, and back.

`parse_numbers` reads the text, `cells_of` fits it to a type, `numbers_of` writes cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute
from xdsl.parser import Parser

from tapestry.algebra.dtypes import is_float, numpy_dtype
from tapestry.dialects._loom_types import TensorType

LONGEST_LIST = 64
"""The most cells that are printed as numbers."""

Cells = npt.NDArray[Any]
Numbers = int | float | complex | list["Numbers"]
"""Numbers as they are written: one, or nested lists of them."""


def parse_numbers(parser: Parser) -> Numbers:
    several = parser.parse_optional_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parse_numbers(parser)
    )
    if several is not None:
        return several
    if parser.parse_optional_punctuation("(") is None:
        return parser.parse_number(allow_boolean=True, context_msg=", a list, or a string")
    real = parser.parse_number()
    parser.parse_punctuation(",", " before the imaginary part")
    imaginary = parser.parse_number()
    parser.parse_punctuation(")", " after the imaginary part")
    return complex(real, imaginary)


def cells_of(written: Numbers, kind: TensorType) -> Cells:
    """What is written as cells of a type; ValueError says what does not fit."""
    dtype = numpy_dtype(kind.element_type)
    flat: list[int | float | complex] = []
    shape = _flatten(written, flat)
    if shape and shape != kind.box.shape:
        raise ValueError(
            f"numbers of shape {list(shape)} for <{kind.box}>, which has shape "
            f"{list(kind.box.shape)}; one number without brackets stands for every cell"
        )
    for cell in flat:
        _check_number(cell, kind.element_type, dtype)
    if dtype.kind in "iub":
        cells = np.asarray(flat, dtype)
    else:
        cells = np.asarray(flat, np.complex128 if dtype.kind == "c" else np.float64).astype(dtype)
    return cells.reshape(kind.box.shape if shape else ())


def _flatten(written: Numbers, flat: list[int | float | complex]) -> tuple[int, ...]:
    """The shape of nested lists, whose numbers are appended to `flat` in order."""
    if not isinstance(written, list):
        flat.append(written)
        return ()
    shapes = {_flatten(item, flat) for item in written}
    if len(shapes) > 1:
        raise ValueError("the lists of a constant have different lengths")
    return (len(written), *(shapes.pop() if shapes else ()))


def _check_number(cell: complex, element: Attribute, dtype: np.dtype[Any]) -> None:
    if dtype.kind == "c":
        return
    whole = dtype.kind in "iub"
    if isinstance(cell, complex) or (whole and isinstance(cell, float)):
        raise ValueError(f"{cell} is not a number of type {element}")
    if whole:
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if not low <= cell <= high:
            raise ValueError(f"{cell} does not fit into {element}, which holds {low} to {high}")


def numbers_of(cells: Cells, element: Attribute) -> str | None:
    """Cells as numbers, or None where bytes say them better: many, or not finite."""
    if cells.size > LONGEST_LIST or (cells.size == 0 and cells.ndim != 1):
        return None
    if is_float(element) and cells.dtype.kind != "f":
        cells = cells.astype(np.float64)  # NumPy knows the narrow floats of ml_dtypes by name only
    if cells.dtype.kind in "fc" and not np.isfinite(cells).all():
        return None
    return _listed(cells)


def _listed(cells: Cells) -> str:
    if cells.ndim:
        return f"[{', '.join(_listed(row) for row in cells)}]"
    number = cells[()]
    match cells.dtype.kind:
        case "b":
            return str(bool(number)).lower()
        case "c":
            return f"({_decimal(str(np.real(number)))}, {_decimal(str(np.imag(number)))})"
        case "f":
            return _decimal(str(number))
        case _:
            return str(number)


def _decimal(text: str) -> str:
    """A float as MLIR writes it: always with a point before the exponent."""
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{mark}{exponent}"
