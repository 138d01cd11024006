"""Operators that are run for what they do, and not for a result: assertions, checks, prints.

    torch._assert_async((x > 0).all(), "must be positive")

A program computes values alone, so it returns what such operators take, and PyTorch runs them
when the program is done, in their order: a wrong input is an error as it is without compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx
from torch._higher_order_ops.effects import with_effects
from torch.utils import _pytree

from tapestry.importers.torch.overloads import overload_of

_trees: Any = _pytree


@dataclass(frozen=True)
class Taken:
    """In the arguments of an effect: the tensor at this position among those that effects take."""

    position: int


@dataclass(frozen=True)
class Effect:
    """A call of PyTorch's."""

    call: Callable[..., object]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def happen(self, taken: Sequence[object]) -> None:
        """Call it."""

        def given(leaf: object) -> object:
            return taken[leaf.position] if isinstance(leaf, Taken) else leaf

        args, kwargs = _trees.tree_map(given, (self.args, dict(self.kwargs)))
        self.call(*args, **kwargs)


@dataclass(frozen=True)
class Aftermath:
    """What is done when a program has run: it returned `outputs`, and then what effects take."""

    outputs: int
    effects: tuple[Effect, ...]

    def of(self, made: tuple[object, ...]) -> tuple[object, ...]:
        """The outputs, after the effects happened."""
        for effect in self.effects:
            effect.happen(made[self.outputs :])
        return made[: self.outputs]


_SETTLED = ("aten._assert_tensor_metadata.default",)
"""Checks of what a tensor is, rather than of its cells: a program is made for that."""


class Effects:
    """The effects in a graph.

    `nodes` are those that have one. `taken` are what they take, in the order of the effects; it is
    returned after the outputs of the graph.
    """

    def __init__(self, graph: fx.Graph) -> None:
        self.nodes: set[fx.Node] = set()
        self.taken: list[fx.Node] = []
        self._calls: list[Effect] = []
        for node in graph.nodes:
            self._find(node)

    def after(self, outputs: int) -> Aftermath | None:
        """What is left to do where a graph has so many outputs; None of a graph without effects."""
        return Aftermath(outputs, tuple(self._calls)) if self._calls else None

    def _find(self, node: fx.Node) -> None:
        if node.op != "call_function":
            return
        args, ordered = node.args, node.target is with_effects
        target: object = args[1] if ordered else node.target
        overload = overload_of(target)
        if overload is None or overload.returns or overload.writes:
            return
        self.nodes.add(node)
        if overload.name not in _SETTLED:
            given = (args[2:] if ordered else args, dict(node.kwargs))
            self._calls.append(Effect(overload.call, *_trees.tree_map(self._take, given)))

    def _take(self, leaf: object) -> object:
        if not isinstance(leaf, fx.Node):
            return leaf
        self.taken.append(leaf)
        return Taken(len(self.taken) - 1)


def is_token(node: fx.Node) -> bool:
    """Whether a placeholder stands for the order of effects, and for no tensor.

    An effect that PyTorch keeps in order takes such a token first, and returns the next one.
    """
    return any(user.target is with_effects and user.args[0] is node for user in node.users)
