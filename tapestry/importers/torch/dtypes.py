"""PyTorch's dtypes by the names that the IR gives them, and tensors as NumPy arrays.

name_of(torch.bfloat16)                    # "bf16"
as_array(torch.ones(2, 3).T)               # a view of the tensor's memory, strides and all
as_tensor(np.ones(3, ml_dtypes.bfloat16))  # a tensor on the array's memory
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import torch

from tapestry.importers.torch.errors import Unsupported
from tapestry.runtime.executor import Array

_NAMES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e5m2: "f8E5M2",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "ui8",
    torch.uint16: "ui16",
    torch.uint32: "ui32",
    torch.uint64: "ui64",
    torch.bool: "i1",
    torch.complex64: "complex<f32>",
    torch.complex128: "complex<f64>",
}

_EXTENSIONS: dict[torch.dtype, np.dtype[Any]] = {
    torch.bfloat16: np.dtype(ml_dtypes.bfloat16),
    torch.float8_e4m3fn: np.dtype(ml_dtypes.float8_e4m3fn),
    torch.float8_e5m2: np.dtype(ml_dtypes.float8_e5m2),
}
"""Dtypes that NumPy does not know by itself."""

_OF_EXTENSIONS = {extension: dtype for dtype, extension in _EXTENSIONS.items()}

_BITS = {1: torch.int8, 2: torch.int16}
"""What is of the size of those."""


def name_of(dtype: torch.dtype) -> str:
    """The name of a dtype; Unsupported without one."""
    if dtype not in _NAMES:
        raise Unsupported(f"there are no tensors of {dtype}")
    return _NAMES[dtype]


def torch_dtype(name: str) -> torch.dtype:
    """The dtype that is called so."""
    return next(dtype for dtype, own in _NAMES.items() if own == name)


def as_array(tensor: torch.Tensor) -> Array:
    """The cells of a tensor on the CPU, without a copy unless it is conjugated or negated."""
    extension = _EXTENSIONS.get(tensor.dtype)
    if extension is None:
        return tensor.numpy(force=True)  # detached, and resolved
    plain = tensor.detach().resolve_conj().resolve_neg()
    return plain.view(_BITS[extension.itemsize]).numpy().view(extension)


def as_tensor(array: Array) -> torch.Tensor:
    """An array as a tensor on the same memory; a copy where PyTorch has no tensor like it."""
    if not array.flags.writeable or (array.strides and min(array.strides) < 0):
        array = array.copy("K")  # which lies as it did
    own = _OF_EXTENSIONS.get(array.dtype)
    if own is None:
        return _from_numpy(array)
    return _from_numpy(array.view(f"i{array.dtype.itemsize}")).view(own)


def rows_of(array: Array) -> Array:
    """A copy, row by row, by PyTorch: on its threads, and in tiles where neighbours lie across.

    >>> rows_of(np.arange(4.0)[::-1].reshape(2, 2).T)
    array([[3., 1.],
           [2., 0.]])
    """
    size = array.itemsize
    if (
        size not in (1, 2, 4, 8)
        or not array.flags.writeable
        or any(s % size for s in array.strides)
    ):
        return array.copy()
    turned = [axis for axis, step in enumerate(array.strides) if step < 0]
    ahead = (slice(None, None, -1 if axis in turned else 1) for axis in range(array.ndim))
    tensor = _from_numpy(array[(*ahead, ...)].view(f"i{size}"))
    if turned:
        made = tensor.flip(turned).contiguous()
    else:
        made = tensor.clone(memory_format=torch.contiguous_format)
    return made.numpy().view(array.dtype)


_from_numpy: Callable[[Array], torch.Tensor] = vars(torch)["from_numpy"]
