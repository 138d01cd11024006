"""@main as Triton kernels that are lowered, compiled and loaded once, and a list of launches.

call = PreparedKernels(module)
(y,) = call([x, w])                # NumPy arrays, copied to the device and back
(y,) = call.launch([x, w])         # the device's own tensors, contiguous
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.runtime.executor import Array
from tapestry.runtime.ladder import Ladder
from tapestry.runtime.program import outputs
from tapestry.runtime.triton_arrays import as_pairs, from_pairs
from tapestry.runtime.triton_assertions import block_errors
from tapestry.runtime.triton_executor import Device, TritonExecutor, find_device


class PreparedKernels:
    """@main of a module in loom, on the triton executor; `executor` has its options.

    Launches are not waited for, nor followed.
    """

    def __init__(self, module: ModuleOp, executor: TritonExecutor | None = None) -> None:
        executor = executor or TritonExecutor()
        self._device: Device = executor.device or find_device()
        self._run = Ladder(module, executor, self._device)
        self._kinds = [numpy_dtype(kind.element_type) for kind in outputs(module)]

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs, from an array per argument."""
        made = self.launch([self._device.put(as_pairs(array)) for array in inputs])
        pairs = zip(made, self._kinds, strict=True)
        return [from_pairs(self._device.get(result), dtype) for result, dtype in pairs]

    def launch(self, tensors: Sequence[Any]) -> list[Any]:
        """The outputs on the device, from tensors there; complex numbers are pairs."""
        with self._device.session(), block_errors():
            return self._run(tensors)
