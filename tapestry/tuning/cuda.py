"""A bench on a GPU, through PyTorch: kernels compiled by Triton, timed by events.

A time is the median of many runs, whose inputs take turns so that they are not all in the L2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, Final, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.codegen.host_printer import ENTRY
from tapestry.codegen.module_printer import print_module
from tapestry.dialects.loom import TensorType
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.constants import as_arguments
from tapestry.runtime.program import arguments, main_function
from tapestry.runtime.triton_module import load_kernels, write_module
from tapestry.tuning.benches import Candidate

PAST_L2: Final = 200 << 20
"""Bytes of inputs that take turns: several times the L2 of any device."""

REPEATS: Final = 30
LEAST: Final = 10
"""Runs that are timed, at most and at least."""

ENOUGH: Final = 0.3
"""Seconds of timing after which no more runs than the least are timed."""

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
        with torch.cuda.graph(graph):
            for number in range(count):
                calls[number % len(calls)]()
    except RuntimeError:
        torch.cuda.synchronize()
        return once
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

    def build(self, program: ModuleOp) -> Candidate:
        """A program compiled by Triton; its first run compiles."""
        lowered = program.clone()
        constants = as_arguments(main_function(lowered))
        assert not constants, "an operation alone has inputs, no constants"
        self.lowering.apply(Context(), lowered)
        path = write_module(print_module(lowered).source)
        return _OnGpu(self.torch, vars(load_kernels(path))[ENTRY], program)

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


@dataclass(frozen=True)
class _OnGpu:
    torch: Any
    launch: Callable[..., Any]
    program: ModuleOp

    def outputs(self) -> Sequence[Any]:
        """What it computes of the first set of inputs."""
        made = self.launch(*self._inputs(0))
        return cast("Sequence[Any]", made) if isinstance(made, tuple | list) else [made]

    def seconds(self) -> float:
        """The median of many runs."""
        first = self._inputs(0)
        size = sum(one.numel() * one.element_size() for one in first)
        sets = [first, *(self._inputs(seed) for seed in range(1, turns(size)))]
        return sustained_seconds(self.torch, [lambda one=one: self.launch(*one) for one in sets])

    def _inputs(self, seed: int) -> list[Any]:
        generator = self.torch.Generator(device="cuda").manual_seed(seed)
        return [self._cells(a.type, generator) for a in arguments(self.program)]

    def _cells(self, kind: TensorType, generator: Any) -> Any:
        """Normal numbers, and for integers 0 and 1, which are places anywhere."""
        dtype = numpy_dtype(kind.element_type)
        wanted = getattr(self.torch, dtype.name)
        options = {"generator": generator, "device": "cuda"}
        if dtype.kind in "iub":
            return self.torch.randint(0, 2, kind.box.shape, **options).to(wanted)
        return self.torch.randn(kind.box.shape, **options).to(wanted)
