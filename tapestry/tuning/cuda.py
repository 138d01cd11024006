"""A bench on a GPU, through PyTorch: kernels compiled ahead of time, timed by events.

    bench = CudaBench(torch, LoomToTriton(device="h200"))

Candidates are compiled in as many processes as there are cores, while others are measured. A time
is the median of many runs, whose inputs take turns so that they are not all in the L2.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.codegen.aot import compile_kernels
from tapestry.codegen.driver import Cuda, LoadError
from tapestry.codegen.module_files import write_module
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.planning import plan_of
from tapestry.codegen.refusals import find_refusals
from tapestry.dialects.loom import TensorType
from tapestry.passes.triton.loom_to_triton import NO_DEVICE, LoomToTriton
from tapestry.passes.triton.schedules.choosing import never
from tapestry.runtime.constants import as_arguments
from tapestry.runtime.program import arguments, main_function
from tapestry.runtime.triton.compiled import compiled_launches
from tapestry.runtime.triton.devices import Gpu
from tapestry.runtime.triton.executor import TritonExecutor
from tapestry.runtime.triton.ladder import Ladder
from tapestry.store import find_store
from tapestry.tuning.benches import Candidate

PAST_L2: Final = 200 << 20
"""Bytes of inputs that take turns: several times the L2 of any device."""

REPEATS: Final = 30
LEAST: Final = 10
"""Runs that are timed, at most and at least."""

ENOUGH: Final = 0.3
"""Seconds of timing after which no more runs than the least are timed."""

_MOST_WORKERS: Final = 16
"""Processes that compile at once, at most: each takes some hundred megabytes."""

_LONGEST_COMPILATION: Final = 60.0
"""Seconds of a processor after which a candidate is not worth compiling: others take a few."""

WARM: Final = 0.03
"""Seconds of work before it is timed, after which clocks are what they are under load."""

TOGETHER: Final = 1e-3
MOST_CALLS: Final = 64
"""A graph of calls takes so many seconds, or has so many calls, about."""


def median_seconds(
    torch: Any, calls: Sequence[Callable[[], object]], repeats: int = REPEATS
) -> float:
    """The median seconds of calls, which take turns, on the GPU."""
    started = perf_counter()
    for call in calls:
        call()
    torch.cuda.synchronize()
    each = (perf_counter() - started) / len(calls)
    count = max(LEAST, min(repeats, int(ENOUGH / max(each, 1e-9))))
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
    for number, (start, end) in enumerate(events):
        start.record()
        calls[number % len(calls)]()
        end.record()
    torch.cuda.synchronize()
    return float(median(start.elapsed_time(end) for start, end in events)) / 1e3


def sustained_seconds(
    torch: Any, calls: Sequence[Callable[[], object]], repeats: int = REPEATS
) -> float:
    """The seconds of a call where many follow each other: a graph of calls, which take turns.

    So what the host takes to launch does not count. What cannot be recorded is timed as it is.
    """
    once = median_seconds(torch, calls, LEAST)
    count = len(calls) * max(1, -(-int(TOGETHER / max(once, 1e-9)) // len(calls)))
    count = min(count, len(calls) * -(-MOST_CALLS // len(calls)))
    try:
        graph = torch.cuda.CUDAGraph()
        # A capture that fails leaves PyTorch on the stream of the capture.
        before = torch.cuda.stream(torch.cuda.current_stream())
        # Other threads may do what they like: they compile, meanwhile.
        with before, torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for number in range(count):
                calls[number % len(calls)]()
    except (RuntimeError, LoadError):
        torch.cuda.synchronize()
        return once
    end = perf_counter() + WARM
    while perf_counter() < end:
        graph.replay()
        torch.cuda.synchronize()
    return median_seconds(torch, [graph.replay], repeats) / count


def turns(size: int) -> int:
    """How many sets of inputs of some bytes take turns."""
    return 1 + min(8, PAST_L2 // max(1, size))


@dataclass(frozen=True)
class CudaBench:
    """The GPU that PyTorch uses."""

    torch: Any
    lowering: LoomToTriton
    clock: Callable[[], float] = perf_counter

    @property
    def device(self) -> str:
        """The GPU's name."""
        return str(self.torch.cuda.get_device_name())

    @property
    def workers(self) -> int:
        """As many as there are cores but one, which launches."""
        return max(1, min(_MOST_WORKERS, (os.cpu_count() or 1) - 1))

    def whole(self, program: ModuleOp) -> Candidate:
        """A program as the executor runs it, made for the device that the bench lowers for."""
        device = _Named(self.torch, self.lowering.device)
        executor = TritonExecutor(device, numerics=self.lowering.numerics, fallback=False)
        return _OnGpu(self.torch, Ladder(program, executor, device), program)

    def compile(self, program: ModuleOp) -> None:
        """Compile a program's kernels to where `build` finds them; CompileError if Triton won't."""
        printed = print_module(self._lowered(program))
        major, minor = self.torch.cuda.get_device_capability()
        store = find_store("aot")
        compile_kernels(
            write_module(printed.source),
            printed.kernels,
            targets=(10 * major + minor,),
            cache=None if store is None else store.folder,
            seconds=_LONGEST_COMPILATION,
        )

    def build(self, program: ModuleOp) -> Candidate:
        """A program compiled, or found compiled, and loaded."""
        lowered = self._lowered(program)
        printed = print_module(lowered)
        path, plan = write_module(printed.source), plan_of(lowered, printed.kernels).placed()
        return _OnGpu(
            self.torch, compiled_launches(path, printed.kernels, plan, Cuda(), {}), program
        )

    def _lowered(self, program: ModuleOp) -> ModuleOp:
        device, lowered = self.lowering.device, program.clone()
        constants = as_arguments(main_function(lowered))
        assert not constants, "an operation alone has inputs, no constants"
        refused = never if device == NO_DEVICE else find_refusals(device)
        self.lowering.settled.lower(Context(), lowered, refused=refused)
        return lowered

    def works(self) -> bool:
        """Whether the GPU still does what it is asked."""
        try:
            self.torch.cuda.synchronize()
        except RuntimeError:
            return False
        return True

    def difference(self, outputs: Sequence[Any], wanted: Sequence[Any]) -> float:
        """How far outputs are from others."""
        found = 0.0
        for output, want in zip(outputs, wanted, strict=True):
            a, b = output.double(), want.double()
            same = (a == b) | (a.isnan() & b.isnan())
            apart = (a - b).masked_fill(same, 0.0).norm()
            size = b.masked_fill(~b.isfinite(), 0.0).norm().clamp_min(1e-30)
            distance = float(apart / size)
            if distance != distance:
                return distance
            found = max(found, distance)
        return found


