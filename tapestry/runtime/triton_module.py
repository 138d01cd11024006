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

CACHE_VARIABLE = "TAPESTRY_CACHE_DIR"
"""The environment variable that says where files are kept."""


def cache_directory(kind: str = "triton") -> Path:
    """Where printed modules, or files of another kind, are kept; made when it is not there."""
    chosen = os.environ.get(CACHE_VARIABLE)
    candidates = [
        Path(chosen) if chosen else Path.home() / ".cache" / "tapestry",
        Path(tempfile.gettempdir()) / f"tapestry-{os.getuid()}",
    ]
    for candidate in candidates:
        directory = candidate / kind
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(directory, os.W_OK):
            return directory
    raise OSError(f"none of {', '.join(map(str, candidates))} can be written to")


def write_module(source: str, directory: Path | None = None) -> Path:
    """The file that holds `source`."""
    digest = sha256(source.encode()).hexdigest()[:24]
    directory = directory or cache_directory()
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
