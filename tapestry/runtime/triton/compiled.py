"""A plan on a GPU: kernels compiled once, for the device that is there, and its list of launches.

    run = compiled_launches(path, specs, plan, Cuda(), calls={})
    (y,) = run([x, w])              # tensors on the GPU

Kernels are compiled in processes of their own, so that a compiler that dies does not take this
process along, and kept in the cache of `tapestry compile`: the second run of a program compiles
nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from tapestry.codegen.aot import CompiledKernel, compile_kernels
from tapestry.codegen.driver import Device, LoadError, MemoryShortError, OldDriverError
from tapestry.codegen.launches import Calls, Function, Launches
from tapestry.codegen.plans import Plan
from tapestry.codegen.specs import KernelSpec
from tapestry.diagnostics import TapestryError
from tapestry.runtime.archives import first_line
from tapestry.store import find_store

OLDEST = 80
"""The least compute capability that Triton compiles for."""

_WORKERS = 8


class GpuError(TapestryError):
    """A GPU that cannot run a program: too old, too small, or failing.

    `kernels` are those that it is about, if it is about some.
    """

    kind = "gpu"

    def __init__(
        self, message: str, *, kernels: Sequence[str] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.kernels = tuple(kernels)


class RefusedError(Exception):
    """Kernels that would run, but for which there may be better ones."""


Judge: TypeAlias = "Callable[[Sequence[CompiledKernel]], bool]"
"""Told of kernels once they are compiled; whether some are to be made again."""


@contextmanager
def gpu_errors() -> Generator[None]:
    """PyTorch's errors of a GPU as ours: memory that is short, and a GPU that failed before.

    A failed assertion of a kernel's stays as it is: `block_errors` knows more of it.
    """
    try:
        yield
    except RuntimeError as error:
        said = first_line(error)
        if type(error).__name__ == "OutOfMemoryError":
            # What follows is how much was free: another number each time, said as another message.
            raise MemoryShortError(". ".join(said.split(". ")[:2]).rstrip(".")) from error
        if "CUDA error" not in said or "device-side assert" in said:
            raise
        hint = "the GPU's state is lost with most such errors: start the process again"
        raise GpuError(f"the GPU failed: {said}", hint=hint) from error


def check_capability(capability: int) -> None:
    """Raise GpuError for a GPU that is too old (75 for sm_75)."""
    if capability < OLDEST:
        raise GpuError(
            f"this GPU is sm_{capability}, and kernels run on sm_{OLDEST} or newer",
            hint="use a newer GPU, or run on numpy",
        )


def compilers() -> int:
    """How many processes compile kernels at once."""
    return min(os.cpu_count() or 1, _WORKERS)


def compiled_launches(
    path: Path,
    specs: Sequence[KernelSpec],
    plan: Plan,
    device: Device,
    calls: Calls,
    judge: Judge | None = None,
) -> Launches:
    """The launches of a plan whose kernels are in a file.

    Raises CompileError for kernels that do not compile, RefusedError for those that `judge` wants
    made again, GpuError for those that the device cannot load, and for a device that is too old.
    """
    capability = device.capability()
    check_capability(capability)
    store = find_store("aot")
    compiled = compile_kernels(
        path,
        specs,
        targets=(capability,),
        workers=compilers(),
        cache=None if store is None else store.folder,
    )
    if judge is not None and judge(compiled):
        raise RefusedError("some kernels are to be made with other schedules")
    warps = {spec.name: spec.num_warps for spec in specs}
    functions = {one.name: _function(device, one, warps[one.name]) for one in compiled}
    placed = plan.placed({one.name: one.scratch for one in compiled})
    constants = {
        place: device.upload(buffer.cells.data, buffer.shape, buffer.dtype)
        for place, buffer in enumerate(placed.buffers)
        if buffer.cells is not None and buffer.cells.data is not None
    }
    return Launches(placed.as_json(), functions, device, constants, calls)


def _function(device: Device, kernel: CompiledKernel, warps: int) -> Function:
    """A kernel, loaded."""
    try:
        handle = device.function(kernel.cubin, kernel.symbol, kernel.shared)
    except (MemoryShortError, OldDriverError):
        raise  # whatever its schedule is
    except LoadError as error:
        raise GpuError(str(error), kernels=[kernel.name]) from error
    return Function(handle, 32 * warps, kernel.shared, kernel.parameters)
