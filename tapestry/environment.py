"""What answers that are kept were made by: Tapestry's sources, and versions of what it stands on.

store = find_current("lowered")                     # None where sources changed meanwhile
key = key_of({"program": ..., "environment": environment()})
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final

import tapestry
from tapestry import started
from tapestry.logs import channel
from tapestry.store import Store, find_store

_ROOT: Final = Path(tapestry.__file__).parent

_SOURCES: Final = (".py", ".yaml", ".yml")
"""What the files end with that programs are made by."""


@cache
def environment() -> dict[str, str]:
    """What determines the work of passes beside the program: versions, and Tapestry's sources."""
    versions = {name: version(name) for name in ("numpy", "sympy", "xdsl")}
    return versions | {"python": platform.python_version(), "sources": digest_of(_ROOT)}


def find_current(kind: str) -> Store | None:
    """The store of a kind, for what the sources make as they are now.

    None where they have changed since this process began: it may run what they were before.
    """
    store = find_store(kind)
    if store is None or max(_times(_ROOT)) <= started.STARTED:
        return store
    channel("cache").info("%s: nothing is kept: the sources changed since this process began", kind)
    return None


def _times(folder: Path) -> Iterator[float]:
    """When each source was last changed."""
    return (os.stat(path).st_mtime for path in _sources(folder))


def _sources(folder: Path) -> Iterator[str]:
    """The sources and templates below a folder, in order."""
    for path, folders, files in os.walk(folder, followlinks=True):
        folders.sort()
        yield from (os.path.join(path, name) for name in sorted(files) if name.endswith(_SOURCES))


def digest_of(path: Path) -> str:
    """What identifies the contents of a file, or of the sources and templates below a folder."""
    if path.is_file():
        return sha256(path.read_bytes()).hexdigest()
    digest = sha256()
    for source in _sources(path):
        content = Path(source).read_bytes()
        digest.update(f"{source[len(str(path)) :]} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
