"""Random operators that run again with the same numbers, as layers do that are computed twice.

    checkpoint(layer, x, use_reentrant=False)       # with dropout in the layer

PyTorch keeps the state of its generator beside what such an operator gives, and goes back to it
before the operator runs again. Random numbers of a program are a function of seeds, so the state is
those that the operator was given: eight bytes for each.

`with_states_apart` splits the first kind of node into the operator and its state (`state_of`), and
makes the second one the operator alone, with the state in its `meta["replays"]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch import fx
from torch._guards import detect_fake_mode
from xdsl.ir import SSAValue

from tapestry.importers.torch.errors import ImportingError
from tapestry.importers.torch.registry import Context

_operators: Any = torch.ops

_BYTES = 8
"""Those of a seed, an i64."""

_SEEDS = 2
"""How many seeds a state holds; an operator takes one, or another where PyTorch computes it."""

REPLAYS = "replays"
"""Where a node says what state its random numbers are from."""


def state_of(made: object) -> object:
    """Stands in a graph for the state that a random operator was given."""
    raise NotImplementedError("graphs are imported, not run")


def with_states_apart(graph: fx.GraphModule) -> fx.GraphModule:
    """The graph with operators for what saves the state of a generator, or sets it; or as it is."""
    names = ("run_and_save_rng_state", "run_with_rng_state")
    keeps, replays = (getattr(_operators.higher_order, name) for name in names)
    if not any(node.target in (keeps, replays) for node in graph.graph.nodes):
        return graph
    copied = fx.Graph()
    copied.output(copied.graph_copy(graph.graph, {}))
    for node in list(copied.nodes):
        if node.target is keeps:
            _split(copied, node)
        elif node.target is replays:
            made = _called(copied, node, node.args[1:])
            made.meta[REPLAYS] = node.args[0]
            node.replace_all_uses_with(made)
            copied.erase_node(node)
    return fx.GraphModule(graph, copied)


def _split(graph: fx.Graph, node: fx.Node) -> None:
    """Put an operator and its state in the place of what gives both."""
    made = _called(graph, node, node.args)
    with graph.inserting_before(node):
        state = graph.call_function(state_of, (made,))
    for user in list(node.users):
        if user.args[1] == 0:
            # However long PyTorch's is.
            held = cast("torch.Tensor", user.meta["val"]).new_empty(_BYTES * _SEEDS)
            state.meta = user.meta | {"val": held}
        user.replace_all_uses_with(made if user.args[1] else state)
        graph.erase_node(user)
    if not state.users:
        graph.erase_node(state)
    graph.erase_node(node)


def _called(graph: fx.Graph, node: fx.Node, args: Sequence[Any]) -> fx.Node:
    """The operator that is first of some arguments, called with the others."""
    with graph.inserting_before(node):
        made = graph.call_function(args[0], tuple(args[1:]), dict(node.kwargs))
    given: Any = fx.map_arg((made.args, made.kwargs), lambda one: one.meta["val"])
    every = [one.meta.get("val") for one in graph.nodes]
    with cast("AbstractContextManager[object]", detect_fake_mode(every) or nullcontext()):
        made.meta = node.meta | {"val": args[0](*given[0], **given[1])}
    return made


def packed(ctx: Context, seeds: Sequence[SSAValue]) -> SSAValue:
    """The state that holds some seeds."""
    if len(seeds) > _SEEDS:
        raise ImportingError(f"an operator of {len(seeds)} seeds cannot run twice")
    low = ctx.scalar(255, "i64")
    filled = [*seeds, *[ctx.scalar(0, "i64")] * (_SEEDS - len(seeds))]
    cells = [
        ctx.apply("bitwise_and", ctx.apply("shift_right", seed, _places(ctx)), low)
        for seed in filled
    ]
    return ctx.cast(ctx.apply("concat", cells, axis=0), "ui8")


def unpacked(ctx: Context, state: SSAValue, number: int) -> SSAValue:
    """One of the seeds in a state."""
    start = _BYTES * number
    cells = ctx.apply("slice", state, axis=0, start=start, stop=start + _BYTES, step=1)
    return ctx.apply("sum", ctx.apply("shift_left", ctx.cast(cells, "i64"), _places(ctx)), axis=[0])


def _places(ctx: Context) -> SSAValue:
    return ctx.constant(range(0, 8 * _BYTES, 8), "i64")
