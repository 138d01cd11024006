"""What a case of `kernels.py` is: a program, its inputs, and what PyTorch computes it with.

def given(n): return [Given("x", (n,))]
case = Case("twice", "elementwise", (64,), given, lambda x: x * 2, lambda _torch, x: x * 2)
case.small.inputs                                           # x has 32 cells
tapestry.run(case.small.expression(), x=...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import tapestry as t
from tapestry.importers.expressions.nodes import Expression

Expressions: TypeAlias = "Expression | tuple[Expression, ...]"
"""One result, or several."""

WARPGROUP_ROWS = 64

SMALL = 40
"""Sizes of a case that is run in the interpreter are at most about this."""


@dataclass(frozen=True)
class Given:
    """An input: integers are drawn below `below`."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "f16"
    below: int = 0


@dataclass(frozen=True)
class Case:
    """A program as an expression of its inputs, and the same in PyTorch.

    `multiplies` says that its time goes into products of matrices of 64 rows or more, which
    warpgroups are for.
    `sizes` are what the inputs are made of, so that smaller ones can be. `beside` has what else it
    is timed beside, `picked` says what PyTorch's own implementation is.
    """

    name: str
    family: str
    sizes: tuple[int, ...]
    given: Callable[..., Sequence[Given]]
    program: Callable[..., Expressions]
    peer: Callable[..., Any]
    multiplies: bool = False
    beside: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    picked: Callable[..., str] | None = None

    @property
    def inputs(self) -> Sequence[Given]:
        return self.given(*self.sizes)

    @property
    def small(self) -> Case:
        """The same program over few cells, odd where the sizes are: too few for warpgroups."""
        return self.over(tuple(map(shortened, self.sizes)))

    def over(self, sizes: tuple[int, ...]) -> Case:
        """The same program over other sizes, too few for warpgroups."""
        return replace(self, sizes=sizes, multiplies=False)

    def expression(self) -> Expressions:
        """The program over inputs of these sizes."""
        tensors = [t.input(one.name, one.shape, one.dtype) for one in self.inputs]
        return self.program(*tensors)


def shortened(size: int, most: int = SMALL) -> int:
    """A size that is halved until it is at most `most`; odd where it was."""
    while size > most:
        size = size // 2 if size % 2 == 0 else size // 2 + 1 - (size // 2) % 2
    return size
