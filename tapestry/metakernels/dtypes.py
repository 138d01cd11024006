"""Element types by name, their classes, and what two of them promote to.

    >>> promote("i32", "f16"), promote("f16", "bf16"), wide("bf16")
    ('f16', 'f32', 'f32')

Truth values are below integers, integers below floats; a float keeps its type beside any integer
(as in PyTorch). Integers with and without a sign meet in the least signed type that holds both (i8
and ui8 in i16), at most i64, and the two half types in f32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from typing import Final

from tapestry.algebra.dtypes import promote as promote_types
from tapestry.algebra.dtypes import type_named
from tapestry.metakernels.errors import DtypeMismatchError, UnknownNameError, nearest
from tapestry.metakernels.syntax import Call, Expr, Name, Variable
from tapestry.metakernels.values import Names, describe

FLOATS: Final = ("f16", "bf16", "f32", "f64")
UNSIGNED: Final = ("ui8", "ui16", "ui32", "ui64")
INTEGERS: Final = (*UNSIGNED, "i8", "i16", "i32", "i64")
DTYPES: Final = ("i1", *INTEGERS, *FLOATS)
HALVES: Final = ("f16", "bf16")

CLASSES: Final = {
    "float": FLOATS,
    "int": INTEGERS,
    "number": (*INTEGERS, *FLOATS),
    "any": DTYPES,
}
"""What an input's `dtype` may ask for besides one dtype; i1 (a truth value) is no number."""


def is_float(dtype: str) -> bool:
    """Whether `dtype` is a floating-point type."""
    return dtype in FLOATS


def is_integer(dtype: str) -> bool:
    """Whether `dtype` is an integer type; a truth value is none."""
    return dtype in INTEGERS


def is_unsigned(dtype: str) -> bool:
    """Whether `dtype` is a type of integers without a sign."""
    return dtype in UNSIGNED


def wide(dtype: str) -> str:
    """The type that sums of `dtype` are kept in: f32 for the half types, else itself."""
    return "f32" if dtype in HALVES else dtype


def floating(dtype: str) -> str:
    """The float that functions of `dtype` compute in: itself, or f32 for numbers that are none."""
    return dtype if is_float(dtype) else "f32"


@cache
def promote(left: str, right: str) -> str:
    """The type that holds the result of an operation on `left` and `right`."""
    elements = type_named(left), type_named(right)
    assert elements[0] is not None
    assert elements[1] is not None
    return str(promote_types(elements[0], elements[1]))


def allowed(constraint: str) -> tuple[str, ...]:
    """The dtypes that a class, or a dtype's own name, stands for."""
    if constraint in CLASSES:
        return CLASSES[constraint]
    if constraint in DTYPES:
        return (constraint,)
    raise UnknownNameError(
        f"unknown dtype {constraint}", hint=nearest(constraint, (*CLASSES, *DTYPES))
    )


_FUNCTIONS: Final[dict[str, Callable[[str], str]]] = {
    "promote": lambda dtype: dtype,
    "floating": floating,
    "wide": wide,
}
"""What functions of dtypes make of the type that their arguments promote to."""


def evaluate_dtype(expr: Expr, names: Names) -> str:
    """The dtype that `f32`, `$t`, `promote($a, $b)`, `floating($t)` or `wide($t)` computes."""
    match expr:
        case Name(name):
            if name not in DTYPES:
                raise UnknownNameError(f"unknown dtype {name}", hint=nearest(name, DTYPES))
            return name
        case Variable(name):
            if name not in names:
                raise UnknownNameError(
                    f"${name} is not bound", hint=nearest(f"${name}", (f"${n}" for n in names))
                )
            value = names[name]
            if isinstance(value, str) and value in DTYPES:
                return value
            raise DtypeMismatchError(f"${name} is {describe(value)}, which is no dtype")
        case Call(name, arguments) if name in _FUNCTIONS:
            if not arguments:
                raise DtypeMismatchError(f"{name} takes at least one dtype")
            met = reduce(promote, (evaluate_dtype(a, names) for a in arguments))
            return _FUNCTIONS[name](met)
        case Call(name, _):
            raise UnknownNameError(
                f"unknown function of dtypes {name}", hint=nearest(name, _FUNCTIONS)
            )
        case _:
            raise DtypeMismatchError("a dtype is needed here, such as f32, $t or promote($a, $b)")
