"""Answers that took long, kept in files by what they are the answers to.

    store = find_store("lowered")                # None with TAPESTRY_CACHE=0
    key = key_of({"program": ..., "pipeline": ...})
    answer = store.read(key)                     # None where there is none, or a damaged one
    store.write(key, {"module": ...})

Each kind of answer has a folder in `$TAPESTRY_CACHE_DIR`, or `~/.cache/tapestry`. An entry is a
file of plain JSON named by its key, behind a digest of the key and of what it holds: one that is
damaged, cut short, under another's name or of another user is no entry. It is written in one step,
so processes can share a folder. A folder holds `LIMIT` bytes; beyond that, what was not used for
longest goes.

The channel `cache` of `TAPESTRY_LOGS` says what was found, what was not, and why.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import time
from typing import Any, Final, cast

from tapestry.diagnostics import UsageError
from tapestry.logs import channel

FORM: Final = 3
"""Part of every key: entries of another form are not found."""

FOLDER_VARIABLE: Final = "TAPESTRY_CACHE_DIR"
"""The environment variable that says where files are kept."""

SWITCH: Final = "TAPESTRY_CACHE"
"""The environment variable that is 0 to keep nothing, or lists the kinds that are kept."""

KINDS: Final = ("aot", "graphs", "lowered", "native", "refused", "rules", "tuning")
"""What answers there are to keep, which is what the variable may list."""

LIMIT: Final = 1 << 30
"""Bytes of a folder."""

PARTIAL: Final = ".partial"
"""What the name of a file ends with that is being written."""

_FORGOTTEN: Final = 3600.0
"""Seconds after which a file that was being written is of a process that is no more."""


def key_of(what: Mapping[str, Any]) -> str:
    """The name of the entry for what an answer is of; `what` is plain JSON.

    >>> key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1}) != key_of({"a": 1, "b": 3})
    True
    """
    return sha256(_text({"form": FORM, **what})).hexdigest()


def cache_directory(kind: str) -> Path:
    """Where files of a kind are kept; made when it is not there. OSError where there is no place.

    In the folder for temporary files, which all users share, only a folder of one's own is used.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    shared = Path(tempfile.gettempdir()) / f"tapestry-{os.getuid()}"
    candidates = [Path(chosen) if chosen else Path.home() / ".cache" / "tapestry", shared]
    for candidate in candidates:
        directory = candidate / kind
        try:
            if candidate is shared:
                candidate.mkdir(mode=0o700, exist_ok=True)
                if not _is_own(candidate.lstat()):
                    continue
            directory.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(directory, os.W_OK):
            return directory
    raise OSError(f"none of {', '.join(map(str, candidates))} can be written to")


def _is_own(status: os.stat_result) -> bool:
    """Whether nobody else can write to a file or a folder."""
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def find_store(kind: str) -> Store | None:
    """The entries of a kind; None where none are to be kept, or none can be.

    KeyError for a kind that does not exist; UsageError where the environment names one.
    """
    if kind not in KINDS:
        raise KeyError(kind)
    if kind not in _kept_kinds():
        return None
    try:
        return Store(cache_directory(kind))
    except OSError as error:
        channel("cache").info("%s: nothing is kept: %s", kind, error)
        return None


def _kept_kinds() -> Sequence[str]:
    """The kinds that the environment says are kept."""
    wanted = os.environ.get(SWITCH, "")
    if wanted in ("", "1"):
        return KINDS
    kinds = [] if wanted == "0" else [name.strip() for name in wanted.split(",")]
    for name in kinds:
        if name not in KINDS:
            hint = f"1 keeps all, 0 nothing; {FOLDER_VARIABLE} says where"
            known = f"there is {', '.join(KINDS)}"
            raise UsageError(f"{SWITCH}={wanted}: no kind {name!r}; {known}", hint=hint)
    return kinds


@dataclass(frozen=True)
class Store:
    """The entries in a folder."""

    folder: Path
    limit: int = LIMIT

    def read(self, key: str) -> dict[str, Any] | None:
        """The entry, or None where there is none that is whole."""
        path = self._path(key)
        try:
            with path.open("rb") as file:
                if not _is_own(os.fstat(file.fileno())):
                    self.say(key, "another user's, or others can write to it")
                    return None
                raw = file.read()
        except FileNotFoundError:
            self.say(key, "not there")
            return None
        except OSError as error:
            self.say(key, f"cannot be read: {error.strerror or error}")
            return None
        digest, _, held = raw.partition(b"\n")
        if digest != _digest(key, held):
            self.say(key, "damaged, as its digest says")
            return None
        try:
            answer: Any = json.loads(held)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            self.say(key, "no entry of Tapestry's")
            return None
        with suppress(OSError):
            os.utime(path)  # it is used: others go first
        self.say(key, "found")
        return cast("dict[str, Any]", answer)

    def write(self, key: str, answer: Mapping[str, Any]) -> None:
        """Keep an entry; a folder that cannot be written to keeps none."""
        held = _text(answer)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, partial = tempfile.mkstemp(dir=self.folder, suffix=PARTIAL)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_digest(key, held) + b"\n" + held)
                os.replace(partial, self._path(key))
            except BaseException:
                os.unlink(partial)
                raise
            trim(self.folder, self.limit)
        except OSError as error:
            self.say(key, f"cannot be kept: {error.strerror or error}")

    def say(self, key: str, what: str) -> None:
        """Tell the channel `cache` something of an entry."""
        channel("cache").info("%s %s: %s", self.folder.name, key[:12], what)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


def trim(folder: Path, limit: int = LIMIT) -> None:
    """Remove the files of a folder that were not used for longest, down to 3/4 of so many bytes."""
    found: list[tuple[float, int, str]] = []
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            status = entry.stat()
            if not entry.is_file(follow_symlinks=False):
                continue
            if not entry.name.endswith(PARTIAL):
                found.append((status.st_mtime, status.st_size, entry.path))
            elif time() - status.st_mtime > _FORGOTTEN:
                os.unlink(entry.path)
    held = sum(size for _, size, _ in found)
    if held <= limit:
        return
    for _, size, path in sorted(found):
        if held <= limit * 3 // 4:
            break
        with suppress(FileNotFoundError):
            os.unlink(path)
        held -= size


def _digest(key: str, held: bytes) -> bytes:
    return sha256(key.encode() + b"\n" + held).hexdigest().encode()


def _text(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
