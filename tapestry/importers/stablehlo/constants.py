"""The cells of `stablehlo.constant`: a splat, numbers, bytes, or a resource of the file.

dense<[1, 2]> : tensor<2xi32>           np.array([1, 2], np.int32)
dense_resource<w> : tensor<2xf32>       what the file's section of resources says
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapestry.importers.stablehlo.bindings import MlirOperation, mlir
from tapestry.importers.stablehlo.values import Spec

_HEX = re.compile(r'^dense<"0x(?P<digits>[0-9A-Fa-f]*)"> :', re.DOTALL)
_NUMBER = re.compile(r"true|false|0x[0-9A-Fa-f]+|[-+0-9.eE]+")
_RESOURCE = re.compile(r'(?P<name>"[^"]*"|[\w.$-]+)\s*:\s*"0x(?P<digits>[0-9A-Fa-f]*)"')
_ALIGNMENT = 4
"""Bytes before a resource that say how it is aligned."""


def resources_of(source: str | bytes) -> Mapping[str, bytes]:
    """The resources at the end of a program's text, by name."""
    text = source if isinstance(source, str) else source.decode("utf-8", "replace")
    start = text.rfind("{-#")
    if start < 0:
        return {}
    found = _RESOURCE.finditer(text, start)
    return {
        match["name"].strip('"'): bytes.fromhex(match["digits"])[_ALIGNMENT:] for match in found
    }


def cells_of(
    constant: MlirOperation, spec: Spec, resources: Mapping[str, bytes] | None = None
) -> NDArray[Any]:
    """The cells of a constant; ValueError where they are not there."""
    ir = mlir()
    try:
        attribute: Any = constant.attributes["value"]
    except TypeError:  # the bindings have no elements of this type
        text = str(constant)
        return _printed_cells(text[text.index("dense<") :], spec)
    if str(type(attribute).__name__) == "Attribute":
        return _resource(str(attribute), spec, resources or {})
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        number: Any = attribute.get_splat_value()
        return np.broadcast_to(np.asarray(number.value).astype(spec.numpy), spec.shape)
    try:
        cells = np.array(attribute)
    except (ValueError, TypeError, RuntimeError):
        return _printed_cells(str(attribute), spec)
    return cells.astype(spec.numpy, copy=False).reshape(spec.shape)


def _resource(text: str, spec: Spec, resources: Mapping[str, bytes]) -> NDArray[Any]:
    name = text.removeprefix("dense_resource<").partition(">")[0].strip('"')
    data = resources.get(name)
    size = spec.size * spec.numpy.itemsize
    if data is None:
        raise ValueError(f"the file has no resource {name!r}, which a constant takes its cells of")
    if len(data) != size:
        raise ValueError(f"the resource {name!r} has {len(data)} bytes; {spec} takes {size}")
    return np.frombuffer(data, spec.numpy).reshape(spec.shape)


def _printed_cells(text: str, spec: Spec) -> NDArray[Any]:
    """Cells as MLIR prints them, where the bindings do not give them."""
    match = _HEX.match(text)
    if match is not None:
        cells = np.frombuffer(bytes.fromhex(match["digits"]), spec.numpy)
    else:
        inside = text[len("dense<") : text.rindex("> :")]
        numbers = [_number(token, spec) for token in _NUMBER.findall(inside)]
        if spec.is_complex:
            numbers = [complex(a, b) for a, b in zip(numbers[::2], numbers[1::2], strict=True)]
        cells = np.array(numbers).astype(spec.numpy)
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
