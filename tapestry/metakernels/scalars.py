"""Typed scalar bodies: what `wrap` and `unwrap` become once the element types are known.

    Operation("add", (Folded(0, "f32"), Cell("b", "f32")), "f32")          # unwrap: "fold + b"

Every operation has operands of one type (a comparison yields i1), and every conversion is a `Cast`,
so that turning a body into IR is a table lookup. Bodies are values: equal subtrees are equal, and
may be computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A number of a known type; a truth value is 0 or 1 in i1. Zeros of two signs are two."""

    value: int | float
    dtype: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, str]:
        return repr(self.value), self.dtype


@dataclass(frozen=True, slots=True)
class Cell:
    """The cell that the projection of the input `name` selects."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
class Read:
    """The cell of the block that the input `name` selects, at i64 indices from its first cell.

    Outside the block it is `otherwise`; without one, that is an error when it is run.
    """

    name: str
    indices: tuple[Scalar, ...]
    otherwise: Scalar | None
    dtype: str


@dataclass(frozen=True, slots=True)
class Folded:
    """Part `part` of the folded state, in `unwrap`."""

    part: int
    dtype: str


@dataclass(frozen=True, slots=True)
class Position:
    """The coordinate along one index dimension, an i64."""

    dim: int
    dtype: str = "i64"


@dataclass(frozen=True, slots=True)
class Operation:
    """`name(operands)`.

    Arithmetic: add sub mul div floordiv mod neg abs min max. Comparisons: lt le gt ge eq ne.
    Choice: select. Truth values: and or not. Floats: pow, atan2, copysign and the functions of one
    float in `functions`. Integers: and or xor, and those in `integers`. `random` takes a seed, a
    counter and a word, and yields f32.
    """

    name: str
    operands: tuple[Scalar, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Cast:
    """`operand` converted to `dtype`: floats round to nearest even, and truncate to integers."""

    operand: Scalar
    dtype: str


Scalar: TypeAlias = Constant | Cell | Read | Folded | Position | Operation | Cast


def cast(operand: Scalar, dtype: str) -> Scalar:
    """`operand` in `dtype`; a half that was widened to f32 comes back as it was."""
    match operand:
        case Cast(source, "f32") if source.dtype == dtype and dtype in ("f16", "bf16"):
            return source
        case _:
            return operand if operand.dtype == dtype else Cast(operand, dtype)


def walk_scalar(body: Scalar) -> Iterator[Scalar]:
    """`body` and everything it is computed from; shared parts come once per use."""
    yield body
    match body:
        case Operation(_, operands):
            for operand in operands:
                yield from walk_scalar(operand)
        case Cast(operand):
            yield from walk_scalar(operand)
        case Read(_, indices, otherwise):
            for operand in (*indices, *(() if otherwise is None else (otherwise,))):
                yield from walk_scalar(operand)
        case _:
            pass


def cell_names(bodies: tuple[Scalar, ...]) -> frozenset[str]:
    """The inputs that `bodies` read."""
    return frozenset(
        part.name for body in bodies for part in walk_scalar(body) if isinstance(part, Cell | Read)
    )


def replaced(body: Scalar, change: Callable[[Scalar], Scalar | None]) -> Scalar:
    """`body` with what `change` puts in the place of its parts; None leaves a part as it is."""
    found = change(body)
    if found is not None:
        return found
    match body:
        case Operation(name, operands, dtype):
            return Operation(name, tuple(replaced(part, change) for part in operands), dtype)
        case Cast(operand, dtype):
            return cast(replaced(operand, change), dtype)
        case _:
            return body


def with_state(body: Scalar, state: tuple[Scalar, ...]) -> Scalar:
    """`body` with the parts of the folded state computed by `state`: what one point comes to."""
    return replaced(body, lambda part: state[part.part] if isinstance(part, Folded) else None)
