"""What every scalar operation of a body means: one function on arrays per operation.

    %p = arith.mulf %x, %w : f32        on arrays of shapes (4, 1) and (1, 5) gives one of (4, 5)

Executors evaluate by it, and lowerings fold constants by it, so that both mean the same. Every
operation keeps the dtype its IR type says, and every one is total:

* 16-bit floats compute in float32, and each result is rounded;
* integers wrap; division by zero gives 0 and remainder 0, shifting out every bit leaves 0 or the
  sign; an i1 is an integer of one bit, so true is -1 where the operation is signed;
* floats become integers by truncation, the nearest integer there is where that is out of range, and
  0 for NaN; f64 and integers become narrower floats by way of float32, as in PyTorch;
  f8E4M3FN overflows to NaN, f8E5M2 to infinity;
* a complex number is two floats; a product is `(a c - b d) + (a d + b c) i`, each operation
  rounded, and NaN where that is: also where one overflows on the way.

    >>> from xdsl.dialects.builtin import IntegerAttr, i8
    >>> op = arith.ConstantOp(IntegerAttr(100, i8))
    >>> compute(arith.AddiOp(op, op), [np.int8(100), np.int8(100)]).item()
    -56
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects import complex as complex_dialect
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i1
from xdsl.ir import Attribute, Operation

from tapestry.algebra import functions
from tapestry.algebra.computing import BITS, FLOAT, KNOWN, SIGNED, WIDE, applied, computed, to_float
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.named import Scalar

Array = NDArray[Any]

_Function = Callable[..., Any]

_CONSTANTS = (arith.ConstantOp, complex_dialect.ConstantOp)


def has_meaning(op: Operation) -> bool:
    """Whether `compute` knows an operation."""
    return op.name in KNOWN or isinstance(op, _CONSTANTS)


def function_of(op: Operation) -> _Function | None:
    """A function of arrays that does what `compute` does with them, where one alone does it.

    It gives its result the dtype of the operation's. None where operands or results are converted.
    """
    dtypes = {numpy_dtype(value.type) for value in (*op.operands, *op.results)}
    result = numpy_dtype(op.results[0].type)
    match op:
        case arith.SelectOp():
            return functions.select
        case arith.CmpfOp() if numpy_dtype(op.lhs.type) in WIDE:
            return functions.ordered_comparison(op.predicate.value.data)
        case arith.CmpiOp() if op.predicate.value.data < 6 and op.lhs.type != i1:
            return partial(functions.compare_integers, op.predicate.value.data)
        case arith.SIToFPOp() | arith.ExtSIOp() if op.operands[0].type == i1:
            return None
        case arith.SIToFPOp() | arith.ExtFOp() | arith.TruncFOp() if result in WIDE:
            return partial(functions.as_dtype, result)
        case arith.ExtSIOp() | arith.ExtUIOp() if op.operands[0].type == i1 or isinstance(
            op, arith.ExtSIOp
        ):
            return partial(functions.as_dtype, result)
        case _:
            pass
    if len(dtypes) != 1:
        return None
    (dtype,) = dtypes
    if dtype in WIDE:
        return FLOAT.get(op.name)
    if dtype == np.bool_:
        return BITS.get(op.name)
    return {**BITS, **SIGNED}.get(op.name) if dtype.kind == "i" else None


def scalar_of(op: Operation) -> Scalar | None:
    """What an operation is called, on which dtypes; None of what is no function of numbers."""
    if op.name not in KNOWN:
        return None
    dtypes = tuple(numpy_dtype(operand.type) for operand in op.operands)
    predicate = 0
    if isinstance(op, arith.CmpfOp | arith.CmpiOp):
        predicate = op.predicate.value.data
    return Scalar(op.name, dtypes, numpy_dtype(op.results[0].type), predicate)


def compute(op: Operation, operands: Sequence[Array]) -> Array:
    """What an operation that has a meaning makes of its operands, which broadcast."""
    scalar = scalar_of(op)
    return _constant(op) if scalar is None else computed(scalar, *operands)


def apply(op: Operation, operands: Sequence[Array]) -> Array:
    """What an operation's function makes of its operands: floats stay in the operands' dtype."""
    scalar = scalar_of(op)
    return _constant(op) if scalar is None else applied(scalar, operands)


def exact_value(value: float, element: Attribute) -> int | float | bool:
    """The number of a type that is nearest to `value`, as Python's own."""
    return constant(value, element).item()


def constant(value: float, element: Attribute) -> Array:
    """A constant of a type, as an array without dimensions; integers keep their low bits."""
    dtype = numpy_dtype(element)
    if dtype == np.bool_:
        return np.asarray(bool(value))
    if np.issubdtype(dtype, np.integer):
        bits = int(value) & ((1 << 8 * dtype.itemsize) - 1)
        return np.asarray(bits, f"u{dtype.itemsize}").view(dtype)
    return to_float(np.asarray(value, np.float64), dtype)


def _constant(op: Operation) -> Array:
    assert isinstance(op, _CONSTANTS)
    if isinstance(op, arith.ConstantOp):
        return constant(_value(op.value), op.result.type)
    real, imaginary = (_value(part) for part in op.value)
    return np.asarray(complex(real, imaginary), numpy_dtype(op.complex.type))


def _value(part: Attribute) -> float:
    assert isinstance(part, IntegerAttr | FloatAttr)
    return part.value.data