class _Named(Gpu):
    """The GPU, as a device of a name: its own, where it is known."""

    def __init__(self, torch: Any, name: str) -> None:
        super().__init__(torch)
        self._name = name

    @property
    def model(self) -> str:
        """The device that schedules are chosen for."""
        return self._name


@dataclass(frozen=True)
class _OnGpu:
    torch: Any
    launch: Callable[[Sequence[Any]], Sequence[Any]]
    program: ModuleOp

    def outputs(self) -> Sequence[Any]:
        """What it computes of the first set of inputs."""
        return self.launch(self._inputs(0))

    def seconds(self) -> float:
        """The median of many runs."""
        first = self._inputs(0)
        size = sum(one.numel() * one.element_size() for one in first)
        sets = [first, *(self._inputs(seed) for seed in range(1, turns(size)))]
        return sustained_seconds(self.torch, [lambda one=one: self.launch(one) for one in sets])

    def _inputs(self, seed: int) -> list[Any]:
        generator = self.torch.Generator(device="cuda").manual_seed(seed)
        return [self._cells(a.type, generator) for a in arguments(self.program)]

    def _cells(self, kind: TensorType, generator: Any) -> Any:
        """Normal numbers, and for integers 0 and 1, which are places anywhere."""
        dtype = numpy_dtype(kind.element_type)
        options = {"generator": generator, "device": "cuda"}
        if dtype.kind == "c":
            # Kernels take pairs of real numbers.
            real = getattr(self.torch, f"float{4 * dtype.itemsize}")
            return self.torch.randn((*kind.box.shape, 2), **options).to(real)
        wanted = getattr(self.torch, dtype.name)
        if dtype.kind in "iub":
            return self.torch.randint(0, 2, kind.box.shape, **options).to(wanted)
        return self.torch.randn(kind.box.shape, **options).to(wanted)
