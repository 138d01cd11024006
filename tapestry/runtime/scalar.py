"""Bodies evaluated over whole arrays: each scalar operation is one NumPy call.

    wrap (%x: f32, %w: f32) { %p = arith.mulf %x, %w : f32  loom.yield %p : f32 }

evaluated on arrays of shapes (4, 1, 8) and (1, 5, 8) gives one array of shape (4, 5, 8). Every
operation keeps the dtype its IR type says; integers wrap, and no warning is raised for what IEEE
754 defines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tapestry.algebra.bodies import needed_operations
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.philox import philox_word
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import loom
from tapestry.locations import location_of
from tapestry.runtime.executor import Array

Coordinate = Callable[[int], Array]
"""The coordinates along an index dimension, broadcastable to the index space."""

_Compute = Callable[..., Any]


def _erf(x: Array) -> Array:
    from scipy.special import erf  # pyright: ignore[reportMissingTypeStubs]

    # SciPy has no loops for 16-bit floats: compute wider and round once.
    return erf(x) if x.dtype.itemsize >= 4 else erf(x.astype(np.float32))


def _divide_towards_zero(a: Array, b: Array) -> Array:
    quotient = np.floor_divide(a, b)
    inexact = (a % b != 0) & ((a < 0) != (b < 0))
    return quotient + inexact.astype(quotient.dtype)


def _round_half_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)


def _reciprocal_root(x: Array) -> Array:
    return x.dtype.type(1) / np.sqrt(x)


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def _ordered(a: Array, b: Array) -> Array:
    return ~(np.isnan(a) | np.isnan(b))


def _ordered_and_different(a: Array, b: Array) -> Array:
    return (a != b) & _ordered(a, b)


def _ceil_divide(a: Array, b: Array) -> Array:
    quotient = np.floor_divide(a, b)
    return quotient + (a % b != 0).astype(quotient.dtype)


_PLAIN: dict[type[Operation], _Compute] = {
    arith.AddfOp: np.add,
    arith.SubfOp: np.subtract,
    arith.MulfOp: np.multiply,
    arith.DivfOp: np.divide,
    arith.NegfOp: np.negative,
    arith.MaximumfOp: np.maximum,
    arith.MinimumfOp: np.minimum,
    arith.MaxnumfOp: np.fmax,
    arith.MinnumfOp: np.fmin,
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.DivSIOp: _divide_towards_zero,
    arith.FloorDivSIOp: np.floor_divide,
    arith.CeilDivSIOp: _ceil_divide,
    arith.RemSIOp: np.fmod,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.SelectOp: np.where,
    math.ExpOp: np.exp,
    math.Exp2Op: np.exp2,
    math.ExpM1Op: np.expm1,
    math.LogOp: np.log,
    math.Log2Op: np.log2,
    math.Log10Op: np.log10,
    math.Log1pOp: np.log1p,
    math.SqrtOp: np.sqrt,
    math.RsqrtOp: _reciprocal_root,
    math.SinOp: np.sin,
    math.CosOp: np.cos,
    math.TanOp: np.tan,
    math.TanhOp: np.tanh,
    math.ErfOp: _erf,
    math.AbsFOp: np.abs,
    math.AbsIOp: np.abs,
    math.FloorOp: np.floor,
    math.CeilOp: np.ceil,
    math.RoundOp: _round_half_away,
    math.RoundEvenOp: np.rint,
    math.TruncOp: np.trunc,
    math.PowFOp: np.power,
    math.CopySignOp: np.copysign,
    math.FmaOp: _multiply_add,
    math.Atan2Op: np.arctan2,
}

_TRUTH: dict[type[Operation], _Compute] = {
    arith.AddiOp: np.logical_xor,
    arith.SubiOp: np.logical_xor,
    arith.MuliOp: np.logical_and,
    # A signed truth value is 0 or -1: true is the smaller.
    arith.MaxSIOp: np.logical_and,
    arith.MinSIOp: np.logical_or,
}
"""What differs on i1, which NumPy keeps as truth values."""

_CASTS: tuple[type[Operation], ...] = (
    arith.ExtFOp,
    arith.TruncFOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    arith.FPToSIOp,
    arith.TruncIOp,
    arith.ExtUIOp,
)

_ORDERED: dict[int, _Compute] = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
    6: _ordered_and_different,
    7: _ordered,
}
"""cmpf predicates 1..7 are false on NaN; 8..14 are the same but true on NaN, see `_compare`."""

_INTEGER_ORDER: tuple[_Compute, ...] = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
)


def _compare_floats(predicate: int, a: Array, b: Array) -> Array:
    if predicate in (0, 15):
        return np.full(np.broadcast_shapes(a.shape, b.shape), predicate == 15)
    if predicate <= 7:
        return _ORDERED[predicate](a, b)
    unordered = np.isnan(a) | np.isnan(b)
    # ueq, ugt, uge, ult, ule, une, uno
    return unordered if predicate == 14 else unordered | _ORDERED[predicate - 7](a, b)


def _compare_integers(predicate: int, a: Array, b: Array) -> Array:
    if predicate >= 6:
        unsigned = np.dtype(f"u{a.dtype.itemsize}")
        a, b = a.astype(unsigned), b.astype(unsigned)
        predicate -= 4
    elif a.dtype == np.bool_ and predicate >= 2:
        # A signed truth value is 0 or -1.
        a, b = b, a
    return _INTEGER_ORDER[predicate](a, b)


def _cast(x: Array, result: Attribute, op: Operation) -> Array:
    dtype = numpy_dtype(result)
    if dtype == np.bool_:
        # Truncation to one bit keeps the lowest.
        return (x.astype(np.int64) & 1).astype(np.bool_)
    if isinstance(op, arith.ExtUIOp | arith.UIToFPOp) and x.dtype != np.bool_:
        x = x.astype(np.dtype(f"u{x.dtype.itemsize}"))
    if isinstance(op, arith.SIToFPOp) and x.dtype == np.bool_:
        return -x.astype(dtype)
    return x.astype(dtype)


def _constant(op: arith.ConstantOp) -> Array:
    value = op.value
    assert isinstance(value, IntegerAttr | FloatAttr)
    dtype = numpy_dtype(op.result.type)
    if dtype == np.bool_:
        return np.asarray(bool(value.value.data))
    return np.asarray(value.value.data).astype(dtype)


def _compute(op: Operation, operands: Sequence[Array], coordinate: Coordinate) -> Array:
    plain = _PLAIN.get(type(op))
    if type(op) in _TRUTH and operands[0].dtype == np.bool_:
        plain = _TRUTH[type(op)]
    if plain is not None:
        return plain(*operands)
    match op:
        case arith.ConstantOp():
            return _constant(op)
        case loom.IndexOp():
            return coordinate(op.dimension)
        case loom.RandomOp():
            return philox_word(operands[0], operands[1], op.position)
        case arith.CmpfOp():
            return _compare_floats(op.predicate.value.data, operands[0], operands[1])
        case arith.CmpiOp():
            return _compare_integers(op.predicate.value.data, operands[0], operands[1])
        case arith.ExtSIOp():
            x = operands[0]
            wide = x.astype(numpy_dtype(op.result.type))
            return -wide if x.dtype == np.bool_ else wide
        case _ if isinstance(op, _CASTS):
            return _cast(operands[0], op.results[0].type, op)
        case _:
            raise InvalidProgramError(
                f"{op.name} has no meaning on NumPy arrays", location=location_of(op)
            )


def reduction(primitive: type[Operation] | None) -> np.ufunc | None:
    """The NumPy function whose `reduce` folds by a scalar operation, or None."""
    found = None if primitive is None else _PLAIN.get(primitive)
    return found if isinstance(found, np.ufunc) else None


def evaluate(
    block: Block,
    arguments: Sequence[Array],
    coordinate: Coordinate,
    wanted: Sequence[SSAValue] | None = None,
) -> list[Array]:
    """What a body yields for arrays of cells that broadcast against each other.

    With `wanted`, the values of the body to compute instead; only what they need is computed.
    """
    values: dict[SSAValue, Array] = dict(zip(block.args, arguments, strict=True))
    if wanted is None:
        terminator = block.last_op
        wanted = () if terminator is None else tuple(terminator.operands)
    needed = needed_operations(wanted)
    with np.errstate(all="ignore"):
        for op in block.ops:
            if op not in needed:
                continue
            operands = [values[operand] for operand in op.operands]
            result = op.results[0]
            computed = np.asarray(_compute(op, operands, coordinate))
            dtype = numpy_dtype(result.type)
            values[result] = computed if computed.dtype == dtype else computed.astype(dtype)
    return [values[value] for value in wanted]
