"""Triton's interpreter: when kernels are interpreted, and when that is not possible.

    with interpreted():
        module = load_kernels(path)          # its @triton.jit functions run on the CPU
        module.launch(x, allocate=host_allocate)

Inside, the interpreter is corrected as `triton_corrections.py` says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from tapestry.diagnostics import TapestryError
from tapestry.runtime.triton_corrections import corrected

_SWITCH = "TRITON_INTERPRET"


class InterpreterUnavailableError(TapestryError):
    """This process has no Triton, or has loaded it for a GPU, so it cannot interpret."""

    kind = "interpreter_unavailable"


@contextmanager
def interpreted() -> Generator[None]:
    """Define and run Triton kernels on the CPU.

    Raises InterpreterUnavailableError when there is no Triton, or when this process imported it for
    a GPU before: Triton decides once, when it is imported.
    """
    if find_spec("triton") is None:
        raise InterpreterUnavailableError(
            "Triton is not installed, which the triton executor runs kernels with",
            hint="Triton is for Linux; elsewhere, run on numpy",
        )
    with _environment(_SWITCH, "1"):
        if "triton" in sys.modules and not _interprets():
            raise InterpreterUnavailableError(
                "Triton was imported for a GPU in this process, and there is none to run on",
                hint=f"start Python with {_SWITCH}=1 in the environment",
            )
        with corrected(), np.errstate(all="ignore"):
            yield


def _interprets() -> bool:
    """Whether Triton's own functions were defined for the interpreter."""
    return type(import_module("triton.language").sum).__name__ == "InterpretedFunction"


@contextmanager
def _environment(name: str, value: str) -> Generator[None]:
    """The environment variable `name` is `value` for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
