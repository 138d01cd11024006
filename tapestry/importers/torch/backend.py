"""The backend of `torch.compile`.

    torch.compile(model, backend="tapestry")
    torch.compile(model, backend="tapestry", options={"on": "triton", "numerics": "fast"})

AOT autograd traces the forward and the backward graph in core ATen; each becomes a program, which
the pipeline rewrites once and an executor runs at every call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.nn.attention import SDPBackend, sdpa_kernel

from tapestry.importers.torch.compiling import CompiledGraph
from tapestry.importers.torch.decompositions import decompositions
from tapestry.importers.torch.options import Options

_numbers = count()


def backend(
    graph: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: dict[str, object] | None = None,
    **_: object,
) -> Callable[..., Any]:
    """Compile a graph of Dynamo's, forward and backward."""
    chosen = Options.of(options or {})
    number = next(_numbers)
    return traced(graph, inputs, lambda aten, part: CompiledGraph(aten, chosen, f"{part}_{number}"))


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
    with sdpa_kernel(SDPBackend.MATH):
        return compiler_of_all(graph, inputs)


def _boxed(compiled: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """A function that says to AOT autograd that its arguments come in a list."""

    def call(given: list[Any]) -> Any:
        return compiled(given)

    vars(call)["_boxed_call"] = True
    return call
