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
from torch._guards import TracingContext
from torch.nn.attention import SDPBackend, sdpa_kernel

from tapestry.importers.torch.apart import APART, WITH_GRADIENTS
from tapestry.importers.torch.decompositions import decompositions
from tapestry.importers.torch.partitioning import partitioned

_core: Any = vars(torch)["_C"]
_below_gradients: Callable[[], Any] = _core._AutoDispatchBelowAutograd  # noqa: SLF001


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
        partition_fn=partitioned,
    )
    # Attention is derived from the operators of its definition; the backends' own are opaque.
    with sdpa_kernel(SDPBackend.MATH), own_gradients():
        return compiler_of_all(graph, inputs)


@contextmanager
def own_gradients() -> Generator[None]:
    """Differentiate `apart`'s decompositions where PyTorch differentiates its own.

    It takes some operators apart before it asks the table, so that gradients are of their parts.
    """
    given: list[tuple[Any, Callable[..., Any] | None]] = []
    key = DispatchKey.Autograd
    try:
        for name, function in APART.items():
            packet, overload = name.split(".")
            operator: Any = getattr(getattr(torch.ops.aten, packet), overload)
            if key in operator.py_kernels or name in WITH_GRADIENTS:
                given.append((operator, operator.py_kernels.pop(key, None)))
                operator.py_impl(key)(_or_whole(operator, function))
        yield
    finally:
        for operator, function in given:
            del operator.py_kernels[key]
            if function is None:
                operator._dispatch_cache.clear()  # noqa: SLF001 (what `py_impl` does)
            else:
                operator.py_impl(key)(function)


def _or_whole(operator: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition that leaves an operator as it is, without gradients, where it has none."""

    def run(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        if made is not NotImplemented:
            return made
        with _below_gradients():
            return operator(*args, **kwargs)

    return run


def _boxed(compiled: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """A function that says to AOT autograd that its arguments come in a list."""

    def call(given: list[Any]) -> Any:
        return compiled(given)

    vars(call)["_boxed_call"] = True
    return call


def seen_results(part: str) -> int | None:
    """How many results of a part that is being compiled users see first, None for all.

    After those of a forward graph it returns what is kept for the backward one, whose gradients
    PyTorch lays as it wants them.
    """
    if part == "inference":
        return None
    if part == "backward":
        return 0
    context: Any = TracingContext.try_get()
    known = None if context is None else context.fw_metadata
    return None if known is None else known.num_forward
