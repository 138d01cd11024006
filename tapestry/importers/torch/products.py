"""Products of NumPy's matrices, and functions of many cells, by PyTorch, on the memory they have.

    product(np.ones((2, 3), "f4"), np.ones((3, 4), "f4"))       # of shape (2, 4)

PyTorch and NumPy each bring a library for it, with threads that wait for work by spinning. In a
process that uses both, each step would find the cores taken by the other one's. So large products
are PyTorch's, as the rest of a model is; small ones, which both compute on the calling thread, cost
less to hand to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch

from tapestry.algebra import functions
from tapestry.importers.torch.convolutions import slid
from tapestry.runtime.cpu.blas import find_fortran
from tapestry.runtime.cpu.multiplying import FEW, SMALL
from tapestry.runtime.cpu.openmp import find_team
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.library import Function, Library
from tapestry.runtime.prepared.linking import Traced, traced_product
from tapestry.runtime.prepared.loops.looping import OFTEN, Loops
from tapestry.runtime.prepared.memory import empty

_MANY = 1 << 15
"""Cells from which PyTorch shares a function among threads."""

_FLOATS = (np.dtype("f4"), np.dtype("f8"))

_functions = cast("dict[str, Callable[..., Any]]", vars(torch))
_tensor, _mm, _bmm = (_functions[name] for name in ("from_numpy", "mm", "bmm"))


@dataclass(frozen=True)
class Product:
    """The product of two matrices, or one of each pair of two stacks of them."""

    def __call__(self, a: Array, b: Array) -> Array:
        """A new array."""
        if _is_small(a, b) or not (_fits(a) and _fits(b)):
            return np.matmul(a, b)
        made = empty((*a.shape[:-1], b.shape[-1]), a.dtype)
        # Autocasting leaves what writes to `out` alone.
        if a.ndim == 2:
            _mm(_tensor(a), _tensor(b), out=_tensor(made))
        elif len(a) == len(b) == 1:
            _mm(_tensor(a[0]), _tensor(b[0]), out=_tensor(made[0]))
        else:
            _bmm(_tensor(a), _tensor(b), out=_tensor(made))
        return made

    def traced(self, given: Sequence[Array]) -> Traced | None:
        """What NumPy's library is called with, or PyTorch's, where that multiplies."""
        if _is_small(*given):
            return traced_product(given)
        if _BLAS is None or not all(map(_fits, given)):
            return None
        return traced_product(given, _BLAS, _TEAM)


product = Product()

_TEAM = find_team(vars(torch)["_C"].__file__, torch.get_num_threads)
"""PyTorch's threads."""

_BLAS = find_fortran(vars(torch)["_C"].__file__)
"""What PyTorch multiplies matrices by, on those threads."""


def _is_small(a: Array, b: Array) -> bool:
    small = FEW if min(a.shape[-2], b.shape[-1]) == 1 else SMALL
    return a.size * b.shape[-1] <= small


@dataclass(frozen=True, eq=False)
class Threaded:
    """A function of arrays that PyTorch's threads share where there are `many` cells.

    It writes into `out`, which may be an operand; without it, and for few cells, it is the plain
    one.
    """

    plain: Function
    function: Callable[..., Any]
    many: int = _MANY

    def of(self, cells: int) -> Function:
        """What to call for so many cells."""
        return self if cells >= self.many else self.plain

    def __call__(self, *operands: Array, out: Array | None = None) -> Array:
        if out is None or out.size < self.many:
            return self.plain(*operands, out=out)
        arrays = (*operands, out)
        if not all(one.dtype == out.dtype and _fits(one) for one in arrays):
            return self.plain(*operands, out=out)
        self.function(*map(_tensor, operands), out=_tensor(out))
        return out


def threaded(plain: Function, function: Callable[..., Any], many: int = _MANY) -> Function:
    """The function, as one that takes `out`."""
    return functions.writing_out(Threaded(plain, function, many))


_SHARED: dict[Function, str] = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.divide: "div",
    np.negative: "neg",
}
"""What PyTorch computes as fast as NumPy on one thread, and faster on several."""

if torch.get_num_threads() > 2:  # on one, it takes twice the time of NumPy's
    _SHARED[np.exp] = "exp"

error_function = threaded(functions.erf, _functions["erf"], many=0)
"""One function of PyTorch's takes less than many of NumPy's, however few cells there are."""

LIBRARY = Library(
    product,
    {plain: threaded(plain, _functions[name]) for plain, name in _SHARED.items()}
    | {functions.erf: error_function},
    slid,
    Loops(OFTEN, _TEAM),
)
"""What programs compute by in a process that runs PyTorch."""


def _fits(factor: Array) -> bool:
    """Whether a factor can be a tensor of PyTorch's as it is."""
    return (
        factor.dtype in _FLOATS and factor.flags.writeable and min(factor.strides, default=0) >= 0
    )
