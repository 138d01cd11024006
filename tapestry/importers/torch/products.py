"""Products of NumPy's matrices, and functions of many cells, by PyTorch, on the memory they have.

    product(np.ones((2, 3), "f4"), np.ones((3, 4), "f4"))       # of shape (2, 4)

PyTorch and NumPy each bring a library for it, with threads that wait for work by spinning. In a
process that uses both, each step would find the cores taken by the other one's. So large products
are PyTorch's, as the rest of a model is; small ones, which both compute on the calling thread, cost
less to hand to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch

from tapestry.algebra import functions
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.memory import empty

_SMALL = 1 << 18
"""Multiplications up to which OpenBLAS starts no threads."""

_FEW = 9216
"""The same, of a matrix and a vector."""

_MANY = 1 << 14
"""Cells from which a function is worth PyTorch's call."""

_FLOATS = (np.dtype("f4"), np.dtype("f8"))

_functions = cast("dict[str, Callable[..., Any]]", vars(torch))
_tensor, _mm, _bmm, _erf = (_functions[name] for name in ("from_numpy", "mm", "bmm", "erf"))


def product(a: Array, b: Array) -> Array:
    """The matrix product, or one of each pair of two stacks of matrices."""
    shape = (*a.shape[:-1], b.shape[-1])
    small = _FEW if min(a.shape[-2], shape[-1]) == 1 else _SMALL
    if a.size * shape[-1] <= small or not (_fits(a) and _fits(b)):
        return np.matmul(a, b)
    made = empty(shape, a.dtype)
    # Autocasting leaves what writes to `out` alone.
    (_mm if a.ndim == 2 else _bmm)(_tensor(a), _tensor(b), out=_tensor(made))
    return made


@functions.writing_out
def error_function(x: Array, out: Array | None = None) -> Array:
    """The error function, by all threads where there are many cells."""
    if x.size < _MANY or not _fits(x):
        return functions.erf(x, out)
    made = empty(x.shape, x.dtype) if out is None else out
    _erf(_tensor(x), out=_tensor(made))
    return made


LIBRARY = Library(product, {functions.erf: error_function})
"""What programs compute by in a process that runs PyTorch."""


def _fits(factor: Array) -> bool:
    """Whether a factor can be a tensor of PyTorch's as it is."""
    return factor.dtype in _FLOATS and factor.flags.writeable and min(factor.strides) >= 0
