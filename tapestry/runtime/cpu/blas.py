"""Libraries of BLAS: their functions, and how many threads NumPy's uses.

    with single_threaded():
        np.matmul(a, b)         # on the calling thread alone, whoever else multiplies beside it

    NUMPY.find("sgemm")         # what NumPy multiplies matrices of float32 by
    find_fortran(torch._C.__file__)     # the library of another host

NumPy's wheels bring OpenBLAS, which has a function to say it; other libraries keep their threads.
The number is the process's: it is 1 from where the first thread enters to where the last leaves.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from threading import RLock

_NAMES = (
    ("scipy_openblas_", "_num_threads64_"),
    ("scipy_openblas_", "_num_threads"),
    ("openblas_", "_num_threads64_"),
    ("openblas_", "_num_threads"),
)
"""What builds of OpenBLAS put before and after `get` and `set`."""

_FUNCTIONS = (("scipy_", "64_", True), ("scipy_", "", False), ("", "64_", True), ("", "", False))
"""What they put before and after names of CBLAS, and whether sizes have 64 bits then."""


@dataclass(frozen=True)
class _Threads:
    get: Callable[[], int]
    set: Callable[[int], object]


@cache
def _library() -> ctypes.CDLL | None:
    """The library that NumPy multiplies by."""
    try:
        own = import_module("numpy._core._multiarray_umath").__file__
        return ctypes.CDLL(own)  # which finds what it is linked to, too
    except (ImportError, OSError):
        return None


@dataclass(frozen=True)
class Blas:
    """A library: its functions by name, with whether sizes have 64 bits.

    They are those of CBLAS, or else Fortran's, which are given where all that they take is.
    """

    find: Callable[[str], tuple[object, bool] | None]
    is_fortran: bool = False


@cache
def find_fortran(library: str) -> Blas | None:
    """The BLAS of a shared library that is loaded, or of those that it needs; None without one."""
    try:
        loaded = ctypes.CDLL(library)
    except OSError:
        return None
    names = [letter + name for letter in "sd" for name in ("gemm", "gemv")]
    if not all(hasattr(loaded, f"{name}_") for name in names):
        return None
    found = {name: getattr(loaded, f"{name}_") for name in names}
    return Blas(lambda name: (found[name], False), is_fortran=True)


@cache
def find_function(name: str) -> tuple[object, bool] | None:
    """A function of CBLAS's, by its name, and whether its sizes have 64 bits; None without it.

    It is looked for in OpenBLAS alone, which `single_threaded` knows.
    """
    library = _library()
    if library is None or thread_functions() is None:
        return None
    for first, last, wide in _FUNCTIONS:
        if hasattr(library, f"{first}{name}{last}"):
            return getattr(library, f"{first}{name}{last}"), wide
    return None


@cache
def thread_functions() -> _Threads | None:
    """The functions of the library that NumPy multiplies by; None where it has none of the kind."""
    library = _library()
    if library is None:
        return None
    for first, last in _NAMES:
        if hasattr(library, f"{first}set{last}"):
            get, put = (getattr(library, f"{first}{verb}{last}") for verb in ("get", "set"))
            get.restype, put.argtypes, put.restype = ctypes.c_int, [ctypes.c_int], None
            return _Threads(get, put)
    return None


NUMPY = Blas(lambda name: find_function(f"cblas_{name}"))
"""What NumPy multiplies by."""


_lock = RLock()  # a signal's handler may run a program, on a thread that has it
_inside: dict[object, int] = {}
"""Of each that is inside, how many threads there were when the first one entered."""


@contextmanager
def single_threaded() -> Generator[None]:
    """BLAS works on the thread that calls it, inside."""
    found = thread_functions()
    if found is None:
        yield
        return
    own = object()
    try:
        with _lock:
            _inside[own] = next(iter(_inside.values())) if _inside else found.get()
            found.set(1)
        yield
    finally:
        with _lock:
            before = _inside.pop(own, None)
            if before is not None and not _inside:
                found.set(before)


_AS_IT_IS = nullcontext()


def single_threaded_if(needed: bool) -> AbstractContextManager[None]:
    """The same, or nothing at all."""
    return single_threaded() if needed else _AS_IT_IS
