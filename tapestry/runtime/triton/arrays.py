"""NumPy arrays as Triton's interpreter wants them, so that it runs without PyTorch.

The interpreter asks a kernel's tensor arguments for what a `torch.Tensor` has: an address, a dtype,
strides, a storage to copy to the CPU and back. A `HostTensor` answers for an array that is on the
CPU already:

    y = host_allocate((4,), "float32", 0.0)
    kernel[(1,)](HostTensor(x), y, BLOCK_P=4)
    y.array
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tapestry.algebra.functions import complex_of, pairs_of
from tapestry.runtime.executor import Array


class HostTensor:
    """A C-contiguous NumPy array in the clothes of a CPU tensor.

    Triton reads `dtype` by its name; bfloat16 and float8 arrays are those of `ml_dtypes`.
    """

    def __init__(self, array: Array) -> None:
        self.array = np.ascontiguousarray(array).reshape(array.shape)

    @property
    def dtype(self) -> str:
        """The element type's name, as PyTorch has it."""
        return str(self.array.dtype)

    def reshape(self, shape: Sequence[int]) -> HostTensor:
        """The same cells under another shape."""
        return HostTensor(self.array.reshape(tuple(shape)))

    def __getitem__(self, box: Any) -> Array:
        """The cells of a box, for functions that are not kernels."""
        return self.array[box]

    def data_ptr(self) -> int:
        """The address of the first cell."""
        return self.array.ctypes.data

    def size(self) -> tuple[int, ...]:
        """The shape."""
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        """How many cells apart neighbours along each dimension are."""
        itemsize = self.array.itemsize
        return tuple(step // itemsize for step in self.array.strides)

    def storage_offset(self) -> int:
        """Where the first cell is in the storage."""
        return 0

    # The interpreter copies storages to the CPU, makes tensors on them there, and copies back what
    # kernels wrote. Here the tensor is its own storage, and on the CPU from the start.

    def untyped_storage(self) -> HostTensor:
        """The memory that the cells are in."""
        return self

    def cpu(self) -> HostTensor:
        """The memory on the CPU."""
        return self

    def new_empty(self, *_size: int, device: str = "cpu") -> HostTensor:
        """A tensor of the same dtype, for `set_` to fill in."""
        del device
        return HostTensor(np.empty(0, self.array.dtype))

    def set_(self, storage: HostTensor, *_place: Any) -> None:
        """Be the tensor on a storage."""
        self.array = storage.array

    def copy_(self, source: HostTensor) -> None:
        """Take over cells that were written on the CPU: they are here already."""


def host_allocate(shape: Sequence[int], dtype: str, fill: float | None = None) -> HostTensor:
    """A new tensor, every cell `fill` when that is given; what printed modules allocate with."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if fill is None:
        return HostTensor(np.empty(tuple(shape), kind))
    return HostTensor(np.full(tuple(shape), fill).astype(kind))


def host_upload(data: bytes, shape: Sequence[int], dtype: str) -> HostTensor:
    """A new tensor with cells from bytes, row-major."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    return HostTensor(np.frombuffer(bytearray(data), kind).reshape(tuple(shape)))


def as_pairs(array: Array) -> Array:
    """Complex numbers as pairs of real ones, which lowered programs take; others as they are."""
    return pairs_of(array) if array.dtype.kind == "c" else array


def from_pairs(array: Array, dtype: np.dtype[Any]) -> Array:
    """What a lowered program returns for cells of a dtype: complex numbers from their pairs."""
    return complex_of(array[..., 0], array[..., 1]) if dtype.kind == "c" else array
