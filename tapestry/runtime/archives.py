"""What goes wrong when an `.npz` file is read that may be damaged or hostile.

try:
    archive = np.load(path, allow_pickle=False)
except UNREADABLE as error:
    raise ArrayFileError(f"{path} cannot be read: {first_line(error)}") from None
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import Final

UNREADABLE: Final = (
    OSError,
    ValueError,
    EOFError,
    RuntimeError,  # an encrypted member, or one compressed in a way that zipfile does not know
    MemoryError,  # a damaged header that asks for more than there is
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)
"""What NumPy and zipfile raise on files that are no `.npz`, or not whole."""


def first_line(error: BaseException) -> str:
    """What an error says, in one line without a full stop."""
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
