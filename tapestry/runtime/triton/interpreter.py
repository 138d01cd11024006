"""Triton's interpreter: when kernels are interpreted, and when that is not possible.

    with interpreted():
        module = load_kernels(path)          # its @triton.jit functions run on the CPU
        module.launch(x, allocate=host_allocate)

Inside, the interpreter is corrected as `corrections.py` says. Whether a function is compiled
or interpreted is decided where it is defined: for Triton's own (`tl.sum`) when Triton is imported,
which PyTorch may do first. Inside they are interpreted all the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from threading import RLock
from typing import Any

import numpy as np

from tapestry.diagnostics import TapestryError
from tapestry.runtime.triton.corrections import corrected

_SWITCH = "TRITON_INTERPRET"


class InterpreterUnavailableError(TapestryError):
    """There is no Triton to interpret kernels with."""

    kind = "interpreter_unavailable"


@contextmanager
def interpreted() -> Generator[None]:
    """Define and run Triton kernels on the CPU; one thread at a time, and others wait.

    Triton's interpreter has one state for the process, and so have the corrections. Raises
    InterpreterUnavailableError when there is no Triton.
    """
    if find_spec("triton") is None:
        raise InterpreterUnavailableError(
            "Triton is not installed, which the triton executor runs kernels with",
            hint="Triton is for Linux; elsewhere, run on numpy",
        )
    ways = _environment(_SWITCH, "1"), _own_functions(), corrected(), np.errstate(all="ignore")
    with _lock, ExitStack() as stack:
        for way in ways:
            stack.enter_context(way)
        yield


_lock = RLock()
"""Held while kernels are interpreted; a thread that does so may do so again inside."""


@contextmanager
def _own_functions() -> Generator[None]:
    """Triton's own functions are interpreted for a while, however they were defined."""
    replaced = _compiled_functions()
    for owner, name, _, interpreted_one in replaced:
        setattr(owner, name, interpreted_one)
    try:
        yield
    finally:
        for owner, name, compiled_one, _ in replaced:
            setattr(owner, name, compiled_one)


@cache
def _compiled_functions() -> tuple[tuple[Any, str, Any, Any], ...]:
    """Where Triton's functions are that were defined to be compiled, and interpreted ones of them.

    None where Triton was imported to interpret.
    """
    core: Any = import_module("triton.language.core")
    compiled: Any = import_module("triton.runtime.jit").JITFunction
    interpreter: Any = import_module("triton.runtime.interpreter")
    owners = [m for name, m in sys.modules.items() if name.startswith("triton.language")]
    made: dict[Any, Any] = {}
    found: list[tuple[Any, str, Any, Any]] = []
    for owner in (*owners, core.tensor):
        for name, value in vars(owner).items():
            if isinstance(value, compiled):
                own: Any = value
                if own.fn not in made:
                    made[own.fn] = interpreter.InterpretedFunction(own.fn)
                found.append((owner, name, own, made[own.fn]))
    return tuple(found)


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
