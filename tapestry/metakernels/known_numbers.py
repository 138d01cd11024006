"""What operators and functions of bodies give for numbers that are known at expansion.

    >>> known_arithmetic("//", -7, 2), known_power(2, 10), known_call("exp", 0)
    (-4, 1024, 1.0)

Integers are exact. What has no finite real value is an error, and not a NaN: nothing that a
template writes down means one. Sizes may be symbols; then so are the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import Final

from tapestry.metakernels.errors import DivisionByZeroError, LimitError, WeftError
from tapestry.metakernels.symbols import Quantity, is_symbolic

ORDER: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne,
}  # fmt: skip
FLOAT: Final[dict[str, Callable[[float], float]]] = {
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "cbrt": math.cbrt,
    "exp": math.exp,
    "exp2": math.exp2,
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "log1p": math.log1p,
    "expm1": math.expm1,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": math.atanh,
    "erf": math.erf,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
}
FLOAT_PAIRS: Final[dict[str, Callable[[float, float], float]]] = {
    "atan2": math.atan2,
    "copysign": math.copysign,
}
PREDICATES: Final[dict[str, Callable[[float], bool]]] = {
    "isnan": math.isnan,
    "isinf": math.isinf,
    "isfinite": math.isfinite,
}


def known_arithmetic(operator: str, a: float, b: float) -> int | float:
    """`a operator b` for `+ - * / // %`; DivisionByZeroError for a divisor of zero."""
    if operator in ("/", "//", "%") and b == 0:
        raise DivisionByZeroError(f"{a} {operator} 0")
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b
        case "//":
            return a // b
        case _:
            return a % b


def known_power(base: float, exponent: float) -> int | float:
    """`base ^ exponent`; LimitError for an integer beyond 2^62."""
    if is_symbolic(base) or is_symbolic(exponent):
        return base**exponent
    try:
        result = math.pow(base, exponent)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise WeftError(f"{base} ^ {exponent} has no finite real value") from None
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        if abs(result) > 1 << 62:
            raise LimitError(f"{base} ^ {exponent} is beyond 2^62")
        return base**exponent
    return result


def known_call(function: str, value: float) -> float:
    """A function of one float."""
    try:
        example = float(FLOAT[function](value))
        return Quantity.of(value).function(function, example) if is_symbolic(value) else example
    except (ValueError, OverflowError, ZeroDivisionError):
        raise WeftError(f"{function}({value}) has no finite real value") from None
