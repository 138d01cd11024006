"""The arrays of a run: what a program's function takes, read from one .npz and written to another.

A file of inputs holds one array per argument, named like the argument without its `%`, of exactly
its shape and element type; nothing missing, nothing more. NumPy has no bf16 and no 8-bit floats: an
argument of one takes float32 (rounded to nearest), or unsigned integers or raw cells of its size
(the bit patterns), and outputs of one are written as float32, which holds them exactly. Integers
have no sign in IR, operations do: an argument of i8 takes int8 or uint8, bit for bit, and so on.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.diagnostics import TapestryError, UsageError
from tapestry.files import whole_file
from tapestry.runtime.archives import UNREADABLE, first_line
from tapestry.runtime.executor import Array
from tapestry.runtime.program import arguments, check_inputs

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
EXTENDED = (BFLOAT16, np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))
"""Types of `ml_dtypes`, which files hold as float32 or as bits."""


class ArrayFileError(TapestryError):
    """A file of arrays that is damaged, or holds something else."""

    kind: ClassVar[str] = "array_file"


def read_arrays(path: Path) -> dict[str, Array]:
    """Every array of an .npz file by name.

    Raises UsageError when the file cannot be opened, ArrayFileError when it is no .npz, is damaged
    or cut off, or holds Python objects (which are never unpickled).
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    with file:
        if not zipfile.is_zipfile(file):
            raise ArrayFileError(
                f"{path} is not an .npz file, or it is cut off",
                hint="write it with numpy.savez(path, name=array, ...)",
            )
        file.seek(0)
        name = ""
        try:
            with np.load(file, allow_pickle=False) as archive:
                arrays: dict[str, Array] = {}
                for name in archive.files:
                    member: object = archive[name]
                    if not isinstance(member, np.ndarray):
                        raise ValueError("it is not an array")
                    arrays[name] = member
                return arrays
        except UNREADABLE as error:
            what = f"array {name!r} of {path}" if name else str(path)
            raise ArrayFileError(f"{what} cannot be read: {first_line(error)}") from None


def fit_inputs(module: ModuleOp, given: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs of @main from arrays of a file: row-major, in this machine's byte order.

    Raises InputError, with the argument's place in the program, for an array that is missing, has
    the wrong shape or element type, or belongs to no argument.
    """
    kinds = {a.name: numpy_dtype(a.type.element_type) for a in arguments(module)}
    inputs = {name: _in_dtype(array, kinds.get(name)) for name, array in given.items()}
    check_inputs(module, inputs)
    return inputs


def _in_dtype(array: Array, dtype: np.dtype[Any] | None) -> Array:
    array = np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
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


def output_name(position: int) -> str:
    """The name of an output in a file: out0, out1, ..."""
    return f"out{position}"


def write_outputs(path: Path, outputs: Sequence[Array]) -> None:
    """Write out0, out1, ... to an .npz file, which appears whole or not at all."""
    arrays = {
        output_name(position): array.astype(np.float32) if array.dtype in EXTENDED else array
        for position, array in enumerate(outputs)
    }
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
