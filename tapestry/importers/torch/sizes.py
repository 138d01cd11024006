"""Sizes that a graph leaves open: what they are in one call.

With dynamic shapes PyTorch hands over a graph whose sizes are expressions in symbols. A program has
fixed sizes: it is made for the sizes of a call, and again for others.

    Sizes.of(graph, given).number(s0 * 2)        # 10 in a call where s0 is 5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import fx

from tapestry.diagnostics import TapestryError


class OpenSizeError(TapestryError):
    """A size that only the data decides."""

    kind = "open_size"


Symbol: TypeAlias = Any
"""A symbol of SymPy's, which has no types."""


@dataclass(frozen=True)
class Sizes:
    """What each symbol stands for."""

    symbols: tuple[tuple[Symbol, int], ...] = ()

    @staticmethod
    def of(graph: fx.GraphModule, given: Sequence[Any]) -> Sizes:
        """The symbols of a graph's placeholders, in a call with these arguments."""
        found: dict[Symbol, int] = {}
        for node, value in zip(_placeholders(graph), given, strict=True):
            held = node.meta.get("val")
            if isinstance(held, torch.Tensor):
                pairs = [*zip(held.shape, value.shape, strict=True)]
                pairs += zip(held.stride(), value.stride(), strict=True)
            else:
                pairs = [(held, value)]
            for size, number in pairs:
                expression = _expression(size)
                if expression is not None and expression.is_Symbol:
                    found.setdefault(expression, int(number))
        return Sizes(tuple(found.items()))

    def __str__(self) -> str:
        return ", ".join(f"{symbol} = {number}" for symbol, number in self.symbols)

    def number(self, size: int | torch.SymInt) -> int:
        """A size as a number."""
        if isinstance(size, int):
            return size
        expression = _expression(size)
        number = expression.subs(dict(self.symbols))
        if not number.is_Integer:
            raise OpenSizeError(
                f"the size {expression} depends on data",
                hint="keep what makes it (nonzero, item, unique, ...) out of the compiled function",
            )
        return int(number)


def _expression(size: object) -> Any:
    """The expression of a size that is open, else None."""
    held: Any = size
    return held.node.expr if isinstance(size, torch.SymInt) else None


def has_open_sizes(graph: fx.GraphModule) -> bool:
    """Whether a graph is for more than one choice of sizes."""
    for node in _placeholders(graph):
        held = node.meta.get("val")
        if isinstance(held, torch.SymInt):
            return True
        if isinstance(held, torch.Tensor) and any(isinstance(n, torch.SymInt) for n in held.shape):
            return True
    return False


def _placeholders(graph: fx.GraphModule) -> list[fx.Node]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]
