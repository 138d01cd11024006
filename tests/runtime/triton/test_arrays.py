"""NumPy arrays in the clothes that Triton's interpreter expects."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tapestry.runtime.triton.arrays import HostTensor, host_allocate


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4)])
def test_a_tensor_has_its_arrays_shape(shape):
    tensor = HostTensor(np.zeros(shape, np.float32))
    assert tensor.size() == shape
    assert tensor.dtype == "float32"


def test_contiguous_arrays_are_shared_and_others_copied():
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    assert HostTensor(array).data_ptr() == array.ctypes.data
    turned = HostTensor(array.T)
    assert turned.data_ptr() != array.ctypes.data
    assert turned.stride() == (2, 1)


def test_a_reshape_is_the_same_memory():
    tensor = HostTensor(np.arange(6, dtype=np.float32))
    assert tensor.reshape((2, 3)).data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize(
    ("name", "dtype", "fill"),
    [
        ("float32", np.float32, float("-inf")),
        ("bfloat16", ml_dtypes.bfloat16, 1.5),
        ("int64", np.int64, (1 << 63) - 1),
        ("int8", np.int8, -128),
        ("bool", np.bool_, True),
    ],
)
def test_allocation(name, dtype, fill):
    assert host_allocate((2, 3), name).array.dtype == dtype
    filled = host_allocate((2, 3), name, fill).array
    assert filled.shape == (2, 3)
    assert filled.dtype == dtype
    assert (filled == dtype(fill)).all()
