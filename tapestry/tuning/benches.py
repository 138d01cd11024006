"""Where candidates are measured: a `Bench` builds programs, runs them and says how long they take.

`HostBench` runs them in Triton's interpreter, where outputs are real and times mean nothing of a
GPU: it is what tuning is tested on, with a clock and a stopwatch of its own. `cuda.py` has the one
for a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.dialects.loom import TensorType
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.executor import Array, NoWatch
from tapestry.runtime.program import arguments
from tapestry.runtime.triton.devices import Cpu
from tapestry.runtime.triton.executor import TritonExecutor


class Candidate(Protocol):
    """A program that was built."""

    def outputs(self) -> Sequence[Any]:
        """What it computes, in the form that its bench compares."""
        ...

    def seconds(self) -> float:
        """What a run takes."""
        ...


class Bench(Protocol):
    """What builds, runs and compares candidates; any exception is a problem of the candidate."""

    @property
    def device(self) -> str:
        """What results are filed under."""
        ...

    @property
    def lowering(self) -> LoomToTriton:
        """How programs are lowered there when nothing is tuned."""
        ...

    @property
    def workers(self) -> int:
        """How many programs are compiled at once, while others are measured."""
        ...

    def compile(self, program: ModuleOp) -> None:
        """Have what `build` needs of a program compiled, in a process of its own."""
        ...

    def clock(self) -> float:
        """Seconds since some time."""
        ...

    def build(self, program: ModuleOp) -> Candidate:
        """A program in loom, whose operation has its schedule, ready to run."""
        ...

    def whole(self, program: ModuleOp) -> Candidate:
        """A whole program in loom, ready to run as it does when it is compiled."""
        ...

    def difference(self, outputs: Sequence[Any], wanted: Sequence[Any]) -> float:
        """How far outputs are from others, relative to these; NaN where one has NaN alone."""
        ...

    def works(self) -> bool:
        """Whether more can be measured: some candidates take the GPU's state along."""
        ...


def some_inputs(program: ModuleOp, seed: int = 0) -> dict[str, Array]:
    """Inputs for a program: normal numbers, and for integers 0 and 1, which are places anywhere."""
    generator = np.random.default_rng(seed)
    return {a.name: _cells(a.type, generator) for a in arguments(program)}


def _cells(kind: TensorType, generator: np.random.Generator) -> Array:
    dtype = numpy_dtype(kind.element_type)
    if dtype.kind in "iub":
        return generator.integers(0, 2, kind.box.shape).astype(dtype)
    return generator.standard_normal(kind.box.shape).astype(np.float32).astype(dtype)


def relative_difference(outputs: Sequence[Array], wanted: Sequence[Array]) -> float:
    """The largest distance of an output from what is wanted, relative to its norm.

    >>> relative_difference([np.array([3.0, 4.5])], [np.array([3.0, 4.0])])
    0.1
    """
    found = 0.0
    for output, want in zip(outputs, wanted, strict=True):
        a, b = (np.asarray(one).astype(np.complex128) for one in (output, want))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        a, b = np.where(same, 0, a), np.where(same & ~np.isfinite(b), 0, b)
        a = np.where(same, b, a)
        size = float(np.linalg.norm(b.ravel()))
        apart = float(np.linalg.norm((a - b).ravel()))
        found = max(found, apart / size if size else apart) if apart == apart else float("nan")
        if found != found:
            return found
    return found


@dataclass(frozen=True)
class HostBench:
    """The interpreter; `stopwatch` times a run of a program, `clock` is what budgets are of."""

    stopwatch: Callable[[ModuleOp, Callable[[], None]], float]
    clock: Callable[[], float] = perf_counter
    device: str = "interpreter"
    lowering: LoomToTriton = field(default_factory=LoomToTriton)
    workers: int = 0

    def compile(self, program: ModuleOp) -> None:
        """Nothing is compiled."""

    def build(self, program: ModuleOp) -> Candidate:
        """A program in the interpreter."""
        return _Interpreted(program, self.stopwatch)

    def whole(self, program: ModuleOp) -> Candidate:
        """The same: the interpreter has no device to choose schedules for."""
        return _Interpreted(program, self.stopwatch)

    def difference(self, outputs: Sequence[Any], wanted: Sequence[Any]) -> float:
        """How far outputs are from others."""
        return relative_difference(outputs, wanted)

    def works(self) -> bool:
        """No kernel takes the interpreter along."""
        return True


@dataclass(frozen=True)
class _Interpreted:
    program: ModuleOp
    stopwatch: Callable[[ModuleOp, Callable[[], None]], float]

    def outputs(self) -> Sequence[Array]:
        """What it computes."""
        executor = TritonExecutor(Cpu())
        return executor.run(self.program, some_inputs(self.program), NoWatch()).outputs

    def seconds(self) -> float:
        """What the stopwatch says."""
        return self.stopwatch(self.program, lambda: None)
