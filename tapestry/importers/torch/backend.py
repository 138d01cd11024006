"""The backend of `torch.compile`.

    torch.compile(model, backend="tapestry")
    torch.compile(model, backend="tapestry", options={"on": "triton", "numerics": "fast"})

AOT autograd traces the forward and the backward graph in core ATen; each becomes a program, which
the pipeline rewrites once and an executor runs at every call. A graph that was compiled before,
gradients and all, is not traced again, where that can be (`shortcuts`): then none of what compiles
is even imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from torch import fx

from tapestry.importers.torch.collecting import pass_by
from tapestry.importers.torch.options import Options
from tapestry.importers.torch.shortcuts import Follower, Shortcut, find_shortcut

_numbers = count()


def backend(
    graph: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: dict[str, object] | None = None,
    **_: object,
) -> Callable[..., Any]:
    """Compile a graph of Dynamo's, forward and backward."""
    pass_by()
    chosen = Options.of(options or {})
    known_as = getattr(graph, "_backend_id", None)
    shortcut = find_shortcut(graph, inputs, chosen)
    known = None if shortcut is None else shortcut.read()
    if shortcut is not None and known is not None:
        _record(known_as, shortcut)
        return known
    from tapestry.importers.torch.compiling import CompiledGraph
    from tapestry.importers.torch.tracing import seen_results, traced

    number = next(_numbers)
    follower = None
    if shortcut is not None:
        follower = Follower(shortcut, lambda: _record(known_as, shortcut))

    def compile_graph(aten: fx.GraphModule, part: str) -> Callable[[list[Any]], Any]:
        # With gradients, PyTorch makes views of results itself, and merges results that are equal.
        views = part == "inference"
        compiled = CompiledGraph(
            aten, chosen, f"{part}_{number}", views=views, seen=seen_results(part)
        )
        return compiled.function if follower is None else follower.part(compiled, part, aten)

    compiled = traced(graph, inputs, compile_graph)
    return compiled if follower is None else follower.whole(compiled)


def _record(name: object, shortcut: Shortcut) -> None:
    """Tell PyTorch of a graph that is kept, where it keeps what Dynamo made: it has a name then."""
    if isinstance(name, str):
        from tapestry.importers.torch.precompiled import record

        record(name, shortcut)
