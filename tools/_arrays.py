"""The arrays of a run: what a program's function takes, read from one .npz and written to another.

A file of inputs holds one array per argument, named like the argument without its `%`, in a form
that `tapestry.runtime.fitting` takes. NumPy has no bf16 and no 8-bit floats: outputs of one are
written as float32, which holds them exactly.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from tapestry.diagnostics import TapestryError, UsageError
from tapestry.files import whole_file
from tapestry.runtime.archives import UNREADABLE, first_line
from tapestry.runtime.executor import Array
from tapestry.runtime.fitting import EXTENDED


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
