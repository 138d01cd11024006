"""The operators and functions of scalar bodies: which types they take and what they compute.

    >>> from tapestry.metakernels.scalars import Cell
    >>> arithmetic("*", Cell("x", "i32"), Known(2)).operands
    (Cell(name='x', dtype='i32'), Constant(value=2, dtype='i32'))

Operations on numbers known at expansion are computed (`known_numbers`); everything else becomes an
`Operation` on operands of one type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Final

from tapestry.algebra.philox import WORDS
from tapestry.metakernels.constants import Known, coerce, number, truth
from tapestry.metakernels.dtypes import floating, is_float, is_integer, is_unsigned, promote
from tapestry.metakernels.errors import (
    DtypeMismatchError,
    KindMismatchError,
    UnknownNameError,
    nearest,
)
from tapestry.metakernels.integers import INTEGER_FUNCTIONS, integer_call
from tapestry.metakernels.known_numbers import (
    FLOAT,
    FLOAT_PAIRS,
    ORDER,
    PREDICATES,
    known_arithmetic,
    known_call,
    known_power,
)
from tapestry.metakernels.quotients import (
    floor_quotient,
    floor_remainder,
    remainder,
    truncated_quotient,
)
from tapestry.metakernels.scalars import Constant, Operation, Position, Scalar
from tapestry.metakernels.values import compare as compare_values

Term = Scalar | Known

MAX_POWER: Final = 64
"""The greatest exponent that is spelled out as multiplications."""

_ARITHMETIC: Final = {
    "+": "add", "-": "sub", "*": "mul", "/": "div",
}  # fmt: skip
_COMPARISONS: Final = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}

_NUMBER_PAIRS: Final = ("fmax", "fmin", "div_trunc", "mod_trunc")
_WHOLE: Final = ("floor", "ceil", "round", "trunc")
"""Functions that make whole numbers, and leave integers as they are."""
_AT_LEAST: Final = {"min": 2, "max": 2, "sum": 2, "prod": 2}
_COUNTS: Final[dict[str, int | None]] = {
    **dict.fromkeys(FLOAT, 1), **dict.fromkeys(FLOAT_PAIRS, 2), **dict.fromkeys(PREDICATES, 1),
    **INTEGER_FUNCTIONS, **dict.fromkeys(_NUMBER_PAIRS, 2), "floating": 1, "sigmoid": 1, "abs": 1,
    "sign": 1, "min": None, "max": None, "sum": None, "prod": None, "read": None, "pow": 2,
    "where": 3, "cast": 2, "random": 2, **dict.fromkeys(("lowest", "highest", "largest"), 1),
}  # fmt: skip
_CHOOSING: Final = (
    "abs", "sign", "min", "max", "where", "cast", "floor", "ceil", "round", "trunc", "lowest",
    "highest", "largest", "fmax", "fmin", "floating", "copysign", "read", *PREDICATES,
    *INTEGER_FUNCTIONS,
)  # fmt: skip
DTYPE_ARGUMENTS: Final = {"cast": 1, "lowest": 0, "highest": 0, "largest": 0}
"""Which argument of a function is a dtype."""


def is_rounding(function: str) -> bool:
    """Whether the function's result may have to be rounded to its dtype."""
    return function not in _CHOOSING


def check_call(function: str, count: int | None, *, spliced: bool = False) -> None:
    """Raise unless bodies have a `function` that takes `count` arguments (None: not known yet).

    Of arguments that a list gives (`spliced`), one is enough.
    """
    if function not in _COUNTS:
        raise UnknownNameError(f"unknown function {function}", hint=nearest(function, _COUNTS))
    wanted = _COUNTS[function]
    if count is None:
        return
    least = 1 if spliced else _AT_LEAST.get(function, 1)
    if count != wanted if wanted is not None else count < least:
        text = (
            "two or more arguments" if wanted is None else f"{wanted} argument{'s'[: wanted - 1]}"
        )
        raise KindMismatchError(f"{function} takes {text}, not {count}")


def common(left: Term, right: Term) -> tuple[Scalar, Scalar]:
    """Both values in the type that they promote to; at least one of them has a type."""
    if isinstance(left, Known):
        assert not isinstance(right, Known)
        return coerce(left, right.dtype), right
    if isinstance(right, Known):
        return left, coerce(right, left.dtype)
    dtype = promote(left.dtype, right.dtype)
    return coerce(left, dtype), coerce(right, dtype)


def _numeric(name: str, left: Term, right: Term) -> tuple[Scalar, Scalar]:
    """Both values in their common type; a truth value beside a number counts as 0 or 1."""
    dtypes = {term.dtype for term in (left, right) if not isinstance(term, Known)}
    if dtypes == {"i1"}:
        raise DtypeMismatchError(
            f"`{name}` of a truth value (i1)", hint="count it as a number: cast(..., i32)"
        )
    return common(left, right)


