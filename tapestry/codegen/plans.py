"""What a host function does, as data: a list of launches, and where each buffer lies.

For two maps one after another, `plan_of` (in `planning.py`) makes

    buffers    x: input, h: temporary at 0, y: output; an arena of 256 bytes
    steps      twice over 4 programs on x, h; relu over 4 programs on h, y
    returned   y

All that depends on shapes alone is found out before the first call: grids, shards, and how long
temporaries live, so that they share bytes of the arena. `Launches` of `loader.py` runs a plan on a
GPU, `Interpreted` of `tapestry.runtime.triton.interpreting` on the CPU. `as_json` is what the
manifest of a compiled folder holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal, TypeAlias

import ml_dtypes
import numpy as np

from tapestry.arena import Life, lives, place

Kind: TypeAlias = Literal["input", "output", "constant", "temporary"]


@dataclass(frozen=True)
class Cells:
    """What a constant holds: little-endian bytes, or an array of a file beside the program."""

    data: bytes | None = None
    file: str | None = None
    entry: str | None = None


@dataclass(frozen=True)
class Buffer:
    """A row-major buffer of a program; `offset` is a temporary's place in the arena."""

    kind: Kind
    dtype: str
    shape: tuple[int, ...]
    name: str = ""
    cells: Cells | None = None
    offset: int = 0

    @property
    def bytes(self) -> int:
        """How many bytes its cells take."""
        return prod(self.shape) * numpy_named(self.dtype).itemsize


@dataclass(frozen=True)
class Launch:
    """A kernel on some programs; it takes buffers, then numbers.

    `operation` is what it computes, for messages; `scratch` the buffer of memory that the kernel
    asks for itself; `source` the number of the host's operation that it is from.
    """

    kernel: str
    programs: int
    buffers: tuple[int, ...]
    numbers: tuple[int, ...] = ()
    operation: str = ""
    scratch: int | None = None
    source: int = 0


@dataclass(frozen=True)
class Filling:
    """Every cell of a buffer becomes the one with these bytes."""

    buffer: int
    cell: bytes


@dataclass(frozen=True)
class Call:
    """A function that is given to the program, on a box of each buffer per row of `rows`.

    Boxes are of the buffers' cells under `shapes`, which an alias may give them. `source` is as in
    `Launch`.
    """

    function: str
    buffers: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    rows: tuple[tuple[int, ...], ...]
    inputs: int
    parameters: Mapping[str, Any]
    source: int = 0


PlanStep: TypeAlias = Launch | Filling | Call


@dataclass(frozen=True)
class Returned:
    """A result: the cells of a buffer under some shape."""

    buffer: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """Buffers (inputs first, in order), steps, and what is returned.

    `arena` is the bytes that temporaries take together, once they are `placed`.
    """

    buffers: tuple[Buffer, ...]
    steps: tuple[PlanStep, ...]
    returned: tuple[Returned, ...]
    arena: int = 0

    @property
    def launches(self) -> list[Launch]:
        """The launches of kernels, in order."""
        return [step for step in self.steps if isinstance(step, Launch)]

    @property
    def temporaries(self) -> int:
        """The bytes that temporaries would take without sharing any."""
        return sum(one.bytes for one in self.buffers if one.kind == "temporary")

    def placed(self, scratch: Mapping[str, int] | None = None) -> Plan:
        """The plan with temporaries in one arena.

        `scratch` is the bytes that each program of a kernel asks for; launches of kernels with any
        get a temporary of their own.
        """
        steps, buffers = list(self.steps), list(self.buffers)
        for number, step in enumerate(steps):
            if isinstance(step, Launch) and (scratch or {}).get(step.kernel, 0) > 0:
                size = (scratch or {})[step.kernel] * step.programs
                steps[number] = replace(step, scratch=len(buffers))
                buffers.append(Buffer("temporary", "uint8", (size,), f"scratch of {step.kernel}"))
        touched = [((), _touched(step)) for step in steps]
        over = lives(touched, [one.buffer for one in self.returned])
        sizes = {
            number: buffer.bytes
            for number, buffer in enumerate(buffers)
            if buffer.kind == "temporary" and number in over
        }
        arena = place(sizes, over)
        placed = [
            replace(buffer, offset=arena.offsets.get(number, 0))
            for number, buffer in enumerate(buffers)
        ]
        return replace(self, buffers=tuple(placed), steps=tuple(steps), arena=arena.size)

    def lives(self) -> dict[int, Life]:
        """The steps at which each buffer that is touched is needed."""
        touched = [((), _touched(step)) for step in self.steps]
        return lives(touched, [one.buffer for one in self.returned])

    def as_json(self) -> dict[str, Any]:
        """The plan as plain JSON."""
        return {
            "arena": self.arena,
            "buffers": [_buffer_json(buffer) for buffer in self.buffers],
            "steps": [_step_json(step) for step in self.steps],
            "returned": [{"buffer": r.buffer, "shape": list(r.shape)} for r in self.returned],
        }


def numpy_named(dtype: str) -> np.dtype[Any]:
    """NumPy's dtype of a name that PyTorch has too."""
    return np.dtype(getattr(ml_dtypes, dtype, dtype))


def _touched(step: PlanStep) -> Sequence[int]:
    match step:
        case Filling():
            return (step.buffer,)
        case Launch():
            return step.buffers if step.scratch is None else (*step.buffers, step.scratch)
        case Call():
            return step.buffers


def _buffer_json(buffer: Buffer) -> dict[str, Any]:
    made: dict[str, Any] = {
        "kind": buffer.kind,
        "dtype": buffer.dtype,
        "shape": list(buffer.shape),
        "bytes": buffer.bytes,
    }
    if buffer.kind == "temporary":
        made["offset"] = buffer.offset
    if buffer.cells is not None and buffer.cells.data is not None:
        made["hex"] = buffer.cells.data.hex()
    elif buffer.cells is not None:
        made |= {"file": buffer.cells.file, "entry": buffer.cells.entry}
    return made


def _step_json(step: PlanStep) -> dict[str, Any]:
    match step:
        case Filling():
            return {"fill": step.buffer, "cell": step.cell.hex()}
        case Launch():
            made = {
                "kernel": step.kernel,
                "programs": step.programs,
                "buffers": list(step.buffers),
                "numbers": list(step.numbers),
                "operation": step.operation,
            }
            return made if step.scratch is None else made | {"scratch": step.scratch}
        case Call():
            return {
                "call": step.function,
                "buffers": list(step.buffers),
                "shapes": [list(shape) for shape in step.shapes],
                "rows": [list(row) for row in step.rows],
                "inputs": step.inputs,
                "parameters": dict(step.parameters),
            }
