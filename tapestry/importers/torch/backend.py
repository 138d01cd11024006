"""The backend of `torch.compile`.

    torch.compile(model, backend="tapestry")
    torch.compile(model, backend="tapestry", options={"on": "triton", "numerics": "fast"})

AOT autograd traces the forward and the backward graph in core ATen; each becomes a program, which
the pipeline rewrites once and an executor runs at every call. A graph that was compiled before is
not traced again, where that can be (`shortcuts`): then none of what compiles is even imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from torch import fx

from tapestry.importers.torch.options import Options
from tapestry.importers.torch.shortcuts import Follower, find_shortcut

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
    shortcut = find_shortcut(graph, inputs, chosen)
    known = None if shortcut is None else shortcut.read()
    if known is not None:
        return known
    from tapestry.importers.torch.compiling import CompiledGraph
    from tapestry.importers.torch.tracing import traced

    number = next(_numbers)
    follower = None if shortcut is None else Follower(shortcut)

    def compile_graph(aten: fx.GraphModule, part: str) -> Callable[[list[Any]], Any]:
        compiled = CompiledGraph(aten, chosen, f"{part}_{number}")
        return compiled if follower is None else follower.part(compiled, part)

    compiled = traced(graph, inputs, compile_graph)
    return compiled if follower is None else follower.whole(compiled)