def arithmetic(operator: str, left: Term, right: Term) -> Term:
    """`left operator right` for `+ - * / // %`."""
    if isinstance(left, Known) and isinstance(right, Known):
        return Known(known_arithmetic(operator, number(left), number(right)))
    a, b = _numeric(operator, left, right)
    if operator == "/" and not is_float(a.dtype):
        raise DtypeMismatchError(
            f"`/` of {a.dtype}: integers have no true quotient",
            hint="write `//` for the floor, or cast(..., f32) / ...",
        )
    if operator in ("//", "%"):
        return floor_quotient(a, b) if operator == "//" else floor_remainder(a, b)
    return Operation(_ARITHMETIC[operator], (a, b), a.dtype)


def negate(term: Term) -> Term:
    """`-term`."""
    if isinstance(term, Known):
        return Known(-number(term))
    if term.dtype == "i1":
        raise DtypeMismatchError("`-` of a truth value (i1)", hint="`not` inverts it")
    return Operation("neg", (term,), term.dtype)


def _condition(term: Term, operator: str) -> Scalar:
    if isinstance(term, Known):
        return Constant(int(truth(term)), "i1")
    if term.dtype != "i1":
        raise DtypeMismatchError(
            f"`{operator}` takes truth values (i1), not {term.dtype}", hint="compare it: x != 0"
        )
    return term


def invert(term: Term) -> Term:
    """`not term`."""
    if isinstance(term, Known):
        return Known(not truth(term))
    return Operation("not", (_condition(term, "not"),), "i1")


def logic(operator: str, left: Term, right: Term) -> Term:
    """`left and right`, `left or right`."""
    if isinstance(left, Known) and isinstance(right, Known):
        a, b = truth(left), truth(right)
        return Known((a and b) if operator == "and" else (a or b))
    return Operation(operator, (_condition(left, operator), _condition(right, operator)), "i1")


def compare(operator: str, left: Term, right: Term) -> Term:
    """`left operator right`, a truth value."""
    if isinstance(left, Known) and isinstance(right, Known):
        if isinstance(left.value, str) or isinstance(right.value, str):
            return Known(bool(compare_values(operator, left.value, right.value)))
        return Known(ORDER[operator](left.value, right.value))
    return Operation(_COMPARISONS[operator], common(left, right), "i1")


def select(condition: Term, left: Term, right: Term) -> Term:
    """`where(condition, left, right)`."""
    chosen = _condition(condition, "where")
    if isinstance(left, Known) and isinstance(right, Known):
        raise DtypeMismatchError(
            "`where` between two numbers has no dtype", hint="give one of them a type: cast(1, f32)"
        )
    a, b = common(left, right)
    return Operation("select", (chosen, a, b), a.dtype)


def power(base: Term, exponent: Term) -> Term:
    """`base ^ exponent`; a small integer exponent becomes multiplications."""
    times = exponent.value if isinstance(exponent, Known) else None
    if isinstance(times, float) and times.is_integer():
        times = int(times)
    if isinstance(base, Known) and isinstance(exponent, Known):
        return Known(known_power(number(base), number(exponent)))
    if not isinstance(base, Known) and base.dtype == "i1":
        raise DtypeMismatchError("`^` of a truth value (i1)", hint="cast(..., i32) ^ ...")
    if not isinstance(base, Known) and isinstance(times, int) and 0 <= times <= MAX_POWER:
        return _repeated(base, times)
    a, b = common(base, exponent)
    if not is_float(a.dtype):
        raise DtypeMismatchError(
            f"`^` of {a.dtype} takes an exponent known at expansion, from 0 to {MAX_POWER}",
            hint="cast(..., f32) ^ ...",
        )
    return Operation("pow", (a, b), a.dtype)


def _repeated(base: Scalar, times: int) -> Scalar:
    """`base` to the power `times` by squaring."""
    result: Scalar | None = None
    square = base
    while times:
        if times & 1:
            result = square if result is None else Operation("mul", (result, square), base.dtype)
        times >>= 1
        if times:
            square = Operation("mul", (square, square), base.dtype)
    return coerce(Known(1), base.dtype) if result is None else result


