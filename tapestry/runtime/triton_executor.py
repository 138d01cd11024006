"""The triton executor: lower, print, import and run, on a GPU or on the CPU.

With PyTorch and a GPU, kernels are compiled and run there. Otherwise Triton's interpreter runs the
same kernels on NumPy arrays, without PyTorch. Either way what runs is the module that
`tapestry-opt -p loom-to-triton -t triton` prints; on the CPU with larger tiles, because the
interpreter pays per operation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from types import FunctionType, ModuleType
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.caching import kept
from tapestry.codegen.driver import Cuda
from tapestry.codegen.host_printer import ENTRY
from tapestry.codegen.launches import Calls, Follow
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.planning import plan_of
from tapestry.codegen.plans import Filling, Plan
from tapestry.codegen.specs import KernelSpec
from tapestry.devices import name_of
from tapestry.dialects import loom, triton
from tapestry.locations import location_of
from tapestry.logs import channel
from tapestry.passes.triton.loom_to_triton import NO_DEVICE, LoomToTriton
from tapestry.passes.triton.rungs import Rung
from tapestry.runtime.compiled import compiled_launches
from tapestry.runtime.constants import as_arguments
from tapestry.runtime.executor import Array, Record, Result, Watch
from tapestry.runtime.externals import (
    Implementation,
    Parameters,
    Target,
    call_external,
    find_external,
)
from tapestry.runtime.interpreting import Interpreted
from tapestry.runtime.ladder import Ladder, Ready
from tapestry.runtime.program import ENTRY as MAIN
from tapestry.runtime.program import arguments, main_function, outputs
from tapestry.runtime.triton_arrays import (
    HostTensor,
    as_pairs,
    from_pairs,
    host_allocate,
    host_upload,
)
from tapestry.runtime.triton_assertions import block_errors
from tapestry.runtime.triton_interpreter import interpreted
from tapestry.runtime.triton_module import load_kernels, write_module

CPU_TILE = 1 << 16
"""Cells of a tile in the interpreter."""

GPU_TILE = 1 << 11
"""Cells of a tile on a GPU."""


class Device(Protocol):
    """Where kernels run: how tensors get there and back, and when a launch is done."""

    tile: int
    target: Target
    compiles: bool

    @property
    def model(self) -> str:
        """The device that schedules are chosen for, as `tapestry.devices` names it."""
        ...

    def session(self) -> AbstractContextManager[None]: ...

    def put(self, array: Array) -> Any: ...

    def get(self, tensor: Any) -> Array: ...

    def functions(self) -> dict[str, Any]: ...

    def wait(self) -> None: ...

    def prepared(self, program: PrintedProgram, calls: Calls) -> Ready: ...


class Cpu:
    """Triton's interpreter on NumPy arrays."""

    tile = CPU_TILE
    target: Target = "numpy"
    model = NO_DEVICE
    compiles = False

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

    def prepared(self, program: PrintedProgram, calls: Calls) -> Ready:
        """A program made ready for many calls."""
        names = vars(load_kernels(program.path))
        return Interpreted(program.plan, names, program.kernels, calls)


class Gpu:
    """A CUDA device through PyTorch."""

    tile = GPU_TILE
    target: Target = "torch"
    compiles = True

    def __init__(self, torch: Any, index: int | None = None) -> None:
        self._torch = torch
        self._index = index

    @property
    def model(self) -> str:
        """The device that schedules are chosen for, as `tapestry.devices` names it."""
        cuda = self._torch.cuda
        major, minor = cuda.get_device_capability(self._index)
        known = name_of(cuda.get_device_name(self._index), 10 * major + minor)
        return known or NO_DEVICE

    def session(self) -> AbstractContextManager[None]:
        """Nothing needs to be prepared."""
        return nullcontext()

    def put(self, array: Array) -> Any:
        """An array as a tensor on the device."""
        torch = self._torch
        own = np.array(array, order="C")
        if hasattr(ml_dtypes, own.dtype.name):
            bits = own.view(f"i{own.dtype.itemsize}")
            return torch.from_numpy(bits).view(getattr(torch, own.dtype.name)).cuda()
        return torch.from_numpy(own).cuda()

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
        self._torch.cuda.synchronize()

    def prepared(self, program: PrintedProgram, calls: Calls) -> Ready:
        """A program made ready for many calls."""
        return compiled_launches(
            program.path, program.kernels, program.plan, Cuda(self._index), calls
        )


