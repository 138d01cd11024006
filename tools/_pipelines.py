"""Pipelines with what a command's options add to them.

weft-apply,loom-fuse   --metakernels mine   ->   weft-apply{metakernels="mine"},loom-fuse
"""

from __future__ import annotations

from pathlib import Path

from tapestry.diagnostics import UsageError
from tapestry.frontend import parse_passes
from tapestry.pipelines import pass_specs

APPLY = "weft-apply"


def with_metakernels(pipeline: str, folder: Path | None) -> str:
    """`pipeline`, spelled out, with `folder` given to every `weft-apply` that has none of its own.

    Raises UsageError for a pipeline that is wrong, or applies nothing, and for what is no folder.
    """
    parse_passes(pipeline)
    passes = pass_specs(pipeline)
    if folder is not None:
        require_folder(folder)
        applying = [one for one in passes if one.name == APPLY]
        if not applying:
            raise UsageError(f"--metakernels needs a pipeline with {APPLY}; this is {pipeline!r}")
        for one in applying:
            one.parameters.setdefault("metakernels", (str(folder),))
    return ",".join(map(str, passes))


def require_folder(folder: Path) -> None:
    """Raise UsageError unless `folder`, given by --metakernels, is one."""
    if not folder.is_dir():
        raise UsageError(f"--metakernels takes a folder; {folder} is none")


def require_file(path: Path) -> None:
    """Raise UsageError unless a file that the command names can be opened."""
    try:
        path.open("rb").close()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