def random(seed: Term, word: Term, extents: Sequence[int]) -> Scalar:
    """A uniform f32 in [0, 1) with 24 random bits, drawn for the cell at hand.

    The counter is the cell's place in row-major order of an index space with these extents; `word`
    picks one of four independent numbers for one seed and cell.
    """
    if not isinstance(word, Known) or word.value not in range(WORDS):
        raise KindMismatchError(f"the second argument of random is one of 0 to {WORDS - 1}")
    if isinstance(seed, Known) or not is_integer(seed.dtype):
        raise DtypeMismatchError(
            "the seed of random is a number or a float",
            hint="read it from an input of dtype i64 and shape []",
        )
    counter: Scalar = Constant(0, "i64")
    for dim, extent in enumerate(extents):
        place = Operation("mul", (counter, Constant(extent, "i64")), "i64")
        counter = Operation("add", (place, Position(dim)), "i64") if dim else Position(dim)
    operands = (coerce(seed, "i64", explicit=True), counter, Constant(int(word.value), "i64"))
    return Operation("random", operands, "f32")


def call(function: str, arguments: Sequence[Term]) -> Term:
    """`function(arguments)`, for every function but `where` and `cast`."""
    first = arguments[0]
    if function == "pow":
        return power(first, arguments[1])
    if function in ("sum", "prod"):
        operator = "+" if function == "sum" else "*"
        return reduce(lambda total, term: arithmetic(operator, total, term), arguments)
    if function in ("min", "max"):
        return _extremum(function, arguments)
    if function == "floating":
        return first if isinstance(first, Known) else coerce(first, floating(first.dtype))
    if function in _NUMBER_PAIRS:
        return _number_pair(function, first, arguments[1])
    if function in INTEGER_FUNCTIONS:
        return integer_call(function, arguments)
    if function in FLOAT_PAIRS:
        return _pair(function, first, arguments[1])
    if function in PREDICATES:
        return _predicate(function, first)
    if function == "abs":
        return _absolute(first)
    if function == "sign":
        return _sign(first)
    if function == "sigmoid":
        denominator = arithmetic("+", Known(1), call("exp", [negate(_float(function, first))]))
        return arithmetic("/", Known(1), denominator)
    if isinstance(first, Known):
        return Known(known_call(function, number(first)))
    if function in _WHOLE and is_integer(first.dtype):
        return first
    argument = _float(function, first)
    return Operation(function, (argument,), argument.dtype)


def _float(function: str, term: Term) -> Scalar:
    if isinstance(term, Known):
        raise DtypeMismatchError(f"{function} of a number", hint="give it a type: cast(1, f32)")
    if not is_float(term.dtype):
        raise DtypeMismatchError(
            f"{function} of {term.dtype}: it takes floats", hint=f"{function}(cast(..., f32))"
        )
    return term


def _pair(function: str, left: Term, right: Term) -> Term:
    if isinstance(left, Known) and isinstance(right, Known):
        return Known(FLOAT_PAIRS[function](number(left), number(right)))
    a, b = common(left, right)
    return Operation(function, (_float(function, a), b), a.dtype)


def _number_pair(function: str, left: Term, right: Term) -> Term:
    """A function of two numbers, integers or floats."""
    if isinstance(left, Known) and isinstance(right, Known):
        raise DtypeMismatchError(f"{function} of numbers", hint="give one a type: cast(1, f32)")
    a, b = _numeric(function, left, right)
    if function == "div_trunc":
        return truncated_quotient(a, b)
    if function == "mod_trunc":
        return remainder(a, b)
    return Operation(function if is_float(a.dtype) else function[1:], (a, b), a.dtype)


def _predicate(function: str, term: Term) -> Term:
    """Whether a float is NaN, infinite or finite: NaN alone differs from itself."""
    if isinstance(term, Known):
        return Known(PREDICATES[function](number(term)))
    value = _float(function, term)
    if function == "isnan":
        return compare("!=", value, value)
    return compare("==" if function == "isinf" else "<", _absolute(value), Known(math.inf))


def _extremum(function: str, arguments: Sequence[Term]) -> Term:
    result = arguments[0]
    for argument in arguments[1:]:
        if isinstance(result, Known) and isinstance(argument, Known):
            choose = min if function == "min" else max
            result = Known(choose(number(result), number(argument)))
        else:
            a, b = _numeric(function, result, argument)
            result = Operation(function, (a, b), a.dtype)
    return result


def _absolute(term: Term) -> Term:
    if isinstance(term, Known):
        return Known(abs(number(term)))
    _numeric("abs", term, Known(0))
    return Operation("abs", (term,), term.dtype)


def _sign(term: Term) -> Term:
    """1 above zero, -1 below (what has no sign never is), else the value itself: zero, or NaN."""
    if isinstance(term, Known):
        value = number(term)
        return Known((value > 0) - (value < 0))
    _numeric("sign", term, Known(0))
    signed = not is_unsigned(term.dtype)
    below = select(compare("<", term, Known(0)), Known(-1), term) if signed else term
    return select(compare(">", term, Known(0)), Known(1), below)
