"""What scalar operations are on arrays, by name: `tapestry.algebra.scalars` without IR.

computed(Scalar("arith.addi", (i8, i8), i8), [np.int8(100), np.int8(100)])      # -56
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tapestry.algebra import functions
from tapestry.algebra.named import Scalar

Array = NDArray[Any]

_Function = Callable[..., Any]

_HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_NARROW = (*_HALVES, np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))

WIDE = (np.dtype(np.float32), np.dtype(np.float64))

FLOAT: dict[str, _Function] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.negf": np.negative,
    "arith.maximumf": functions.larger,
    "arith.minimumf": functions.smaller,
    "arith.maxnumf": functions.larger_number,
    "arith.minnumf": functions.smaller_number,
    "math.absf": np.abs,
    "math.acos": np.arccos,
    "math.acosh": np.arccosh,
    "math.asin": np.arcsin,
    "math.asinh": np.arcsinh,
    "math.atan": np.arctan,
    "math.atan2": np.arctan2,
    "math.atanh": np.arctanh,
    "math.cbrt": np.cbrt,
    "math.ceil": np.ceil,
    "math.copysign": np.copysign,
    "math.cos": np.cos,
    "math.cosh": np.cosh,
    "math.erf": functions.erf,
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.expm1": np.expm1,
    "math.floor": np.floor,
    "math.fma": functions.multiply_add,
    "math.log": np.log,
    "math.log10": np.log10,
    "math.log1p": np.log1p,
    "math.log2": np.log2,
    "math.powf": functions.power,
    "math.roundeven": np.rint,
    "math.round": functions.round_half_away,
    "math.rsqrt": functions.reciprocal_root,
    "math.sin": np.sin,
    "math.sinh": np.sinh,
    "math.sqrt": np.sqrt,
    "math.tan": np.tan,
    "math.tanh": np.tanh,
    "math.trunc": np.trunc,
}

COMPLEX: dict[str, _Function] = {
    "complex.abs": np.abs,
    "complex.add": np.add,
    "complex.angle": np.angle,
    "complex.conj": np.conjugate,
    "complex.cos": np.cos,
    "complex.create": functions.complex_of,
    "complex.div": np.divide,
    "complex.eq": np.equal,
    "complex.exp": np.exp,
    "complex.expm1": np.expm1,
    "complex.im": np.imag,
    "complex.log": np.log,
    "complex.log1p": np.log1p,
    "complex.mul": functions.complex_product,
    "complex.neg": np.negative,
    "complex.neq": np.not_equal,
    "complex.pow": np.power,
    "complex.re": np.real,
    "complex.rsqrt": functions.reciprocal_root,
    "complex.sign": np.sign,
    "complex.sin": np.sin,
    "complex.sqrt": np.sqrt,
    "complex.sub": np.subtract,
    "complex.tan": np.tan,
    "complex.tanh": np.tanh,
}
SIGNED: dict[str, _Function] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divsi": functions.divide_towards_zero,
    "arith.floordivsi": np.floor_divide,
    "arith.ceildivsi": functions.divide_up,
    "arith.remsi": np.fmod,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.shrsi": functions.shift_right,
    "math.absi": np.abs,
}
UNSIGNED: dict[str, _Function] = {
    "arith.divui": np.floor_divide,
    "arith.ceildivui": functions.divide_up,
    "arith.remui": np.fmod,
    "arith.maxui": np.maximum,
    "arith.minui": np.minimum,
    "arith.shli": np.left_shift,
    "arith.shrui": np.right_shift,
    "math.ctpop": np.bitwise_count,
}
BITS: dict[str, _Function] = {
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "math.ctlz": functions.count_leading_zeros,
    "math.cttz": functions.count_trailing_zeros,
}
_SIGNED_CASTS = ("arith.extsi", "arith.trunci", "arith.sitofp", "arith.fptosi", "arith.index_cast")
_UNSIGNED_CASTS = ("arith.extui", "arith.uitofp", "arith.fptoui")
_FLOAT_CASTS = ("arith.extf", "arith.truncf")

KNOWN = frozenset(
    {*FLOAT, *COMPLEX, *SIGNED, *UNSIGNED, *BITS}
    | {*_SIGNED_CASTS, *_UNSIGNED_CASTS, *_FLOAT_CASTS}
    | {"arith.select", "arith.cmpf", "arith.cmpi", "arith.bitcast", "complex.bitcast"}
)
"""The names of what `computed` knows."""


def computed(op: Scalar, *operands: Array) -> Array:
    """What an operation makes of its operands, which broadcast."""
    with np.errstate(all="ignore"):
        made = applied(op, operands)
        return made if made.dtype == op.result else made.astype(op.result)


def applied(op: Scalar, operands: Sequence[Array]) -> Array:
    """What an operation's function makes of its operands: floats stay in the operands' dtype."""
    with np.errstate(all="ignore"):
        return np.asarray(_applied(op, [np.asarray(operand) for operand in operands]))


def _applied(op: Scalar, operands: list[Array]) -> Any:
    name = op.name
    if name in FLOAT:
        return FLOAT[name](*map(widened, operands))
    if name in COMPLEX:
        return COMPLEX[name](*operands)
    if name in BITS:
        return BITS[name](*operands)
    if name in SIGNED:
        return _one_bit(SIGNED[name](*map(_signed, operands)), op)
    if name in UNSIGNED:
        return _one_bit(UNSIGNED[name](*map(_unsigned, operands)), op)
    match name:
        case "arith.select":
            return functions.select(*operands)
        case "arith.cmpf":
            return functions.compare_floats(op.predicate, *operands)
        case "arith.cmpi":
            view = _unsigned if op.predicate >= 6 else _signed
            return functions.compare_integers(op.predicate, *map(view, operands))
        case "arith.bitcast" | "complex.bitcast":
            return operands[0].view(op.result)
        case _:
            (source,) = operands
            if name in _SIGNED_CASTS:
                source = _signed(source)
            elif name in _UNSIGNED_CASTS:
                source = _unsigned(source)
            return _cast(source, op.result, name)


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


def _one_bit(x: Array, op: Scalar) -> Array:
    """An integer result; the lowest bit of it for an i1."""
    return _lowest_bit(x) if op.result == np.bool_ else x


def _lowest_bit(x: Array) -> Array:
    return (x & x.dtype.type(1)).astype(np.bool_)


def _cast(x: Array, dtype: np.dtype[Any], name: str) -> Array:
    if name in ("arith.fptosi", "arith.fptoui"):
        return functions.saturated(x, dtype, signed=name == "arith.fptosi")
    if dtype == np.bool_:
        return _lowest_bit(x)
    return x.astype(dtype) if np.issubdtype(dtype, np.integer) else to_float(x, dtype)


def to_float(x: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers as floats; those of 8 and 16 bits by way of float32."""
    return x.astype(np.float32).astype(dtype) if dtype in _NARROW else x.astype(dtype)
