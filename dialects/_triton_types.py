"""The types of the triton dialect, and what tiles, scalars and buffers are made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """The address of a row-major buffer of elements: `!triton.ptr<f32>`."""

    name = "triton.ptr"

    element_type: Attribute = param_def()


def tile_type(element: Attribute, shape: Sequence[int]) -> Attribute:
    """The type of a tile of `shape`; without dimensions, of a scalar."""
    return _tile_type(element, tuple(shape)) if shape else element


@lru_cache(maxsize=4096)
def _tile_type(element: Attribute, shape: tuple[int, ...]) -> TensorType[Attribute]:
    return TensorType(element, shape)


def shape_of(value: SSAValue | Attribute) -> tuple[int, ...]:
    """The shape of a tile, () for a scalar."""
    kind = value.type if isinstance(value, SSAValue) else value
    return kind.get_shape() if isinstance(kind, TensorType) else ()


def element_of(value: SSAValue | Attribute) -> Attribute:
    """The element type of a tile, or the type of a scalar."""
    kind = value.type if isinstance(value, SSAValue) else value
    return cast(TensorType[Attribute], kind).element_type if isinstance(kind, TensorType) else kind


def buffer_type(value: SSAValue) -> MemRefType[Attribute]:
    """The type of a buffer, which `value` must be (verified operations guarantee it)."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    return cast(MemRefType[Attribute], kind)
