"""Pipelines with what a command's options add to them.

weft-apply,loom-fuse   --metakernels mine   ->   weft-apply{metakernels="mine"},loom-fuse
"""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from tapestry.diagnostics import InvalidProgramError, UsageError
from tapestry.frontend import parse_passes
from tapestry.locations import location_of
from tapestry.pipelines import pass_specs

APPLY = "weft-apply"

_NOT_LOOM = {
    "weft.apply": f"begin the pipeline with {APPLY}",
    "triton.kernel": "end the pipeline before loom-to-triton",
}
"""What a pipeline may leave, or make, and how it would not."""


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


def require_loom(module: ModuleOp) -> None:
    """Raise InvalidProgramError where a pipeline stops before loom, or goes on to kernels.

    A command that shows what operations of loom do would say nothing of others.
    """
    for op in module.walk():
        if op.name in _NOT_LOOM:
            raise InvalidProgramError(
                f"{op.name} is no operation of loom, which is what is shown",
                location=location_of(op),
                hint=_NOT_LOOM[op.name],
            )


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
