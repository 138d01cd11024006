"""Types and constants of MLIR as plain Python: shapes, arrays of cells.

spec_of(tensor<4x8xf32>)                Spec((4, 8), "f32")
cells_of(dense<[1, 2]>, spec)           np.array([1, 2], np.int32)
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapestry.algebra.dtypes import type_named
from tapestry.importers.stablehlo.bindings import MlirOperation, mlir
from tapestry.importers.stablehlo.values import Spec

_HEX = re.compile(r'^dense<"0x(?P<digits>[0-9A-Fa-f]*)"> :', re.DOTALL)
_NUMBER = re.compile(r"true|false|0x[0-9A-Fa-f]+|[-+0-9.eE]+")


def spec_of(kind: object) -> Spec:
    """The shape and element type of a tensor type; ValueError with the reason if it has none."""
    ir = mlir()
    text = str(kind)
    try:
        tensor = ir.RankedTensorType(kind)
    except ValueError:
        raise ValueError(f"{text} is no tensor of a known rank") from None
    if not tensor.has_static_shape:
        raise ValueError(
            f"{text} has sizes that are not known; export the function for fixed shapes"
        )
    dtype = str(tensor.element_type)
    if type_named(dtype) is None:
        raise ValueError(f"there are no tensors of {dtype} (in {text})")
    return Spec(tuple(tensor.shape), dtype)


def cells_of(constant: MlirOperation, spec: Spec) -> NDArray[Any]:
    """The cells of a `stablehlo.constant`: splat, numbers, bytes or a resource."""
    ir = mlir()
    dtype = spec.numpy
    try:
        attribute: Any = constant.attributes["value"]
    except TypeError:  # the bindings have no elements of this type
        return _printed_cells(_printed(constant), spec)
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat and spec.size > 1:
        return np.broadcast_to(_first(attribute, spec), spec.shape)
    try:
        cells = np.array(attribute)
    except (ValueError, TypeError, RuntimeError):
        return _printed_cells(str(attribute), spec)
    return cells.astype(dtype, copy=False).reshape(spec.shape)


def _first(attribute: Any, spec: Spec) -> NDArray[Any]:
    try:
        return np.array(attribute).reshape(-1)[:1].astype(spec.numpy).reshape(())
    except (ValueError, TypeError, RuntimeError):
        return _printed_cells(str(attribute), spec).reshape(-1)[:1].reshape(())


def _printed(constant: MlirOperation) -> str:
    text = str(constant)
    return text[text.index("dense<") :]


def _printed_cells(text: str, spec: Spec) -> NDArray[Any]:
    """Cells as MLIR prints them, where the bindings do not give them."""
    dtype = spec.numpy
    match = _HEX.match(text)
    if match is not None:
        cells = np.frombuffer(bytes.fromhex(match["digits"]), dtype)
    else:
        inside = text[len("dense<") : text.rindex("> :")]
        numbers = [_number(token, spec) for token in _NUMBER.findall(inside)]
        if spec.is_complex:
            numbers = [complex(a, b) for a, b in zip(numbers[::2], numbers[1::2], strict=True)]
        cells = np.array(numbers).astype(dtype)
    if cells.size == 1:
        return np.broadcast_to(cells.reshape(()), spec.shape)
    return cells.reshape(spec.shape)


def _number(token: str, spec: Spec) -> Any:
    if token in ("true", "false"):
        return token == "true"
    if token.startswith("0x") and not spec.is_integer:
        part = np.dtype(f"f{spec.numpy.itemsize // 2}") if spec.is_complex else spec.numpy
        bits = np.array(int(token, 16), f"u{part.itemsize}")
        return complex(bits.view(part)).real if spec.is_complex else float(bits.view(part))
    return float(token) if spec.is_float or spec.is_complex else int(token, 0)
