"""Printed modules as Python modules: Triton reads kernels from files, so each gets one.

Files are named by what they hold and written in one step, so that processes can share them; a file
that does not hold what its name says is written again.
"""

from __future__ import annotations

import os
import sys
import tempfile
from functools import lru_cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from tapestry.store import cache_directory


def write_module(source: str, directory: Path | None = None) -> Path:
    """The file that holds `source`."""
    digest = sha256(source.encode()).hexdigest()[:24]
    directory = directory or cache_directory("triton")
    path = directory / f"kernels_{digest}.py"
    try:
        if path.read_text() == source:
            return path
    except (OSError, UnicodeDecodeError):
        pass
    handle, partial = tempfile.mkstemp(dir=directory, suffix=".partial")
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
