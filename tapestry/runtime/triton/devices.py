"""Where kernels run: on a GPU through PyTorch, or in Triton's interpreter on the CPU.

device = find_device()
run = device.prepared(program, calls={})       # of a PrintedProgram
(y,) = map(device.get, run([device.put(x)]))
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry.codegen.aot import CompiledKernel
from tapestry.codegen.climbing import say
from tapestry.codegen.driver import Cuda
from tapestry.codegen.launches import Calls, Follow
from tapestry.codegen.module_files import load_kernels
from tapestry.codegen.planning import plan_of
from tapestry.codegen.plans import Plan
from tapestry.codegen.refusals import Refusals
from tapestry.codegen.specs import KernelSpec
from tapestry.devices import name_of
from tapestry.passes.triton.loom_to_triton import NO_DEVICE
from tapestry.runtime.archives import first_line
from tapestry.runtime.executor import Array
from tapestry.runtime.externals import Target
from tapestry.runtime.triton.arrays import HostTensor, host_allocate, host_upload
from tapestry.runtime.triton.compiled import compiled_launches
from tapestry.runtime.triton.interpreter import interpreted
from tapestry.runtime.triton.interpreting import Interpreted


@dataclass(frozen=True)
class PrintedProgram:
    """A program as kernels in a file; it takes `constants` after its arguments."""

    lowered: ModuleOp
    path: Path
    kernels: Sequence[KernelSpec]
    constants: Sequence[Array]
    refusals: Refusals | None = None

    def refuses(self, compiled: Sequence[CompiledKernel]) -> bool:
        """Whether kernels turned out badly in a way that was not known (`refusals.py`)."""
        return self.refusals is not None and self.refusals.learn(self.lowered, compiled)

    @cached_property
    def plan(self) -> Plan:
        """Its launches, and where temporaries lie."""
        return plan_of(self.lowered, self.kernels).placed()


class Ready(Protocol):
    """A program made ready on a device: from tensors, constants included, to results."""

    def __call__(self, inputs: Sequence[Any], *, follow: Follow | None = None) -> list[Any]: ...


CPU_TILE = 1 << 16
"""Cells of a tile in the interpreter."""

GPU_TILE = 1 << 11
"""Cells of a tile on a GPU."""


class Device(Protocol):
    """Where kernels run: how tensors get there and back, and when a launch is done."""

    tile: int
    target: Target

    @property
    def capability(self) -> int | None:
        """What kernels are compiled for (90 for sm_90); None where they are interpreted."""
        ...

    @property
    def model(self) -> str:
        """The device that schedules are chosen for, as `tapestry.devices` names it."""
        ...

    def session(self) -> AbstractContextManager[None]: ...

    def put(self, array: Array) -> Any: ...

    def get(self, tensor: Any) -> Array: ...

    def functions(self) -> dict[str, Any]: ...

    def wait(self) -> None: ...

    def is_capturing(self) -> bool: ...

    def prepared(self, program: PrintedProgram, calls: Calls) -> Ready: ...


class Cpu:
    """Triton's interpreter on NumPy arrays."""

    tile = CPU_TILE
    target: Target = "numpy"
    model = NO_DEVICE
    capability: int | None = None

    def session(self) -> AbstractContextManager[None]:
        """The state of the process in which kernels are interpreted."""
        return interpreted()

    def put(self, array: Array) -> HostTensor:
        """An array as an argument of `launch`."""
        return HostTensor(array)

    def get(self, tensor: HostTensor) -> Array:
        """The array in a result of `launch`."""
        return tensor.array

    def functions(self) -> dict[str, Any]:
        """What `launch` is to make its buffers with."""
        return {"allocate": host_allocate, "upload": host_upload}

    def wait(self) -> None:
        """Launches return when they are done."""

    def is_capturing(self) -> bool:
        """There are no graphs."""
        return False

    def prepared(self, program: PrintedProgram, calls: Calls) -> Ready:
        """A program made ready for many calls."""
        names = vars(load_kernels(program.path))
        return Interpreted(program.plan, names, program.kernels, calls)


