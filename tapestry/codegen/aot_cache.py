"""Kernels that were compiled before, by what they were compiled from.

    key = key_of({"source": ..., "target": 90, "triton": "3.9.0"})
    answer = read(folder, key)          # None where there is none, or a damaged one

An entry is a JSON file named by its key, with a digest of what it holds; it is written in one step,
so processes can share a folder. What does not hold what its digest says is compiled again.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

FORM = 1
"""Part of every key: entries of another form are not found."""


def key_of(what: Mapping[str, Any]) -> str:
    """The name of the entry for what is compiled; `what` is plain JSON.

    >>> key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1}) != key_of({"a": 1, "b": 3})
    True
    """
    return sha256(_text({"form": FORM, **what})).hexdigest()


def read(folder: Path, key: str) -> dict[str, Any] | None:
    """The entry, or None where there is none that is whole."""
    try:
        entry: Any = json.loads((folder / f"{key}.json").read_bytes())
        answer, digest = entry["answer"], entry["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(answer, dict):
        return None
    whole = cast("dict[str, Any]", answer)
    return whole if digest == sha256(_text(whole)).hexdigest() else None


def write(folder: Path, key: str, answer: Mapping[str, Any]) -> None:
    """Keep an entry; a folder that cannot be written to keeps none."""
    entry = {"digest": sha256(_text(answer)).hexdigest(), "answer": dict(answer)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=folder, suffix=".partial")
        with os.fdopen(handle, "wb") as file:
            file.write(_text(entry))
        os.replace(partial, folder / f"{key}.json")
    except OSError:
        return


def _text(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
