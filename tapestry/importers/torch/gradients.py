"""A graph with gradients as two programs, and what autograd is told of them.

    call = differentiable(forward, backward, Division(results=1, gradients=(0,)))
    (loss,) = call(x, weight)
    loss.backward()                     # runs `backward`

The forward program returns the graph's results, and after these what the backward program takes:
tensors, which autograd keeps, and watches for changes. The backward program takes them, and the
gradients of those results that have one; it returns one per input, None where there is none.
"""

# ruff: noqa: SLF001 (PyTorch says some of it under private names alone)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tapestry.importers.torch.calling import Runner

_pytorch: Any = torch


@dataclass(frozen=True)
class Division:
    """How many results a graph has, and the positions of those with gradients."""

    results: int
    gradients: tuple[int, ...]


def differentiable(forward: Runner, backward: Runner, division: Division) -> Callable[..., Any]:
    """The graph as a function of its inputs, without aliases of these among its results.

    A gradient has no gradient: RuntimeError where one is asked for.
    """
    count, differing = division.results, frozenset(division.gradients)

    class Compiled(_Function):
        @staticmethod
        def forward(ctx: Any, *given: Any) -> tuple[object, ...]:
            made = forward(given)
            results, kept = made[:count], made[count:]
            plain = [one for n, one in enumerate(results) if n not in differing]
            ctx.mark_non_differentiable(*(one for one in plain if isinstance(one, torch.Tensor)))
            # A view would keep all of the memory that it is of alive.
            ctx.save_for_backward(*map(_own, kept))
            return results

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            if _pytorch._C._functorch.peek_interpreter_stack() is not None:
                raise RuntimeError(
                    "the gradient of a compiled graph cannot be transformed (vmap, grad, vjp): "
                    "transform the model and compile that"
                )
            taken = [*ctx.saved_tensors, *(gradients[n] for n in division.gradients)]
            if not torch.is_grad_enabled():
                return backward(taken)
            # The tensors that were kept have no history: without the first, none would be made.
            return Once.apply(torch.empty(0, requires_grad=True), *taken)

    class Once(_Function):
        """A gradient of which there is to be a gradient (`create_graph=True`)."""

        @staticmethod
        def forward(_: Any, *taken: Any) -> tuple[object, ...]:
            return backward(taken[1:])

        @staticmethod
        def backward(*_: Any) -> Any:
            raise RuntimeError(
                "a compiled graph has no second gradient: "
                "leave models whose gradients are differentiated to eager mode"
            )

    return Compiled.apply


def _own(kept: Any) -> torch.Tensor:
    return kept.detach() if kept._is_view() else kept


_Function: Any = torch.autograd.Function  # whose methods have no complete types
