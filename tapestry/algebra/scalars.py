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
from operator import methodcaller
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, math
from xdsl.dialects import complex as complex_dialect
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i1
from xdsl.ir import Attribute, Operation

from tapestry.algebra import functions
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.named import Scalar

Array = NDArray[Any]

_Function = Callable[..., Any]

_HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_NARROW = (*_HALVES, np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))

_WIDE = (np.dtype(np.float32), np.dtype(np.float64))

_FLOAT: dict[type[Operation], _Function] = {
    arith.AddfOp: np.add,
    arith.SubfOp: np.subtract,
    arith.MulfOp: np.multiply,
    arith.DivfOp: np.divide,
    arith.NegfOp: np.negative,
    arith.MaximumfOp: functions.larger,
    arith.MinimumfOp: functions.smaller,
    arith.MaxnumfOp: functions.larger_number,
    arith.MinnumfOp: functions.smaller_number,
    math.AbsFOp: np.abs,
    math.AcosOp: np.arccos,
    math.AcoshOp: np.arccosh,
    math.AsinOp: np.arcsin,
    math.AsinhOp: np.arcsinh,
    math.AtanOp: np.arctan,
    math.Atan2Op: np.arctan2,
    math.AtanhOp: np.arctanh,
    math.CbrtOp: np.cbrt,
    math.CeilOp: np.ceil,
    math.CopySignOp: np.copysign,
    math.CosOp: np.cos,
    math.CoshOp: np.cosh,
    math.ErfOp: functions.erf,
    math.ExpOp: np.exp,
    math.Exp2Op: np.exp2,
    math.ExpM1Op: np.expm1,
    math.FloorOp: np.floor,
    math.FmaOp: functions.multiply_add,
    math.LogOp: np.log,
    math.Log10Op: np.log10,
    math.Log1pOp: np.log1p,
    math.Log2Op: np.log2,
    math.PowFOp: functions.power,
    math.RoundEvenOp: np.rint,
    math.RoundOp: functions.round_half_away,
    math.RsqrtOp: functions.reciprocal_root,
    math.SinOp: np.sin,
    math.SinhOp: np.sinh,
    math.SqrtOp: np.sqrt,
    math.TanOp: np.tan,
    math.TanhOp: np.tanh,
    math.TruncOp: np.trunc,
}

_COMPLEX: dict[type[Operation], _Function] = {
    complex_dialect.AbsOp: np.abs,
    complex_dialect.AddOp: np.add,
    complex_dialect.AngleOp: np.angle,
    complex_dialect.ConjOp: np.conjugate,
    complex_dialect.CosOp: np.cos,
    complex_dialect.CreateOp: functions.complex_of,
    complex_dialect.DivOp: np.divide,
    complex_dialect.EqualOp: np.equal,
    complex_dialect.ExpOp: np.exp,
    complex_dialect.Expm1Op: np.expm1,
    complex_dialect.ImOp: np.imag,
    complex_dialect.LogOp: np.log,
    complex_dialect.Log1pOp: np.log1p,
    complex_dialect.MulOp: functions.complex_product,
    complex_dialect.NegOp: np.negative,
    complex_dialect.NotEqualOp: np.not_equal,
    complex_dialect.PowOp: np.power,
    complex_dialect.ReOp: np.real,
    complex_dialect.RsqrtOp: functions.reciprocal_root,
    complex_dialect.SignOp: np.sign,
    complex_dialect.SinOp: np.sin,
    complex_dialect.SqrtOp: np.sqrt,
    complex_dialect.SubOp: np.subtract,
    complex_dialect.TanOp: np.tan,
    complex_dialect.TanhOp: np.tanh,
}
_SIGNED: dict[type[Operation], _Function] = {
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.DivSIOp: functions.divide_towards_zero,
    arith.FloorDivSIOp: np.floor_divide,
    arith.CeilDivSIOp: functions.divide_up,
    arith.RemSIOp: np.fmod,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
    arith.ShRSIOp: functions.shift_right,
    math.AbsIOp: np.abs,
}
_UNSIGNED: dict[type[Operation], _Function] = {
    arith.DivUIOp: np.floor_divide,
    arith.CeilDivUIOp: functions.divide_up,
    arith.RemUIOp: np.fmod,
    arith.MaxUIOp: np.maximum,
    arith.MinUIOp: np.minimum,
    arith.ShLIOp: np.left_shift,
    arith.ShRUIOp: np.right_shift,
    math.CtPopOp: np.bitwise_count,
}
_BITS: dict[type[Operation], _Function] = {
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    math.CountLeadingZerosOp: functions.count_leading_zeros,
    math.CountTrailingZerosOp: functions.count_trailing_zeros,
}
_SIGNED_CASTS = (arith.ExtSIOp, arith.TruncIOp, arith.SIToFPOp, arith.FPToSIOp, arith.IndexCastOp)
_UNSIGNED_CASTS = (arith.ExtUIOp, arith.UIToFPOp, arith.FPToUIOp)
_FLOAT_CASTS = (arith.ExtFOp, arith.TruncFOp)

_MEANT = frozenset(
    {*_FLOAT, *_COMPLEX, *_SIGNED, *_UNSIGNED, *_BITS}
    | {*_SIGNED_CASTS, *_UNSIGNED_CASTS, *_FLOAT_CASTS}
    | {arith.ConstantOp, arith.SelectOp, arith.CmpfOp, arith.CmpiOp, arith.BitcastOp}
    | {complex_dialect.ConstantOp, complex_dialect.BitcastOp}
)


def has_meaning(op: Operation) -> bool:
    """Whether `compute` knows an operation."""
    return type(op) in _MEANT


