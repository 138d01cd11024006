"""Reading `.npz` files that may be damaged or hostile; nothing is unpickled.

    try:
        archive = np.load(path, allow_pickle=False)
    except UNREADABLE as error:
        raise ArrayFileError(f"{path} cannot be read: {first_line(error)}") from None

`member` reads one array, and asks what its header says before it makes room for the cells.
"""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import numpy as np

from tapestry.runtime.executor import Array

UNREADABLE: Final = (
    OSError,
    ValueError,
    EOFError,
    RuntimeError,  # an encrypted member, or one compressed in a way that zipfile does not know
    MemoryError,  # a damaged header that asks for more than there is
    SyntaxError,  # a header that is not a dictionary of Python's
    tokenize.TokenError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)
"""What NumPy and zipfile raise on files that are no `.npz`, or not whole."""

Fits: TypeAlias = Callable[["np.dtype[Any]", tuple[int, ...]], None]
"""Raises an exception for an array of a dtype and shape that is not wanted."""

_LONGEST = 1 << 16
"""Bytes of a header: NumPy writes far fewer."""

_VERSIONS = {(1, 0): ("<H", "read_array_header_1_0"), (2, 0): ("<I", "read_array_header_2_0")}
"""How the length of a header is written, and NumPy's function for what comes then."""


def first_line(error: BaseException) -> str:
    """What an error says, in one line without a full stop."""
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")


def entries(path: Path) -> list[str]:
    """The names of the arrays in a file."""
    if not path.is_file():
        raise ValueError("it is no regular file" if path.exists() else "there is no such file")
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no .npz file, or it is cut off")
    with zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def member(path: Path, entry: str, fits: Fits) -> Array:
    """An array of a file, read-only; `fits` is told its dtype and shape before it is read."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        with archive.open(f"{entry}.npy" if f"{entry}.npy" in names else entry) as file:
            shape, columns, dtype = _header(file)
            if dtype.hasobject:
                raise ValueError("it holds Python objects, which are pickled")
            fits(dtype, shape)
            size = prod(shape) * dtype.itemsize
            cells = file.read(size)
            if len(cells) < size:
                raise EOFError(f"{entry} is cut off")
    return np.frombuffer(cells, dtype).reshape(shape, order="F" if columns else "C")


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape of an array, whether columns come first, and its dtype."""
    formats: Any = np.lib.format
    version = formats.read_magic(file)
    if version not in _VERSIONS:
        raise ValueError(f"its format {version} is none of arrays of numbers")
    field, read = _VERSIONS[version]
    start = file.read(struct.calcsize(field))
    (length,) = struct.unpack(field, start)
    if length > _LONGEST:
        raise ValueError(f"its header of {length} bytes is none of NumPy's")
    return getattr(formats, read)(BytesIO(start + file.read(length)))
