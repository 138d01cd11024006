"""Printed modules as Python modules: Triton reads kernels from files, so each gets one.

Files are named by what they hold and written in one step, so that processes can share them; a file
that does not hold what its name says is written again.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock
from types import ModuleType

from tapestry.diagnostics import TapestryError
from tapestry.logs import channel
from tapestry.store import PARTIAL, cache_directory, trim

_LONGEST = 60
"""Characters of a file's name that say what is in it."""

_TRIMMING = "0"
"""Last digits of the names of files after which the folder is trimmed: one in 16 is enough."""


def write_module(source: str, directory: Path | None = None, name: str = "kernels") -> Path:
    """The file that holds `source`, whose name starts with `name`.

    It is in the cache; where no file can be written there, as on a disk that is full, in a folder
    for temporary files that lasts as long as the process. TapestryError where there is no room
    either.
    """
    digest = sha256(source.encode()).hexdigest()[:24]
    file = f"{name[:_LONGEST]}_{digest}.py"
    try:
        written = _written(source, (directory or cache_directory("triton")) / file)
        if directory is None and digest[-1] in _TRIMMING:
            with suppress(OSError):
                trim(written.parent)
        return written
    except OSError as error:
        channel("cache").info("triton: kernels are not kept: %s", error.strerror or error)
    try:
        return _written(source, temporary_folder() / file)
    except OSError as error:
        raise TapestryError(
            f"kernels cannot be written to a file: {error.strerror or error}",
            hint="TAPESTRY_CACHE_DIR or TMPDIR may name a folder where there is room",
        ) from None


_folders: dict[int, tempfile.TemporaryDirectory[str]] = {}
"""The folder of each process: one that was forked has the first one's in its memory."""

_making = Lock()


def temporary_folder() -> Path:
    """A folder for temporary files that lasts as long as the process. OSError without room."""
    with _making:
        if os.getpid() not in _folders:
            _folders[os.getpid()] = tempfile.TemporaryDirectory(prefix="tapestry-")
        return Path(_folders[os.getpid()].name)


def _written(source: str, path: Path) -> Path:
    with suppress(OSError, UnicodeDecodeError):
        if path.read_text() == source:
            os.utime(path)  # it is used: others go first
            return path
    handle, partial = tempfile.mkstemp(dir=path.parent, suffix=PARTIAL)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(source)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
    return path


@lru_cache(maxsize=256)
def load_kernels(path: Path) -> ModuleType:
    """The module in a file that `write_module` made."""
    name = f"tapestry_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
