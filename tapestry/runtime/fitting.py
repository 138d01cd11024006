"""The inputs of a program, from arrays in the forms that files and users have them in; its outputs,
as arrays that are the caller's alone.

There is one array per argument, of exactly its shape and element type; nothing missing, nothing
more. NumPy has no bf16 and no 8-bit floats: an argument of one takes float32 (rounded to nearest),
or unsigned integers or raw cells of its size (the bit patterns). Integers have no sign in IR,
operations do: an argument of i8 takes int8 or uint8, bit for bit, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.runtime.executor import Array
from tapestry.runtime.program import Argument, arguments, check_arrays

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
EXTENDED = (BFLOAT16, np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))
"""Types of `ml_dtypes`, which files hold as float32 or as bits."""


def fit_inputs(
    module: ModuleOp, given: Mapping[str, Array], *, contiguous: bool = True
) -> dict[str, Array]:
    """The inputs of @main from arrays of a file: in this machine's byte order.

    They are row-major if they are to be `contiguous`, else as they are given.
    Raises InputError, with the argument's place in the program, for an array that is missing, has
    the wrong shape or element type, or belongs to no argument.
    """
    return fit_to(arguments(module), given, contiguous=contiguous)


def fit_to(
    expected: Sequence[Argument], given: Mapping[str, Array], *, contiguous: bool = True
) -> dict[str, Array]:
    """The same, of a program that takes these arguments."""
    kinds = {a.name: numpy_dtype(a.type.element_type) for a in expected}
    order = "C" if contiguous else "K"
    inputs = {name: _in_dtype(array, kinds.get(name), order) for name, array in given.items()}
    check_arrays(expected, inputs)
    return inputs


def own_outputs(made: Sequence[Array], inputs: Iterable[Array]) -> tuple[Array, ...]:
    """Outputs that a caller may write to: contiguous, on no memory of an input or of each other.

    >>> x = np.zeros((2, 2))
    >>> y, z = own_outputs([x.T, x + 1], [x])
    >>> np.shares_memory(x, y)
    False
    """
    given, found = list(inputs), list[Array]()
    for array in made:
        flags = array.flags
        plain = flags.c_contiguous and flags.writeable
        own = array if plain else _copied(array)
        # Most have no base: then they are no part of what is given, and seldom that itself.
        shared = _is_among(own, given) or (own.base is not None and _overlaps(own, given))
        if shared or (found and _overlaps(own, found)):
            own = own.copy()
        found.append(own)
    return tuple(found)


def _is_among(array: Array, others: Sequence[Array]) -> bool:
    for other in others:  # noqa: SIM110 - a generator takes as long as a small program
        if other is array:
            return True
    return False


def _overlaps(array: Array, others: Sequence[Array]) -> bool:
    return any(np.may_share_memory(array, other) for other in others)


def _copied(array: Array) -> Array:
    """An array that may be written to, row by row."""
    from tapestry.runtime.prepared.loops.copying import in_rows  # which takes a while

    return np.require(in_rows(array), requirements=["C", "W"])


def _in_dtype(array: Array, dtype: np.dtype[Any] | None, order: Literal["C", "K"]) -> Array:
    array = np.asarray(array, dtype=array.dtype.newbyteorder("="), order=order)
    if dtype is None:
        return array
    if dtype in EXTENDED:
        if array.dtype == np.float32:
            return array.astype(dtype)
        if array.dtype in (np.dtype(f"u{dtype.itemsize}"), np.dtype(f"V{dtype.itemsize}")):
            return array.view(dtype)
    elif dtype.kind == "i" and array.dtype == np.dtype(f"u{dtype.itemsize}"):
        return array.view(dtype)
    return array
