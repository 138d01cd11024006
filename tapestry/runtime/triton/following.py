"""What is seen of a program while it runs: each launch, how long it takes, and what it moves.

    observer = Observer(launched(lowered), device, watch)
    launch = observed(module, names, observer)      # a printed module's, with its kernels followed

`Following` does the same for the steps of a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from types import FunctionType, ModuleType
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tapestry.codegen.host_printer import ENTRY
from tapestry.codegen.plans import Filling
from tapestry.dialects import loom, triton
from tapestry.locations import location_of
from tapestry.runtime.executor import Record, Watch
from tapestry.runtime.externals import (
    Implementation,
    Parameters,
    Target,
    call_external,
    find_external,
)
from tapestry.runtime.program import ENTRY as MAIN
from tapestry.runtime.program import main_function
from tapestry.runtime.triton.devices import Device, PrintedProgram


@dataclass
class Launched:
    """A launch operation of the host: what it is called, and what its launches took so far."""

    name: str
    shards: int
    bytes_read: int
    bytes_written: int
    seconds: float = 0.0
    done: int = 0


class Observer:
    """Follows the launches of a program, which come in the order of its launch operations."""

    def __init__(self, launches: Sequence[Launched], device: Device, watch: Watch) -> None:
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

    def __init__(self, kernel: Any, observer: Observer) -> None:
        self._kernel = kernel
        self._observer = observer

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*operands: Any, **options: Any) -> None:
            self._observer(lambda: self._kernel[grid](*operands, **options))

        return launch


class Following:
    """Follows the steps of a plan, which are of the launches of its program."""

    def __init__(self, program: PrintedProgram, device: Device, watch: Watch) -> None:
        self._steps = program.plan.steps
        self._launches = launched(program.lowered)
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
        return records_of(self._launches)


def records_of(launches: Sequence[Launched]) -> tuple[Record, ...]:
    return tuple(
        Record(n.name, n.shards, n.bytes_read, n.bytes_written, n.seconds) for n in launches
    )


def launched(lowered: ModuleOp) -> list[Launched]:
    """The launch operations of @main, in order."""
    return [
        Launched(
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
    observer: Observer

    def __call__(self, ins: Sequence[Any], outs: Sequence[Any], parameters: Parameters) -> None:
        name, location = self.op.callee.data, location_of(self.op)
        self.observer(
            lambda: call_external(name, self.implementation, ins, outs, parameters, location)
        )


def observed_externals(
    module: ModuleOp, target: Target, observer: Observer
) -> dict[str, _External]:
    """What a printed module calls for each external kernel of @main."""
    called: dict[str, _External] = {}
    for op in main_function(module).body.block.ops:
        if isinstance(op, loom.ExternalOp) and op.callee.data not in called:
            name = op.callee.data
            called[name] = _External(op, find_external(name, target, location_of(op)), observer)
    return called


def observed(module: ModuleType, kernels: Sequence[str], observer: Observer) -> Callable[..., Any]:
    """The module's `launch`, with its kernels followed; the module itself stays as it is."""
    names = vars(module)
    launch = names[ENTRY]
    assert isinstance(launch, FunctionType)
    seen = {name: _Observed(names[name], observer) for name in kernels}
    copy = FunctionType(launch.__code__, {**names, **seen}, ENTRY)
    copy.__kwdefaults__ = launch.__kwdefaults__
    return copy
