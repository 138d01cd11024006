"""Graphs of Dynamo's, traced to core ATen: forward, backward, or inference alone.

traced(graph, inputs, lambda aten, part: CompiledGraph(aten, options, part))
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx
from torch._C import DispatchKey
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.nn.attention import SDPBackend, sdpa_kernel

from tapestry.importers.torch.apart import APART
from tapestry.importers.torch.decompositions import decompositions


def traced(
    graph: fx.GraphModule,
    inputs: Sequence[Any],
    compile_graph: Callable[[fx.GraphModule, str], Callable[[list[Any]], Any]],
) -> Callable[..., Any]:
    """Trace a graph of Dynamo's to core ATen and compile its parts.

    `compile_graph` makes a function of a list of arguments; it is told which part a graph is:
    `forward`, `backward` or `inference`.
    """

    def compiler(part: str) -> Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]:
        return lambda aten, _: _boxed(compile_graph(aten, part))

    compiler_of_all = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    # Attention is derived from the operators of its definition; the backends' own are opaque.
    with sdpa_kernel(SDPBackend.MATH), _own_gradients():
        return compiler_of_all(graph, inputs)


@contextmanager
def _own_gradients() -> Generator[None]:
    """Differentiate `apart`'s decompositions where PyTorch differentiates its own.

    It takes some operators apart before it asks the table, so that gradients are of their parts.
    """
    given: list[tuple[Any, Callable[..., Any]]] = []
    try:
        for name, function in APART.items():
            packet, overload = name.split(".")
            operator: Any = getattr(getattr(torch.ops.aten, packet), overload)
            if DispatchKey.Autograd in operator.py_kernels:
                given.append((operator, operator.py_kernels.pop(DispatchKey.Autograd)))
                operator.py_impl(DispatchKey.Autograd)(function)
        yield
    finally:
        for operator, function in given:
            del operator.py_kernels[DispatchKey.Autograd]
            operator.py_impl(DispatchKey.Autograd)(function)


def _boxed(compiled: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """A function that says to AOT autograd that its arguments come in a list."""

    def call(given: list[Any]) -> Any:
        return compiled(given)

    vars(call)["_boxed_call"] = True
    return call
