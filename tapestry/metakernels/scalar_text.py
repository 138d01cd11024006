"""Typed bodies written as people read them.

>>> from tapestry.metakernels.scalars import Cell, Constant, Folded, Operation
>>> total = Operation("add", (Folded(0, "f32"), Cell("b", "f32")), "f32")
>>> scalar_text(Operation("mul", (total, Constant(2.0, "f32")), "f32"))
'(fold + b) * 2.0'

Casts are written out; a coordinate is `d0`, as in projections.
"""

from __future__ import annotations

from typing import Final

from tapestry.metakernels.scalars import (
    Cast,
    Cell,
    Constant,
    Folded,
    Operation,
    Position,
    Read,
    Scalar,
    walk_scalar,
)

_INFIX: Final = {
    "add": ("+", 4), "sub": ("-", 4), "mul": ("*", 5), "div": ("/", 5), "floordiv": ("//", 5),
    "mod": ("%", 5), "lt": ("<", 3), "le": ("<=", 3), "gt": (">", 3), "ge": (">=", 3),
    "eq": ("==", 3), "ne": ("!=", 3), "and": ("and", 2), "or": ("or", 1),
}  # fmt: skip
"""Operators and how strongly they bind."""


def scalar_text(body: Scalar) -> str:
    """A body on one line, in the notation of templates."""
    parts = {part.part for part in walk_scalar(body) if isinstance(part, Folded)}
    return _text(body, 0, several=parts not in (set(), {0}))


def _text(body: Scalar, around: int, *, several: bool) -> str:
    match body:
        case Constant(value):
            return str(value)
        case Cell(name):
            return name
        case Read(name, indices, otherwise):
            given = [name, *(_text(index, 0, several=several) for index in indices)]
            if otherwise is not None:
                given.append(f"else={_text(otherwise, 0, several=several)}")
            return f"read({', '.join(given)})"
        case Folded(part):
            return f"fold[{part}]" if several else "fold"
        case Position(dim):
            return f"d{dim}"
        case Cast(operand, dtype):
            return f"cast({_text(operand, 0, several=several)}, {dtype})"
        case Operation(name, (left, right)) if name in _INFIX:
            sign, strength = _INFIX[name]
            a = _text(left, strength, several=several)
            b = _text(right, strength + 1, several=several)
            text = f"{a} {sign} {b}"
            return f"({text})" if strength < around else text
        case Operation("neg", (operand,)):
            return f"-{_text(operand, 6, several=several)}"
        case Operation(name, operands):
            function = "where" if name == "select" else name
            return f"{function}({', '.join(_text(one, 0, several=several) for one in operands)})"