def find_device() -> Device:
    """The GPU when PyTorch sees one, else the CPU; `TRITON_INTERPRET=1` asks for the CPU."""
    if os.environ.get("TRITON_INTERPRET") != "1" and find_spec("torch") is not None:
        torch: Any = import_module("torch")
        if torch.cuda.is_available():
            return Gpu(torch)
    return Cpu()


@dataclass
class _Launch:
    """A launch operation of the host: what it is called, and what its launches took so far."""

    name: str
    shards: int
    bytes_read: int
    bytes_written: int
    seconds: float = 0.0
    done: int = 0


class _Observer:
    """Follows the launches of a program, which come in the order of its launch operations."""

    def __init__(self, launches: Sequence[_Launch], device: Device, watch: Watch) -> None:
        self._launches = launches
        self._device = device
        self._watch = watch
        self._current = 0
        watch.total(sum(launch.shards for launch in launches))

    def __call__(self, run: Callable[[], None]) -> None:
        started = perf_counter()
        run()
        self._device.wait()
        launch = self._launches[self._current]
        launch.seconds += perf_counter() - started
        launch.done += 1
        if launch.done == launch.shards:
            self._current += 1
        self._watch.step(launch.name)


class _Observed:
    """A kernel whose launches are followed."""

    def __init__(self, kernel: Any, observer: _Observer) -> None:
        self._kernel = kernel
        self._observer = observer

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*operands: Any, **options: Any) -> None:
            self._observer(lambda: self._kernel[grid](*operands, **options))

        return launch


@dataclass(frozen=True)
class PrintedProgram:
    """A program as kernels in a file; it takes `constants` after its arguments."""

    lowered: ModuleOp
    path: Path
    kernels: Sequence[KernelSpec]
    constants: Sequence[Array]

    @cached_property
    def plan(self) -> Plan:
        """Its launches, and where temporaries lie."""
        return plan_of(self.lowered, self.kernels).placed()


@dataclass(frozen=True)
class TritonExecutor:
    """Runs programs as Triton kernels.

    `device` says where; None is the GPU when there is one, else the CPU. `tile` is the most cells
    of a tile; None is what suits the device. `numerics` is that of `loom-to-triton`. `fallback`
    allows the numpy executor for a program that the GPU does not run; with `graphs`, a program that
    is called again is replayed as a CUDA graph.
    """

    device: Device | None = None
    tile: int | None = None
    numerics: str = "mixed"
    fallback: bool = True
    graphs: bool = False

    @property
    def name(self) -> str:
        """The executor's name."""
        return "triton"

    def printed(
        self, module: ModuleOp, device: Device, rungs: Mapping[str, Rung] | None = None
    ) -> PrintedProgram:
        """@main of a module in the loom dialect, lowered and printed; the module stays as it is.

        `rungs` is as in `LoomToTriton.lower`.
        """
        lowered, constants = self.lowered(module, device, rungs)
        made = print_module(lowered)
        path = write_module(made.source)
        for kernel in made.kernels:
            channel("kernels").info("%s is in %s", kernel.name, path)
        return PrintedProgram(lowered, path, made.kernels, constants)

    def lowered(
        self, module: ModuleOp, device: Device, rungs: Mapping[str, Rung] | None = None
    ) -> tuple[ModuleOp, list[Array]]:
        """@main lowered to Triton, and the constants that it takes after its arguments."""
        lowered = module.clone()
        constants = as_arguments(main_function(lowered))
        tile = self.tile or device.tile
        lowering = LoomToTriton(tile=tile, numerics=self.numerics, device=device.model)
        if rungs:
            lowering.lower(Context(), lowered, rungs=rungs)
        else:
            spec = lowering.spec(include_default=True)
            lowered = kept(lowered, [spec], partial(lowering.lower, Context()))
        return lowered, constants

    def run(self, module: ModuleOp, inputs: Mapping[str, Array], watch: Watch) -> Result:
        """Run @main of a module in the loom dialect."""
        device = self.device or find_device()
        if device.compiles:
            return self._compiled(module, inputs, watch, device)
        names = [argument.name for argument in arguments(module)]
        printed = self.printed(module, device)
        launches = _launches_of(printed.lowered)
        with device.session(), block_errors():
            kernels = load_kernels(printed.path)
            observer = _Observer(launches, device, watch)
            launch = _observed(kernels, [one.name for one in printed.kernels], observer)
            taken = (
                as_pairs(array) for array in (*(inputs[name] for name in names), *printed.constants)
            )
            given = [device.put(array) for array in taken]
            known = launch.__kwdefaults__ or {}
            own = {k: v for k, v in device.functions().items() if k in known}
            called = _externals(module, device.target, observer)
            own |= {"externals": called} if called else {}
            made = launch(*given, **own)
            kinds = [numpy_dtype(kind.element_type) for kind in outputs(module)]
            results = [made] if len(kinds) == 1 else list(made)
            arrays = tuple(
                from_pairs(device.get(result), dtype)
                for result, dtype in zip(results, kinds, strict=True)
            )
        return Result(arrays, _records(launches))

    def _compiled(
        self, module: ModuleOp, inputs: Mapping[str, Array], watch: Watch, device: Device
    ) -> Result:
        """Run @main where kernels are compiled; each step is waited for, to see what it takes."""
        followed: list[_Following] = []

        def following(program: PrintedProgram) -> Follow:
            followed.append(_Following(program, device, watch))
            return followed[-1]

        run = Ladder(module, self, device)
        arrays = run.on_arrays([inputs[one.name] for one in arguments(module)], following)
        return Result(tuple(arrays), followed[-1].records() if followed else ())


