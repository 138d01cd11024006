"""Sizes that a graph leaves open: what they are in one call.

With dynamic shapes PyTorch hands over a graph whose sizes are expressions in symbols. A program has
fixed sizes: it is made for the sizes of a call, and again for others.

    open_sizes = OpenSizes(graph)
    open_sizes.numbers(given)                                       # (5,) in a call where s0 is 5
    open_sizes.sizes(open_sizes.numbers(given)).number(s0 * 2)      # 10
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

import torch
from torch import fx

from tapestry.diagnostics import Location, TapestryError


class OpenSizeError(TapestryError):
    """A size that only the data decides."""

    kind = "open_size"

    def of(self, operator: str, location: Location | None) -> OpenSizeError:
        """The same, said of an operator."""
        return OpenSizeError(f"{operator}: {self.message}", location=location, hint=self.hint)


Symbol: TypeAlias = Any
"""A symbol of SymPy's, which has no types."""


@dataclass(frozen=True)
class Sizes:
    """What each symbol stands for."""

    symbols: tuple[tuple[Symbol, int], ...] = ()

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


class OpenSizes:
    """Where the symbols of a graph are found in the arguments of a call."""

    def __init__(self, graph: fx.GraphModule) -> None:
        self._places: dict[Symbol, Callable[[Sequence[Any]], int]] = {}
        for position, node in enumerate(n for n in graph.graph.nodes if n.op == "placeholder"):
            held = node.meta.get("val")
            if not isinstance(held, torch.Tensor):
                self._add(held, itemgetter(position))
                continue
            for dim, size in enumerate(held.shape):
                self._add(size, lambda given, at=position, dim=dim: given[at].shape[dim])
            for dim, size in enumerate(held.stride()):
                self._add(size, lambda given, at=position, dim=dim: given[at].stride(dim))

    def __bool__(self) -> bool:
        return bool(self._places)

    def numbers(self, given: Sequence[Any]) -> tuple[int, ...]:
        """What the symbols are in a call with these arguments."""
        if not self._places:
            return ()
        return tuple([int(find(given)) for find in self._places.values()])

    def sizes(self, numbers: Sequence[int]) -> Sizes:
        """Those numbers, by symbol."""
        return Sizes(tuple(zip(self._places, numbers, strict=True)))

    def _add(self, size: object, find: Callable[[Sequence[Any]], int]) -> None:
        expression = _expression(size)
        if expression is not None and expression.is_Symbol:
            self._places.setdefault(expression, find)


def _expression(size: object) -> Any:
    """The expression of a size that is open, else None."""
    held: Any = size
    return held.node.expr if isinstance(size, torch.SymInt) else None