class Gpu:
    """A CUDA device through PyTorch: that of an index, or the one that is current when it is made,
    also where another one is current later.
    """

    tile = GPU_TILE
    target: Target = "torch"

    def __init__(self, torch: Any, index: int | None = None) -> None:
        self._torch = torch
        self._index: int = torch.cuda.current_device() if index is None else index
        self._where = f"cuda:{self._index}"

    @property
    def model(self) -> str:
        """The device that schedules are chosen for, as `tapestry.devices` names it."""
        name = self._torch.cuda.get_device_name(self._index)
        return name_of(name, self.capability) or NO_DEVICE

    @property
    def capability(self) -> int:
        """What kernels are compiled for (90 for sm_90)."""
        major, minor = self._torch.cuda.get_device_capability(self._index)
        return 10 * major + minor

    def session(self) -> AbstractContextManager[None]:
        """Nothing needs to be prepared."""
        return nullcontext()

    def put(self, array: Array) -> Any:
        """An array as a tensor on the device."""
        torch = self._torch
        own = np.array(array, order="C")
        if hasattr(ml_dtypes, own.dtype.name):
            bits = own.view(f"i{own.dtype.itemsize}")
            return torch.from_numpy(bits).view(getattr(torch, own.dtype.name)).to(self._where)
        return torch.from_numpy(own).to(self._where)

    def get(self, tensor: Any) -> Array:
        """A tensor as an array."""
        torch = self._torch
        name = str(tensor.dtype).removeprefix("torch.")
        if hasattr(ml_dtypes, name):
            bits = torch.int16 if tensor.element_size() == 2 else torch.int8
            return tensor.view(bits).cpu().numpy().view(getattr(ml_dtypes, name))
        return tensor.cpu().numpy()

    def functions(self) -> dict[str, Any]:
        """Printed modules make their buffers on the device by themselves."""
        return {}

    def wait(self) -> None:
        """Wait for everything launched so far."""
        self._torch.cuda.synchronize(self._index)

    def is_capturing(self) -> bool:
        """Whether somebody captures the work of the current stream."""
        with self._torch.cuda.device(self._index):
            return bool(self._torch.cuda.is_current_stream_capturing())

    def prepared(self, program: PrintedProgram, calls: Calls) -> Ready:
        """A program made ready for many calls."""
        return compiled_launches(
            *(program.path, program.kernels, program.plan, Cuda(self._index), calls),
            judge=program.refuses,
        )


def find_device(*, quiet: bool = False) -> Device:
    """The GPU when PyTorch sees one, else the CPU; `TRITON_INTERPRET=1` asks for the CPU.

    Where it is not asked for, that there is no GPU, and why, is said once, unless `quiet`.
    """
    if os.environ.get("TRITON_INTERPRET") == "1":
        return Cpu()
    found = _find_gpu()
    if isinstance(found, Gpu):
        return found
    if not quiet:
        say(
            f"there is no GPU to run kernels on: {found}",
            "Triton's interpreter runs them, slowly",
            "numpy is faster without a GPU; TRITON_INTERPRET=1 asks for the interpreter",
        )
    return Cpu()


def _find_gpu() -> Gpu | str:
    """PyTorch's current GPU; or why there is none."""
    if find_spec("torch") is None:
        return "PyTorch is not installed, and memory on a GPU is its"
    torch: Any = import_module("torch")
    if getattr(torch.version, "cuda", None) is None and not torch.cuda.is_available():
        return "this PyTorch is built for the CPU alone"
    try:
        if torch.cuda.is_available():
            return Gpu(torch)
        torch.cuda.init()  # which says why it is not: no driver, or one that is too old
    except (RuntimeError, AssertionError) as error:
        return first_line(error)
    return "PyTorch sees none"
