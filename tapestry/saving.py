"""Programs as files: the module as text, larger constants in an `.npz` beside it.

    save_module(module, Path("model.mlir"))      # and model.npz, if there is something for it

What is written can be moved together; `loom.constant` names the side file relative to the program.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr

from tapestry.diagnostics import UsageError
from tapestry.dialects import loom
from tapestry.files import whole_file
from tapestry.frontend import verify_module
from tapestry.printing import text_of
from tapestry.runtime.constants import constant_cells
from tapestry.runtime.executor import Array

_SMALL = 1 << 10
"""Bytes of a constant that stay in the text of a program."""


def save_module(module: ModuleOp, path: Path) -> None:
    """Write a module to `path`; both files appear whole or not at all.

    Raises UsageError where they cannot be written, BrokenRulesError for a module that is wrong.
    """
    if path.suffix != ".mlir":
        raise UsageError(f"cannot save to {path}", hint="the name of a program ends with .mlir")
    verify_module(module)
    side = path.with_suffix(".npz")
    arrays: dict[str, Array] = {}

    def keep(cells: Array) -> str:
        entry = f"c{len(arrays)}"
        arrays[entry] = cells
        return entry

    text = text_of(_moved(module, side.name, keep))
    if arrays:
        with whole_file(side) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


class ConstantFile:
    """An `.npz` that several programs keep their constants in, each array once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept: set[str] = set()
        path.unlink(missing_ok=True)

    @property
    def used(self) -> bool:
        """Whether there is anything in the file."""
        return bool(self._kept)

    def moved(self, module: ModuleOp) -> ModuleOp:
        """A copy of a module whose larger constants are in this file; they are added to it."""
        return _moved(module, self.path.name, self._keep)

    def _keep(self, cells: Array) -> str:
        digest = hashlib.sha256(f"{cells.dtype} {cells.shape}".encode())
        digest.update(np.ascontiguousarray(cells).view(np.uint8).data)
        entry = f"c{digest.hexdigest()[:16]}"
        if entry not in self._kept:
            self._kept.add(entry)
            with (
                zipfile.ZipFile(self.path, "a") as archive,
                archive.open(f"{entry}.npy", "w", force_zip64=True) as file,
            ):
                np.lib.format.write_array(file, cells, allow_pickle=False)
        return entry


def _moved(module: ModuleOp, side: str, keep: Callable[[Array], str]) -> ModuleOp:
    """A copy with constants in a side file; `keep` puts an array there and names its entry."""
    written = module.clone()
    for op in written.walk():
        if not isinstance(op, loom.ConstantOp):
            continue
        if isinstance(op.value, loom.DataAttr) and len(op.value.data) <= _SMALL:
            continue
        op.properties["value"] = loom.SideFileAttr(
            StringAttr(side), StringAttr(keep(constant_cells(op)))
        )
    return written
