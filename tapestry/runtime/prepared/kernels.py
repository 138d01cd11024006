"""@main as Triton kernels that are lowered, compiled and loaded once, and a list of launches.

call = PreparedKernels(module)
(y,) = call([x, w])                # NumPy arrays, copied to the device and back
(y,) = call.launch([x, w])         # the device's own tensors, contiguous
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tapestry.runtime.executor import Array
from tapestry.runtime.triton.assertions import block_errors
from tapestry.runtime.triton.compiled import gpu_errors
from tapestry.runtime.triton.devices import Device, find_device
from tapestry.runtime.triton.executor import TritonExecutor
from tapestry.runtime.triton.ladder import Ladder


class PreparedKernels:
    """@main of a module in loom, on the triton executor; `executor` has its options.

    Launches are not waited for, nor followed.
    """

    def __init__(self, module: ModuleOp, executor: TritonExecutor | None = None) -> None:
        executor = executor or TritonExecutor()
        self._device: Device = executor.device or find_device()
        self._run = Ladder(module, executor, self._device)

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs, from an array per argument."""
        return self._run.on_arrays(inputs)

    def launch(self, tensors: Sequence[Any]) -> list[Any]:
        """The outputs on the device, from tensors there; complex numbers are pairs."""
        with self._device.session(), block_errors(), gpu_errors():
            return self._run(tensors)