class _Following:
    """Follows the steps of a plan, which are of the launches of its program."""

    def __init__(self, program: PrintedProgram, device: Device, watch: Watch) -> None:
        self._steps = program.plan.steps
        self._launches = _launches_of(program.lowered)
        self._device = device
        self._watch = watch
        watch.total(sum(not isinstance(step, Filling) for step in self._steps))

    def __call__(self, number: int, run: Callable[[], None]) -> None:
        started = perf_counter()
        run()
        self._device.wait()
        step = self._steps[number]
        if not isinstance(step, Filling):
            launch = self._launches[step.source]
            launch.seconds += perf_counter() - started
            self._watch.step(launch.name)

    def records(self) -> tuple[Record, ...]:
        """What each launch operation moved, and how long it took."""
        return _records(self._launches)


def _records(launches: Sequence[_Launch]) -> tuple[Record, ...]:
    return tuple(
        Record(n.name, n.shards, n.bytes_read, n.bytes_written, n.seconds) for n in launches
    )


def _launches_of(lowered: ModuleOp) -> list[_Launch]:
    """The launch operations of @main, in order."""
    return [
        _Launch(
            op.kernel_name if isinstance(op, triton.LaunchOp) else op.function.data,
            len(op.rows),
            op.bytes_read.value.data,
            op.bytes_written.value.data,
        )
        for op in _launches(lowered)
    ]


def _launches(lowered: ModuleOp) -> Iterator[triton.LaunchOp | triton.ExternalOp]:
    """The launches of kernels and calls of functions of @main, in order."""
    for function in lowered.body.block.ops:
        if isinstance(function, func.FuncOp) and function.sym_name.data == MAIN:
            for op in function.body.block.ops:
                if isinstance(op, triton.LaunchOp | triton.ExternalOp):
                    yield op


@dataclass(frozen=True)
class _External:
    """An external kernel as a printed module calls it."""

    op: loom.ExternalOp
    implementation: Implementation
    observer: _Observer

    def __call__(self, ins: Sequence[Any], outs: Sequence[Any], parameters: Parameters) -> None:
        name, location = self.op.callee.data, location_of(self.op)
        self.observer(
            lambda: call_external(name, self.implementation, ins, outs, parameters, location)
        )


def _externals(module: ModuleOp, target: Target, observer: _Observer) -> dict[str, _External]:
    """What a printed module calls for each external kernel of @main."""
    called: dict[str, _External] = {}
    for op in main_function(module).body.block.ops:
        if isinstance(op, loom.ExternalOp) and op.callee.data not in called:
            name = op.callee.data
            called[name] = _External(op, find_external(name, target, location_of(op)), observer)
    return called


def _observed(
    module: ModuleType, kernels: Sequence[str], observer: _Observer
) -> Callable[..., Any]:
    """The module's `launch`, with its kernels followed; the module itself stays as it is."""
    names = vars(module)
    launch = names[ENTRY]
    assert isinstance(launch, FunctionType)
    seen = {name: _Observed(names[name], observer) for name in kernels}
    copy = FunctionType(launch.__code__, {**names, **seen}, ENTRY)
    copy.__kwdefaults__ = launch.__kwdefaults__
    return copy
