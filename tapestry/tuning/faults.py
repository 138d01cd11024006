"""Whose fault it is that a candidate failed: its own, which is a result, or the machine's.

    fault_of(CompileError("kernel a does not compile ...", ["a"]))      # Fault.CANDIDATE
    fault_of(MemoryShortError("... there are not as many free"))        # Fault.MEMORY
    fault_of(LoadError("NVIDIA's driver cannot be loaded"))             # Fault.MACHINE

What is kept of a candidate says for good that it is not worth trying. So what another process took
the memory for, or what fails with every candidate alike, is not kept.
"""

from __future__ import annotations

from enum import Enum

from tapestry.codegen.aot_jobs import CompileError
from tapestry.codegen.driver import DriverError, LoadError, MemoryShortError
from tapestry.diagnostics import TapestryError
from tapestry.runtime.triton.compiled import GpuError


class Fault(Enum):
    """What a failure says of candidates."""

    CANDIDATE = "this one does not work"
    MEMORY = "this one does not fit the memory that is free now"
    MACHINE = "none works here"


class TuningError(TapestryError):
    """Nothing more can be measured; what was measured is kept."""

    kind = "tuning"


def fault_of(error: Exception) -> Fault:
    """Whose fault an error is, of a candidate that was compiled, loaded or run."""
    if isinstance(error, MemoryError | MemoryShortError) or _is_pytorchs(error):
        return Fault.MEMORY
    if isinstance(error, CompileError | GpuError):
        return Fault.CANDIDATE if error.kernels else Fault.MACHINE
    if isinstance(error, DriverError) and error.kernel is not None:
        return Fault.CANDIDATE
    return Fault.MACHINE if isinstance(error, LoadError | OSError) else Fault.CANDIDATE


def _is_pytorchs(error: Exception) -> bool:
    """Whether it is what PyTorch raises where a GPU has too little memory."""
    return type(error).__name__ == "OutOfMemoryError"


def said(error: Exception) -> str:
    """What an error says is wrong, in one line."""
    text = error.message if isinstance(error, TapestryError) else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    # PyTorch says first what CUDA says, and then how to find out more; Triton says most at last.
    line = lines[0] if lines[0].startswith("CUDA") else lines[-1]
    return f"{type(error).__name__}: {line}"
