"""Output files that appear whole or not at all.

with whole_file(Path("out.npz")) as temporary:
    ...                     # write `temporary`; an exception or Ctrl-C leaves out.npz as it was
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tapestry.diagnostics import UsageError


def check_writable(path: Path, *read: Path | None) -> None:
    """Raise UsageError when `path` cannot become an output file, before work is spent on it.

    It cannot be one of the files that are `read`: what was given would be lost.
    """
    for one in read:
        if one is not None and path.is_file() and one.exists() and path.samefile(one):
            raise UsageError(
                f"cannot write {path}: it is what is read", hint="give the output another name"
            )
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {path.absolute().parent}")


@contextmanager
def whole_file(path: Path) -> Generator[Path, None, None]:
    """A path to write instead of `path`, which it replaces when the block ends without exception.

    It lies in the same folder, so that the replacement is one atomic step. A link is written
    through, and what is no regular file (/dev/null, a pipe) is written directly. Raises UsageError
    when the file cannot be written.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        yield target
        return
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        try:
            yield temporary
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        if str(error.filename or temporary) != str(temporary):
            raise  # about another file, which the block reads
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
