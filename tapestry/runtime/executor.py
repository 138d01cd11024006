"""What an executor is, what it returns, and what it reports.

executor = find_executor("numpy")
result = executor.run(module, {"x": images, "w": weights}, NoWatch())
result.outputs          # one array per result of @main
result.records          # what ran: operation or kernel, shards, bytes, seconds
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from tapestry.diagnostics import UsageError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

Array = NDArray[Any]

EXECUTORS = ("reference", "numpy", "triton")
"""The executors by name."""


@dataclass(frozen=True)
class Record:
    """One operation or kernel that ran: on how many shards, what it moved, how long it took."""

    name: str
    shards: int
    bytes_read: int
    bytes_written: int
    seconds: float


@dataclass(frozen=True)
class Result:
    """The outputs of @main, in order, and a record per operation or kernel that ran."""

    outputs: tuple[Array, ...]
    records: tuple[Record, ...]


class Watch(Protocol):
    """Follows a run: `total` is called once, `step` after each shard or launch."""

    def total(self, steps: int) -> None: ...

    def step(self, name: str) -> None: ...


class NoWatch:
    """Follows nothing."""

    def total(self, steps: int) -> None:
        """Ignore how long the run is."""

    def step(self, name: str) -> None:
        """Ignore a step."""


class Executor(Protocol):
    """Runs @main of a module.

    `inputs` are keyed by argument name; arrays have the argument's shape and dtype exactly
    (`check_inputs` of `tapestry.runtime.program` makes sure).
    """

    @property
    def name(self) -> str: ...

    def run(self, module: ModuleOp, inputs: Mapping[str, Array], watch: Watch) -> Result: ...


def find_executor(name: str) -> Executor:
    """The executor called `name`; UsageError when there is none."""
    if name == "reference":
        from tapestry.runtime.reference import ReferenceExecutor

        return ReferenceExecutor()
    if name == "numpy":
        from tapestry.runtime.numpy_executor import NumpyExecutor

        return NumpyExecutor()
    if name == "triton":
        from tapestry.runtime.triton.executor import TritonExecutor

        return TritonExecutor()
    raise UsageError(f"there is no executor {name!r}", hint=f"one of {', '.join(EXECUTORS)}")
