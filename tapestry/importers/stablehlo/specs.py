"""Types of MLIR as plain Python.

spec_of(tensor<4x8xf32>)                Spec((4, 8), "f32")
"""

from __future__ import annotations

from tapestry.algebra.dtypes import type_named
from tapestry.importers.stablehlo.bindings import mlir
from tapestry.importers.stablehlo.values import Spec


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