def function_of(op: Operation) -> _Function | None:
    """A function of arrays that does what `compute` does with them, where one alone does it.

    It gives its result the dtype of the operation's. None where operands or results are converted.
    """
    kind, dtypes = type(op), {numpy_dtype(value.type) for value in (*op.operands, *op.results)}
    result = numpy_dtype(op.results[0].type)
    match op:
        case arith.SelectOp():
            return functions.select
        case arith.CmpfOp() if numpy_dtype(op.lhs.type) in _WIDE:
            return functions.ordered_comparison(op.predicate.value.data)
        case arith.CmpiOp() if op.predicate.value.data < 6 and op.lhs.type != i1:
            return partial(functions.compare_integers, op.predicate.value.data)
        case arith.SIToFPOp() | arith.ExtSIOp() if op.operands[0].type == i1:
            return None
        case arith.SIToFPOp() | arith.ExtFOp() | arith.TruncFOp() if result in _WIDE:
            return methodcaller("astype", result)
        case arith.ExtSIOp() | arith.ExtUIOp() if (
            op.operands[0].type == i1 or kind is arith.ExtSIOp
        ):
            return methodcaller("astype", result)
        case _:
            pass
    if len(dtypes) != 1:
        return None
    (dtype,) = dtypes
    if dtype in _WIDE:
        return _FLOAT.get(kind)
    if dtype == np.bool_:
        return _BITS.get(kind)
    return {**_BITS, **_SIGNED}.get(kind) if dtype.kind == "i" else None


def scalar_of(op: Operation) -> Scalar | None:
    """What an operation is called, on which dtypes; None of what is no function of numbers."""
    if not has_meaning(op) or isinstance(op, arith.ConstantOp | complex_dialect.ConstantOp):
        return None
    dtypes = tuple(numpy_dtype(operand.type) for operand in op.operands)
    predicate = 0
    if isinstance(op, arith.CmpfOp | arith.CmpiOp):
        predicate = op.predicate.value.data
    return Scalar(op.name, dtypes, numpy_dtype(op.results[0].type), predicate)


def compute(op: Operation, operands: Sequence[Array]) -> Array:
    """What an operation that has a meaning makes of its operands, which broadcast."""
    computed = apply(op, operands)
    dtype = numpy_dtype(op.results[0].type)
    with np.errstate(all="ignore"):
        return computed if computed.dtype == dtype else computed.astype(dtype)


def apply(op: Operation, operands: Sequence[Array]) -> Array:
    """What an operation's function makes of its operands: floats stay in the operands' dtype."""
    with np.errstate(all="ignore"):
        return np.asarray(_compute(op, [np.asarray(operand) for operand in operands]))


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
    return _to_float(np.asarray(value, np.float64), dtype)


def _compute(op: Operation, operands: list[Array]) -> Any:
    kind = type(op)
    if kind in _FLOAT:
        return _FLOAT[kind](*map(widened, operands))
    if kind in _COMPLEX:
        return _COMPLEX[kind](*operands)
    if kind in _BITS:
        return _BITS[kind](*operands)
    if kind in _SIGNED:
        return _one_bit(_SIGNED[kind](*map(_signed, operands)), op)
    if kind in _UNSIGNED:
        return _one_bit(_UNSIGNED[kind](*map(_unsigned, operands)), op)
    result = op.results[0].type
    match op:
        case arith.ConstantOp():
            return constant(_value(op.value), result)
        case complex_dialect.ConstantOp():
            real, imaginary = (_value(part) for part in op.value)
            return np.asarray(complex(real, imaginary), numpy_dtype(result))
        case arith.SelectOp():
            return functions.select(*operands)
        case arith.CmpfOp():
            return functions.compare_floats(op.predicate.value.data, *operands)
        case arith.CmpiOp():
            predicate = op.predicate.value.data
            view = _unsigned if predicate >= 6 else _signed
            return functions.compare_integers(predicate, *map(view, operands))
        case arith.BitcastOp() | complex_dialect.BitcastOp():
            return operands[0].view(numpy_dtype(result))
        case _:
            (source,) = operands
            if kind in _SIGNED_CASTS:
                source = _signed(source)
            elif kind in _UNSIGNED_CASTS:
                source = _unsigned(source)
            return _cast(source, numpy_dtype(result), kind)


def _value(part: Attribute) -> float:
    assert isinstance(part, IntegerAttr | FloatAttr)
    return part.value.data


def widened(x: Array) -> Array:
    """Numbers in the type that they compute in: 16-bit floats in float32."""
    return x.astype(np.float32) if x.itemsize == 2 and x.dtype in _HALVES else x


def _signed(x: Array) -> Array:
    """Integers as signed ones; a true i1 is -1."""
    return -x.astype(np.int8) if x.dtype == np.bool_ else x


def _unsigned(x: Array) -> Array:
    """Integers as unsigned ones of their bits; a true i1 is 1."""
    if x.dtype == np.bool_:
        return x.astype(np.uint8)
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x


def _one_bit(x: Array, op: Operation) -> Array:
    """An integer result; the lowest bit of it for an i1."""
    return _lowest_bit(x) if numpy_dtype(op.results[0].type) == np.bool_ else x


def _lowest_bit(x: Array) -> Array:
    return (x & x.dtype.type(1)).astype(np.bool_)


def _cast(x: Array, dtype: np.dtype[Any], kind: type[Operation]) -> Array:
    if kind in (arith.FPToSIOp, arith.FPToUIOp):
        return functions.saturated(x, dtype, signed=kind is arith.FPToSIOp)
    if dtype == np.bool_:
        return _lowest_bit(x)
    return x.astype(dtype) if np.issubdtype(dtype, np.integer) else _to_float(x, dtype)


def _to_float(x: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers as floats; those of 8 and 16 bits by way of float32."""
    return x.astype(np.float32).astype(dtype) if dtype in _NARROW else x.astype(dtype)
