"""A plan run by Triton's interpreter, on NumPy arrays of this process.

    run = Interpreted(plan, kernels, specs, externals)
    (y,) = run([x, w])             # HostTensors in, HostTensors out

Temporaries lie in one array, at the places that they have on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tapestry.codegen.launches import Follow
from tapestry.codegen.plans import Buffer, Call, Filling, Launch, Plan, PlanStep, numpy_named
from tapestry.codegen.specs import KernelSpec
from tapestry.runtime.executor import Array
from tapestry.runtime.externals import Parameters
from tapestry.runtime.triton.arrays import HostTensor


class Interpreted:
    """Called with a tensor per input of the plan, it returns one per result.

    `kernels` are functions of Triton's, by name; `externals` what the plan's calls call.
    """

    def __init__(
        self,
        plan: Plan,
        kernels: Mapping[str, Any],
        specs: Sequence[KernelSpec],
        externals: Mapping[str, Callable[[Sequence[Any], Sequence[Any], Parameters], None]],
    ) -> None:
        self._plan = plan
        self._kernels = kernels
        self._options = {spec.name: spec.options for spec in specs}
        self._externals = externals
        self._inputs = sum(buffer.kind == "input" for buffer in plan.buffers)

    def __call__(
        self, inputs: Sequence[HostTensor], *, follow: Follow | None = None
    ) -> list[HostTensor]:
        """The results, on memory of their own, or of an input where they are one.

        `follow` is as in `Launches`.
        """
        plan = self._plan
        arena = np.empty(plan.arena, np.uint8)
        tensors = list(inputs)
        tensors += [HostTensor(_array(one, arena)) for one in plan.buffers[self._inputs :]]
        for number, step in enumerate(plan.steps):
            if follow is None:
                self._step(step, tensors)
            else:
                follow(number, partial(self._step, step, tensors))
        return [tensors[one.buffer].reshape(one.shape) for one in plan.returned]

    def _step(self, step: PlanStep, tensors: Sequence[HostTensor]) -> None:
        match step:
            case Filling():
                array = tensors[step.buffer].array
                array[...] = np.frombuffer(step.cell, array.dtype)[0]
            case Launch():
                given = [tensors[buffer] for buffer in step.buffers]
                kernel = self._kernels[step.kernel][(step.programs,)]
                kernel(*given, *step.numbers, **self._options[step.kernel])
            case Call():
                pairs = zip(step.buffers, step.shapes, strict=True)
                self._call(step, [tensors[one].array.reshape(shape) for one, shape in pairs])

    def _call(self, step: Call, arrays: Sequence[Array]) -> None:
        for row in step.rows:
            parts = boxes(arrays, row)
            call = self._externals[step.function]
            call(parts[: step.inputs], parts[step.inputs :], step.parameters)


def boxes(tensors: Sequence[Any], row: Sequence[int]) -> list[Any]:
    """The part of each tensor between the bounds of its dimensions, which follow one another."""
    parts: list[Any] = []
    place = 0
    for tensor in tensors:
        ends = range(place, place + 2 * len(tensor.shape), 2)
        place = ends.stop
        parts.append(tensor[(..., *(slice(row[at], row[at + 1]) for at in ends))])
    return parts


def _array(buffer: Buffer, arena: Array) -> Array:
    dtype = numpy_named(buffer.dtype)
    if buffer.kind == "temporary":
        held = arena[buffer.offset : buffer.offset + buffer.bytes]
        return held.view(dtype).reshape(buffer.shape)
    if buffer.cells is not None:
        assert buffer.cells.data is not None
        return np.frombuffer(bytearray(buffer.cells.data), dtype).reshape(buffer.shape)
    return np.empty(buffer.shape, dtype)
