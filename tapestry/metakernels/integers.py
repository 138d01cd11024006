"""The functions of scalar bodies that look at the bits of integers.

    >>> from tapestry.metakernels.scalars import Cell
    >>> integer_call("bit_and", [Cell("x", "i8"), Known(15)]).operands
    (Cell(name='x', dtype='i8'), Constant(value=15, dtype='i8'))

Integers are in two's complement. A shift past the width leaves 0, or the sign where it is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from tapestry.metakernels.constants import Known, coerce
from tapestry.metakernels.dtypes import is_integer, promote
from tapestry.metakernels.errors import DtypeMismatchError
from tapestry.metakernels.scalars import Constant, Operation, Scalar

INTEGER_FUNCTIONS: Final = {
    "bit_and": 2, "bit_or": 2, "bit_xor": 2, "bit_not": 1, "bit_count": 1,
    "shift_left": 2, "shift_right": 2, "shift_right_unsigned": 2,
}  # fmt: skip
"""How many arguments each function of integers takes."""

_BITWISE: Final = ("bit_and", "bit_or", "bit_xor", "bit_not")
"""Functions that see a truth value as one bit."""

_OPERATIONS: Final = {"bit_and": "and", "bit_or": "or", "bit_xor": "xor"}


def integer_call(function: str, arguments: Sequence[Scalar | Known]) -> Scalar:
    """`function(arguments)`, computed in the type that the arguments promote to."""
    typed = [argument for argument in arguments if not isinstance(argument, Known)]
    for argument in typed:
        if not is_integer(argument.dtype) and not (argument.dtype == "i1" and function in _BITWISE):
            raise DtypeMismatchError(
                f"{function} of {argument.dtype}: it takes integers",
                hint="`and`, `or`, `not` and `!=` are for truth values",
            )
    if not typed:
        raise DtypeMismatchError(f"{function} of a number", hint="give it a type: cast(1, i32)")
    dtype = reduce(promote, (argument.dtype for argument in typed))
    operands = tuple(coerce(argument, dtype) for argument in arguments)
    if function == "bit_not":
        return Operation("xor", (*operands, Constant(-1, dtype)), dtype)
    return Operation(_OPERATIONS.get(function, function), operands, dtype)
