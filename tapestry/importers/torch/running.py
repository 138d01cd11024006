"""Programs on tensors: as NumPy arrays on the same memory, or as tensors of a GPU.

run = runner(program, torch.device("cpu"), "numpy", None)
run([torch.ones(2, 3)])         # what the graph returns
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from tapestry.algebra.dtypes import is_complex
from tapestry.diagnostics import UsageError
from tapestry.importers.torch.calling import OnArrays, Runner, drawn
from tapestry.importers.torch.errors import ImportingError, place_of
from tapestry.importers.torch.locations import location_of_node
from tapestry.importers.torch.memory import Returning, Tensors
from tapestry.importers.torch.products import LIBRARY
from tapestry.importers.torch.program import Program
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.program import arguments, outputs

if TYPE_CHECKING:
    from tapestry.runtime.prepared.kernels import PreparedKernels


def device_of(graph: fx.GraphModule) -> torch.device:
    """Where a graph's tensors are: the CPU, or one GPU (beside it, some may be on the CPU)."""
    found: dict[torch.device, fx.Node] = {}
    for node in graph.graph.nodes:
        held = node.meta.get("val")
        parts = cast("Sequence[object]", held if isinstance(held, list | tuple) else (held,))
        for part in parts:
            if isinstance(part, torch.Tensor):
                found.setdefault(part.device, node)
    others = [device for device in found if device.type != "cpu"]
    unknown = [device for device in others if device.type != "cuda"]
    if unknown:
        place = place_of(location_of_node(found[unknown[0]]))
        message = f"there are no programs on {unknown[0]}"
        raise ImportingError(message, location=place, hint="use the CPU or CUDA")
    if len(others) > 1:
        names = " and ".join(map(str, others))
        place = place_of(location_of_node(found[others[1]]))
        message = f"tensors are on {names}"
        raise ImportingError(message, location=place, hint="a program runs on one device")
    return others[0] if others else torch.device("cpu")


def runner(
    program: Program,
    device: torch.device,
    on: str,
    numerics: str | None,
    *,
    graphs: bool = False,
    fallback: bool = True,
) -> Runner:
    """A lowered program on tensors of a device; `graphs` and `fallback` are the executor's."""
    if device.type != "cpu" and on != "triton":
        raise UsageError(
            f"the executor {on} runs on the CPU, and tensors are on {device}",
            hint="leave out `on`, or move model and inputs with .cpu()",
        )
    if on == "numpy":
        return OnArrays(program.ends, PreparedProgram(program.module, LIBRARY))
    if on == "triton":
        # What lowers to Triton takes a while to import.
        from tapestry.runtime.prepared.kernels import PreparedKernels
        from tapestry.runtime.triton.devices import Gpu
        from tapestry.runtime.triton.executor import TritonExecutor

        where = None if device.type == "cpu" else Gpu(torch, device.index)
        executor = TritonExecutor(
            where,
            numerics=numerics or TritonExecutor.numerics,
            fallback=fallback,
            graphs=graphs,
        )
        # PyTorch compiles with tensors that have no cells; constants on a GPU need theirs.
        with unset_fake_temporarily():
            kernels = PreparedKernels(program.module, executor)
        if device.type == "cpu":
            return OnArrays(program.ends, kernels)
        return on_tensors(program, kernels, device)
    names = [argument.name for argument in arguments(program.module)]

    def run(inputs: Sequence[Array]) -> Sequence[Array]:
        named = dict(zip(names, inputs, strict=True))
        return find_executor(on).run(program.module, named, NoWatch()).outputs

    return OnArrays(program.ends, run)


def on_tensors(program: Program, kernels: PreparedKernels, device: torch.device) -> Runner:
    """Kernels on a device's own tensors."""
    from tapestry.runtime.triton.compiled import GpuError

    returned = Returning(program.outputs, Tensors())
    kinds = [kind.element_type for kind in outputs(program.module)]

    def call(given: Sequence[Any]) -> tuple[object, ...]:
        tensors = [given[position] for position in program.arguments]
        if program.seeds:
            with torch.cuda.device(device):
                captured = torch.cuda.is_current_stream_capturing()
            if captured:
                raise GpuError(
                    "a CUDA graph would hold one draw of random numbers, and repeat it",
                    hint="capture the model without what draws (.eval() leaves out dropout)",
                )
            tensors += drawn(program.seeds)
        inputs = [_ready(tensor, device) for tensor in tensors]
        made = zip(kernels.launch(inputs), kinds, strict=True)
        results = [torch.view_as_complex(r) if is_complex(kind) else r for r, kind in made]
        return returned(given, inputs, results)

    return call


def _ready(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor as kernels take it: there, contiguous, as it says, complex numbers as pairs."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_neg():  # negated when it is read
        tensor = tensor.resolve_neg()
    if tensor.device != device:
        small = tensor.device.type == "cpu" and tensor.dim() == 0 and tensor.itemsize in _BITS
        tensor = _filled(tensor, device) if small else tensor.to(device)
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj().contiguous())
    return tensor if tensor.is_contiguous() else tensor.contiguous()


_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integers of as many bytes."""


def _filled(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A number of the CPU's on a device, by a kernel that is given it: the host waits for a copy.

    So it may also be captured, as PyTorch's own kernels are given such numbers.
    """
    bits, kind = _BITS[tensor.itemsize], tensor.dtype
    number = tensor.resolve_conj().view(bits).item()
    return torch.full((), number, dtype=bits, device=device).view(kind)
