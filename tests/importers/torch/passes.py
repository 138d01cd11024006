"""The graphs of the forward and the backward pass of a function, as the backend divides them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import fx
from torch._functorch.aot_autograd import aot_function
from torch.nn.attention import SDPBackend, sdpa_kernel

from tapestry.importers.torch.decompositions import decompositions
from tapestry.importers.torch.partitioning import partitioned
from tapestry.importers.torch.tracing import own_gradients

Graphs = dict[str, fx.GraphModule]


@contextmanager
def divided(
    function: Callable[..., Any],
    divide: Callable[..., Any] = partitioned,
    *,
    dynamic: bool = False,
) -> Iterator[tuple[Callable[..., Any], Graphs]]:
    """A function to be called and differentiated inside, and the graphs that it has become."""
    found: Graphs = {}

    def keep(name: str) -> Callable[..., Any]:
        return lambda graph, _: found.setdefault(name, graph)

    with sdpa_kernel(SDPBackend.MATH), own_gradients():
        run: Any = aot_function(
            function,
            fw_compiler=keep("forward"),
            bw_compiler=keep("backward"),
            partition_fn=divide,
            decompositions=decompositions(),
            dynamic=dynamic,
        )
        yield run, found
