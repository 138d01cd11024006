"""What an expression is made of: inputs, constants and applications of metakernels.

    >>> from tapestry.importers.expressions.nodes import Application, Expression, Input, results_of
    >>> from tapestry.metakernels import load_library
    >>> x = Expression(Input("x", kind_of((4, 8), "f32")))
    >>> (y,) = results_of(load_library(), "sum", (x,), {"axis": 1})
    >>> y
    <float32[4]: sum(x, axis=1)>

Nodes are immutable and say nothing of how they run. The type of an application is computed when it
is written, so that what does not fit is said at the line that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import currentframe
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import tapestry
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.diagnostics import Location
from tapestry.dialects.loom import TensorType
from tapestry.importers.building import Spec, kind_of, result_types
from tapestry.importers.expressions.operators import Operators
from tapestry.metakernels import Library, TensorSpec

_PACKAGE = str(Path(tapestry.__file__).parent)
_DEEP = 4
"""Applications inside applications that a text shows."""
_LONG = 72
"""Characters of an expression that a text shows."""


def caller() -> Location | None:
    """The place in the user's program that called Tapestry: the innermost frame outside of it."""
    frame = currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return None
    positions = list(frame.f_code.co_positions())
    _, _, column, _ = positions[frame.f_lasti // 2]
    return Location(frame.f_code.co_filename, frame.f_lineno, (column or 0) + 1)


@dataclass(frozen=True, eq=False)
class Input:
    """A tensor that is given when the program runs."""

    name: str
    kind: TensorType
    location: Location | None = None

    @property
    def kinds(self) -> tuple[TensorType, ...]:
        return (self.kind,)


@dataclass(frozen=True, eq=False)
class Constant:
    """A tensor of known cells."""

    cells: npt.NDArray[Any]
    kind: TensorType
    location: Location | None = None

    @property
    def kinds(self) -> tuple[TensorType, ...]:
        return (self.kind,)


@dataclass(frozen=True, eq=False)
class Application:
    """A metakernel applied to expressions; an entry of `inputs` may be a list, or left out."""

    library: Library = field(repr=False)
    metakernel: str
    inputs: tuple[Given, ...]
    parameters: Mapping[str, object]
    kinds: tuple[TensorType, ...]
    location: Location | None = None

    def operands(self) -> Iterator[Expression]:
        """The expressions it reads, in order."""
        for given in self.inputs:
            if isinstance(given, Expression):
                yield given
            else:
                yield from given or ()


Node: TypeAlias = "Input | Constant | Application"
Given: TypeAlias = "Expression | tuple[Expression, ...] | None"


class Expression(Operators):
    """A tensor that is described, not computed: a result of a node.

    It has a shape and a dtype, takes the operators and indices of arrays, and every metakernel that
    takes a tensor first is a method. `tapestry.run` computes it.
    """

    __slots__ = ("node", "position")

    def __init__(self, node: Node, position: int = 0) -> None:
        self.node = node
        self.position = position

    @property
    def kind(self) -> TensorType:
        """The type of the tensor."""
        return self.node.kinds[self.position]

    @property
    def shape(self) -> tuple[int, ...]:
        """The size along each axis."""
        return self.kind.box.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a cell."""
        return numpy_dtype(self.kind.element_type)

    @property
    def spec(self) -> TensorSpec:
        """Shape and dtype, as templates see them."""
        return TensorSpec(self.shape, str(self.kind.element_type))

    def __repr__(self) -> str:
        text = _text(self, _DEEP)
        shown = text if len(text) <= _LONG else text[: _LONG - 3] + "..."
        return f"<{self.dtype}[{', '.join(map(str, self.shape))}]: {shown}>"


def results_of(
    library: Library,
    metakernel: str,
    inputs: Sequence[Given],
    parameters: Mapping[str, object],
) -> tuple[Expression, ...]:
    """The expressions that a metakernel gives; a WeftError at the caller if it does not fit."""
    place = caller()
    given = tuple(inputs)
    kinds = result_types(library, metakernel, map(_spec, given), parameters, place)
    node = Application(library, metakernel, given, dict(parameters), kinds, place)
    return tuple(Expression(node, position) for position in range(len(kinds)))


def _spec(given: Given) -> Spec:
    if given is None or isinstance(given, Expression):
        return None if given is None else given.spec
    return tuple(one.spec for one in given)


def _text(expression: Expression, depth: int) -> str:
    node = expression.node
    match node:
        case Input():
            return node.name
        case Constant():
            return str(node.cells.item()) if node.cells.ndim == 0 else "constant"
        case Application():
            if depth == 0:
                return "..."
            shown = [_given(one, depth - 1) for one in node.inputs if one is not None]
            shown += [f"{name}={value}" for name, value in node.parameters.items()]
            call = f"{node.metakernel}({', '.join(shown)})"
            return call if len(node.kinds) == 1 else f"{call}[{expression.position}]"


def _given(given: Expression | tuple[Expression, ...], depth: int) -> str:
    if isinstance(given, Expression):
        return _text(given, depth)
    return f"[{', '.join(_text(one, depth) for one in given)}]"


__all__ = ["Application", "Constant", "Expression", "Given", "Input", "Node", "kind_of"]
