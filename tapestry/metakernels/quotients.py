"""Quotients and remainders of scalar bodies: rounded down (`//`, `%`) or towards zero.

    `a // b`   of floats   the greatest whole number not above a / b (as Python, NumPy and PyTorch)
    `a % b`                what is left, with the sign of b
    div_trunc(a, b), mod_trunc(a, b)   towards zero, and with the sign of a

Of integers each is one operation. Of floats all but `div_trunc` come from `mod_trunc`: the quotient
a / b is rounded, and may reach a whole number that the true one is below. `mod_trunc` is exact
while a / b is finite in f32 and below 2^156 in f64; beyond that it is a zero. A
quotient of finite numbers that is out of range is infinite.

    >>> from tapestry.metakernels.scalars import Cell
    >>> truncated_quotient(Cell("a", "f32"), Cell("b", "f32")).name
    'trunc'
    >>> truncated_quotient(Cell("a", "i32"), Cell("b", "i32")).name
    'div_trunc'
"""

from __future__ import annotations

from math import inf

from tapestry.metakernels.dtypes import is_float
from tapestry.metakernels.scalars import Constant, Operation, Scalar

_STEPS = {"f32": 6, "f64": 3}
"""Steps of a remainder: each takes 24 bits off a quotient in f32, and 53 in f64."""

_LIMITS = {"f32": inf, "f64": 2.0**156}
"""Quotients from which so many steps do not lead to the remainder."""


def floor_quotient(a: Scalar, b: Scalar) -> Scalar:
    """`a // b`."""
    if not is_float(a.dtype):
        return Operation("floordiv", (a, b), a.dtype)
    rest = remainder(a, b)
    whole = _of("div", _of("sub", a, rest), b)
    whole = _select(_apart(rest, b), _of("sub", whole, _number(1.0, a)), whole)
    down = _of("floor", whole)
    up = _of("add", down, _number(1.0, a))
    nearest = _select(_test("gt", _of("sub", whole, down), _number(0.5, a)), up, down)
    ratio = _of("div", a, b)
    signed = _of("copysign", _number(0.0, a), ratio)
    result = _select(_test("eq", whole, _number(0.0, a)), signed, nearest)
    beyond = Operation("and", (_infinite(ratio), _test("lt", _of("abs", a), _number(inf, a))), "i1")
    by_zero = _test("eq", b, _number(0.0, b))
    return _select(Operation("or", (by_zero, beyond), "i1"), ratio, result)


def floor_remainder(a: Scalar, b: Scalar) -> Scalar:
    """`a % b`."""
    if not is_float(a.dtype):
        return Operation("mod", (a, b), a.dtype)
    rest = remainder(a, b)
    return _select(_apart(rest, b), _of("add", rest, b), rest)


def truncated_quotient(a: Scalar, b: Scalar) -> Scalar:
    """`div_trunc(a, b)`."""
    if not is_float(a.dtype):
        return Operation("div_trunc", (a, b), a.dtype)
    return _of("trunc", _of("div", a, b))


def remainder(a: Scalar, b: Scalar) -> Scalar:
    """`mod_trunc(a, b)`.

    One rounding of rest - q * b is exact for the float q that is nearest to rest / b, and takes as
    many bits off the quotient as a float has. What is left after all steps is at most b / 2, and a
    step of b leads to the one remainder of the sign of a.
    """
    if not is_float(a.dtype):
        return Operation("mod_trunc", (a, b), a.dtype)
    ratio, less = _of("div", a, b), _of("neg", b)
    rest = _of("fma", _of("round", ratio), less, a)
    for _ in range(_STEPS[a.dtype] - 1):
        rest = _of("fma", _of("round", _of("div", rest, b)), less, rest)
    rest = _select(_apart(rest, a), _of("add", rest, _of("copysign", b, a)), rest)
    rest = _of("copysign", _select(_is_far(a, b, ratio), _number(0.0, a), rest), a)
    small = _test("lt", _of("abs", a), _of("abs", b))
    return _select(small, a, rest)


def _is_far(a: Scalar, b: Scalar, ratio: Scalar) -> Scalar:
    """Whether numbers have a remainder that the steps do not lead to."""
    far = _test("ge", _of("abs", ratio), _number(_LIMITS[a.dtype], a))
    finite = _test("lt", _of("abs", a), _number(inf, a))
    numbers = Operation("and", (finite, _test("ne", b, _number(0.0, b))), "i1")
    return Operation("and", (far, numbers), "i1")


def _infinite(x: Scalar) -> Scalar:
    return _test("eq", _of("abs", x), _number(inf, x))


def _apart(rest: Scalar, divisor: Scalar) -> Scalar:
    """Whether a remainder is not zero, and of another sign than the divisor."""
    signs = _test(
        "ne",
        _test("lt", rest, _number(0.0, rest)),
        _test("lt", divisor, _number(0.0, divisor)),
    )
    return Operation("and", (_test("ne", rest, _number(0.0, rest)), signs), "i1")


def _of(name: str, *operands: Scalar) -> Scalar:
    return Operation(name, operands, operands[0].dtype)


def _test(name: str, a: Scalar, b: Scalar) -> Scalar:
    return Operation(name, (a, b), "i1")


def _select(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    return Operation("select", (condition, a, b), a.dtype)


def _number(value: float, like: Scalar) -> Scalar:
    return Constant(value, like.dtype)
