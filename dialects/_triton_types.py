"""The types of the triton dialect, and what tiles, scalars and buffers are made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import (
    Attribute,
    BlockArgument,
    OpResult,
    ParametrizedAttribute,
    SSAValue,
    TypeAttribute,
)
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
    kind = _kind_of(value)
    return kind.get_shape() if type(kind) is TensorType else ()


def element_of(value: SSAValue | Attribute) -> Attribute:
    """The element type of a tile, or the type of a scalar."""
    kind = _kind_of(value)
    return kind.element_type if type(kind) is TensorType else kind


def _kind_of(value: SSAValue | Attribute) -> Attribute:
    """The type of a value, or the type that is given.

    Asked 100,000 times of a block of a network: `isinstance` of what has abstract bases is slower.
    """
    if type(value) in _VALUES:
        return cast(SSAValue, value).type
    return value.type if isinstance(value, SSAValue) else value


_VALUES = frozenset({OpResult, BlockArgument})
"""What values are, but for those of a rewrite that is under way."""


def buffer_type(value: SSAValue) -> MemRefType[Attribute]:
    """The type of a buffer, which `value` must be (verified operations guarantee it)."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    return cast(MemRefType[Attribute], kind)
