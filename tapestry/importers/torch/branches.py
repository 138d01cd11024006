"""`torch.cond` as a selection: both branches are computed, and each cell is taken from one of them.

    torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))    # where(x.sum() > 0, sin(x), cos(x))

Legal because operators of a graph are pure, so that what is not chosen is not seen. An operator
with places to read or write refuses those that are not there: in a branch that is not chosen it is
given the first place instead. Not done where a branch does something when it runs, or leaves an
operator to PyTorch: that may refuse what it is given, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import torch
from torch import fx

from tapestry.importers.torch.errors import ImportingError, place_of
from tapestry.importers.torch.locations import location_of_node
from tapestry.importers.torch.overloads import overload_of
from tapestry.importers.torch.registry import find_lowering

_operators: Any = torch.ops

_Rewrite: TypeAlias = "Callable[[object], object]"

_PLACES = ("index", "indices", "target")
"""What PyTorch names arguments that say where to read or write."""

_INTEGERS = (torch.int64, torch.int32)
"""The dtypes that places have."""


def with_branches_selected(graph: fx.GraphModule) -> fx.GraphModule:
    """The graph with no `cond`, or as it is; an ImportingError for one that stays a branch."""
    if not any(_is_branch(node) for node in graph.graph.nodes):
        return graph
    copied = fx.Graph()
    copied.output(copied.graph_copy(graph.graph, {}))
    whole = fx.GraphModule(graph, copied)
    for node in list(copied.nodes):
        if _is_branch(node):
            _select(whole, node)
    for node in reversed(whole.graph.nodes):
        if node.op == "get_attr" and not node.users:
            whole.graph.erase_node(node)
    return whole


def _is_branch(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target is _operators.higher_order.cond


def _select(whole: fx.GraphModule, node: fx.Node) -> None:
    """Put both branches before the node, and what picks from them in its place."""
    condition, chosen, other, given = cast("tuple[Any, fx.Node, fx.Node, Any]", node.args)
    if isinstance(condition, fx.Node) and not isinstance(condition.meta.get("val"), torch.Tensor):
        raise _stays(node, "its condition is a number that only running tells")
    with whole.graph.inserting_before(node):
        if not isinstance(condition, fx.Node):
            made = _inlined(whole, node, chosen if condition else other, given)
        else:
            selection = _Selection(whole.graph, condition, node)
            first = _inlined(whole, node, chosen, given, selection.harmless(when=True))
            second = _inlined(whole, node, other, given, selection.harmless(when=False))
            made = [selection.of(*pair) for pair in zip(first, second, strict=True)]
    for user in list(node.users):
        picked = made[cast(int, user.args[1])]
        if isinstance(picked, fx.Node):
            user.replace_all_uses_with(picked)
            whole.graph.erase_node(user)
        elif user.users:
            raise _stays(node, "a branch returns no tensor")
    whole.graph.erase_node(node)


@dataclass
class _Selection:
    graph: fx.Graph
    condition: fx.Node
    branch: fx.Node

    def of(self, first: object, second: object) -> object:
        """A node of what one of two nodes holds."""
        if not isinstance(first, fx.Node) or not isinstance(second, fx.Node):
            return first if first is second or first == second else None
        where = _operators.aten.where.self
        return self._call(where, (self._scalar(), first, second), first.meta["val"])

    def harmless(self, *, when: bool) -> _Rewrite:
        """Replaces places by the first one unless the condition is `when`."""
        where = _operators.aten.where

        def replaced(places: object) -> object:
            if isinstance(places, list | tuple):
                return [replaced(one) for one in cast("Sequence[object]", places)]
            held = places.meta.get("val") if isinstance(places, fx.Node) else None
            if not isinstance(held, torch.Tensor) or held.dtype not in _INTEGERS:
                return places
            if when:
                return self._call(where.ScalarOther, (self._scalar(), places, 0), held)
            return self._call(where.ScalarSelf, (self._scalar(), 0, places), held)

        return replaced

    def _scalar(self) -> fx.Node:
        """The condition, without dimensions."""
        held = self.condition.meta["val"]
        if not held.ndim:
            return self.condition
        return self._call(_operators.aten.view.default, (self.condition, []), held.reshape(()))

    def _call(self, target: Callable[..., Any], args: tuple[Any, ...], held: object) -> fx.Node:
        made = self.graph.call_function(target, args)
        made.meta = {**self.branch.meta, "val": held}
        return made


def _inlined(
    whole: fx.GraphModule,
    node: fx.Node,
    side: fx.Node,
    given: Sequence[fx.Node],
    harmless: _Rewrite | None = None,
) -> Sequence[object]:
    """What a branch returns, its operators copied to where the graph is being added to.

    `harmless` replaces the places of a branch that may not be chosen.
    """
    path = str(side.target)
    branch = with_branches_selected(cast(fx.GraphModule, whole.get_submodule(path)))
    nodes: list[fx.Node] = list(branch.graph.nodes)
    inputs = [one for one in nodes if one.op == "placeholder"]
    copies: dict[fx.Node, Any] = dict(zip(inputs, given, strict=True))
    for one in nodes:
        if one.op in ("placeholder", "output"):
            continue
        why = _why_it_stays(one)
        if why is not None:
            raise _stays(node, why)
        copies[one] = whole.graph.node_copy(one, copies.__getitem__)
        if one.op == "get_attr":
            copies[one].target = f"{path}.{one.target}"
        elif harmless is not None:
            if _has_no_place(one):
                raise _stays(node, f"a branch has {one.target} of a tensor without cells")
            _with_places(copies[one], harmless)
    found = cast("Sequence[object]", nodes[-1].args[0])
    return [copies[one] if isinstance(one, fx.Node) else one for one in found]


def _has_no_place(node: fx.Node) -> bool:
    """Whether an operator looks places up where there are none: not even the first."""
    overload = overload_of(node.target)
    if overload is None or not {*_PLACES} & {*overload.positional[: len(node.args)], *node.kwargs}:
        return False
    held = (one.meta.get("val") for one in node.all_input_nodes)
    return any(isinstance(one, torch.Tensor) and 0 in one.shape for one in held)


def _with_places(node: fx.Node, rewrite: _Rewrite) -> None:
    """Rewrite the arguments that say where an operator reads or writes."""
    overload = overload_of(node.target)
    names = () if overload is None else overload.positional
    with node.graph.inserting_before(node):
        for place, name in enumerate(names[: len(node.args)]):
            if name in _PLACES:
                node.update_arg(place, cast(Any, rewrite(node.args[place])))
        for name in node.kwargs:
            if name in _PLACES:
                node.update_kwarg(name, cast(Any, rewrite(node.kwargs[name])))


def _why_it_stays(node: fx.Node) -> str | None:
    """What keeps an operator of a branch from running where the branch is not chosen."""
    overload = overload_of(node.target)
    if overload is None:
        return None
    if overload.writes or not overload.returns:
        return f"a branch runs {overload.name} for what it does"
    if find_lowering(overload.name) is None and node.all_input_nodes:
        return f"a branch has {overload.name}, which is PyTorch's to run"
    return None


def _stays(node: fx.Node, why: str) -> ImportingError:
    return ImportingError(
        f"cond cannot be a selection: {why}",
        location=place_of(location_of_node(node)),
        hint="torch._dynamo.config.suppress_errors = True leaves such graphs to PyTorch",
    )
