"""What expressions compute: integers, choices, lists, and affine forms in index coordinates.

    >>> row = Affine((1, 0), 0)                       # the coordinate d0 of a two-dimensional index
    >>> add(multiply(2, row), -1)
    Affine(coefficients=(2, 0), constant=-1)
    >>> multiply(row, row)
    Traceback (most recent call last):
    ...
    tapestry.metakernels.errors.NotAffineError: error: the product of two coordinates is not affine
      rule: a row is a sum of coordinates times numbers, plus a number

Integers are bounded to 62 bits and lists to `MAX_ELEMENTS`, so that no template can make expansion
run away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Final, TypeAlias

from tapestry.metakernels.errors import (
    DivisionByZeroError,
    InexactDivisionError,
    KindMismatchError,
    LimitError,
    NotAffineError,
    SymbolicSizeError,
)
from tapestry.metakernels.symbols import is_symbolic

MAX_ELEMENTS: Final = 4096
"""Elements of one list."""

MAX_INTEGER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Affine:
    """`coefficients . index + constant`, one coefficient per index dimension."""

    coefficients: tuple[int, ...]
    constant: int

    @property
    def unit(self) -> int | None:
        """The index dimension that this is the coordinate of, when it is one alone."""
        moving = [(c, dim) for dim, c in enumerate(self.coefficients) if c]
        return (
            moving[0][1] if self.constant == 0 and len(moving) == 1 and moving[0][0] == 1 else None
        )


Value: TypeAlias = "int | float | str | Affine | tuple[Value, ...]"
Names: TypeAlias = Mapping[str, Value]


def describe(value: Value) -> str:
    """A value as people write it: `[2, 3]`."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(describe, value))}]"
    if isinstance(value, Affine):
        return "an expression in coordinates"
    return str(value)


def integer(value: Value, what: str) -> int:
    """`value` as an integer (a truth value counts as 0 or 1)."""
    if isinstance(value, int):
        return int(value) if isinstance(value, bool) else value
    if isinstance(value, Affine):
        raise NotAffineError(f"{what} must be a number, and coordinates have no fixed value")
    raise KindMismatchError(f"{what} must be an integer, not {describe(value)}")


def count(value: Value, what: str) -> int:
    """`value` as an integer that decides how much is built: a symbolic size cannot."""
    number = integer(value, what)
    if is_symbolic(number):
        raise SymbolicSizeError(
            f"{what} is {number}, and has to be known here", hint="give numbers for its symbols"
        )
    return number


def integers(value: Value, what: str) -> tuple[int, ...]:
    """`value` as a list of integers."""
    if not isinstance(value, tuple):
        raise KindMismatchError(f"{what} must be a list, not {describe(value)}")
    return tuple(integer(item, f"each element of {what}") for item in value)


def checked(value: int) -> int:
    """`value`, when it is small enough to be a size."""
    if is_symbolic(value) or -MAX_INTEGER <= value <= MAX_INTEGER:
        return value
    raise LimitError(f"a result is beyond {MAX_INTEGER} (2^62)")


def require_length(count: int) -> int:
    """`count`, when a list may be that long."""
    if count > MAX_ELEMENTS:
        raise LimitError(f"a list would have {count} elements, more than {MAX_ELEMENTS}")
    return count


def _affine(value: Value, rank: int, operator: str) -> Affine:
    if isinstance(value, Affine):
        return value
    return Affine((0,) * rank, integer(value, f"an operand of `{operator}`"))


def add(left: Value, right: Value) -> Value:
    """`left + right`, affine when either is."""
    if isinstance(left, Affine) or isinstance(right, Affine):
        rank = len((left if isinstance(left, Affine) else _known(right)).coefficients)
        a, b = _affine(left, rank, "+"), _affine(right, rank, "+")
        return Affine(
            tuple(checked(x + y) for x, y in zip(a.coefficients, b.coefficients, strict=True)),
            checked(a.constant + b.constant),
        )
    return checked(integer(left, "an operand of `+`") + integer(right, "an operand of `+`"))


def _known(value: Value) -> Affine:
    assert isinstance(value, Affine)
    return value


def negate(value: Value) -> Value:
    """`-value`."""
    return multiply(-1, value)


def multiply(left: Value, right: Value) -> Value:
    """`left * right`, affine when one of them is."""
    if isinstance(left, Affine) and isinstance(right, Affine):
        raise NotAffineError("the product of two coordinates is not affine")
    if isinstance(left, Affine):
        left, right = right, left
    factor = integer(left, "an operand of `*`")
    if isinstance(right, Affine):
        return Affine(
            tuple(checked(factor * c) for c in right.coefficients), checked(factor * right.constant)
        )
    return checked(factor * integer(right, "an operand of `*`"))


def _divide(left: int, right: int) -> int:
    if left % right:
        raise InexactDivisionError(
            f"{left} / {right} leaves a remainder", hint="`//` rounds down, `ceildiv` rounds up"
        )
    return left // right


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise InexactDivisionError(f"{base} ^ {exponent} is no integer: its exponent is negative")
    if not is_symbolic(base) and abs(base) > 1 and exponent * (abs(base).bit_length() - 1) > 62:
        raise LimitError(f"{base} ^ {exponent} is beyond 2^62")
    return checked(base**exponent)


def arithmetic(operator: str, left: Value, right: Value) -> Value:
    """`left operator right` for `+ - * / // % ^`."""
    if operator == "+":
        return add(left, right)
    if operator == "-":
        return add(left, negate(right))
    if operator == "*":
        return multiply(left, right)
    if isinstance(left, Affine) or isinstance(right, Affine):
        raise NotAffineError(
            f"`{operator}` of a coordinate is not affine",
            hint="a projection is a sum of coordinates times numbers, plus a number",
        )
    a = integer(left, f"an operand of `{operator}`")
    b = integer(right, f"an operand of `{operator}`")
    if operator == "^":
        return _power(a, count(b, "an exponent"))
    if b == 0:
        raise DivisionByZeroError(f"{a} {operator} 0")
    if operator == "/":
        return _divide(a, b)
    return a // b if operator == "//" else a % b


_ORDER: Final[dict[str, Callable[[float, float], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def compare(operator: str, left: Value, right: Value) -> int:
    """`left operator right` as 0 or 1; lists and choices compare by `==` and `!=` only."""
    if isinstance(left, Affine) or isinstance(right, Affine):
        raise NotAffineError(f"`{operator}` of a coordinate is not affine")
    if operator in ("==", "!="):
        if _sort(left) is not _sort(right):
            raise KindMismatchError(
                f"{describe(left)} and {describe(right)} are of different kinds and do not compare"
            )
        return int((left == right) == (operator == "=="))
    a, b = (_real(value, f"an operand of `{operator}`") for value in (left, right))
    return int(_ORDER[operator](a, b))


def _sort(value: Value) -> type:
    """The type of a value; a symbolic size is an integer."""
    return int if is_symbolic(value) and isinstance(value, int) else type(value)


def _real(value: Value, what: str) -> float:
    """`value` as a number: a parameter may be a float."""
    return value if isinstance(value, float) else integer(value, what)
