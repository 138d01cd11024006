"""Arrays of NumPy and PyTorch: taken as NumPy's, given back as what was taken.

    >>> is_array(np.ones(3)), is_array([1.0])
    (True, False)
    >>> array_of(np.float16(2)).dtype
    dtype('float16')

PyTorch is never imported here: whoever has a tensor has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import ml_dtypes
import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

Array = npt.NDArray[Any]

_BITS = {"bfloat16": ml_dtypes.bfloat16}
"""PyTorch's dtypes that NumPy has no name for."""


def is_tensor(value: object) -> TypeGuard[torch.Tensor]:
    """Whether `value` is a PyTorch tensor."""
    module = sys.modules.get("torch")
    return module is not None and isinstance(value, module.Tensor)


def is_array(value: object) -> TypeGuard[Array | torch.Tensor]:
    """Whether `value` is an array of NumPy or a tensor of PyTorch."""
    return isinstance(value, np.ndarray) or is_tensor(value)


def array_of(value: object) -> Array:
    """The NumPy array of an array, a tensor, a number or nested lists of numbers.

    A tensor on the CPU shares its memory. Raises ValueError for what has no numeric dtype.
    """
    if is_tensor(value):
        return _from_torch(value)
    array = np.asarray(value)
    if array.dtype.kind not in "biufcV" or array.dtype.names is not None:
        raise ValueError(f"{type(value).__name__} is no array of numbers")
    if not isinstance(value, np.ndarray | np.generic) and array.dtype == np.float64:
        return array.astype(np.float32)  # numbers of Python have the dtype of most tensors
    return array


def like_given(outputs: Sequence[Array], given: Sequence[object]) -> list[Any]:
    """The outputs as PyTorch tensors if any given array was one, on its device; else as they are.

    >>> like_given([np.ones(2)], [np.zeros(2)])
    [array([1., 1.])]
    """
    tensors = [value for value in given if is_tensor(value)]
    if not tensors:
        return list(outputs)
    return [_to_torch(output).to(tensors[0].device) for output in outputs]


def _from_torch(tensor: torch.Tensor) -> Array:
    plain = tensor.detach().cpu()
    name = str(plain.dtype).removeprefix("torch.")
    if name in _BITS:
        return plain.view(_torch().int16).numpy().view(_BITS[name])
    return plain.numpy()


def _to_torch(array: Array) -> torch.Tensor:
    torch = _torch()
    for name, dtype in _BITS.items():
        if array.dtype == dtype:
            return torch.from_numpy(array.view(np.int16)).view(getattr(torch, name))
    return torch.from_numpy(array)


def _torch() -> Any:
    return sys.modules["torch"]
