"""Programs over the reals in numbers of two float64, where there is no wider float.

    evaluate_program(module, [arithmetic.admit(draw) for draw in draws], Doubled())

A cell is `DOUBLED`: a float64 and what it lacks. What is infinite, NaN, or a signed zero is so in
float64, which has the same range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.ir import Attribute, Operation

from tapestry.algebra.dtypes import is_float, numpy_dtype
from tapestry.algebra.functions import compare_floats
from tapestry.algebra.scalars import apply
from tapestry.diagnostics import InvalidProgramError
from tapestry.locations import nearest_location
from tapestry.proving import double_functions as functions
from tapestry.proving import doubles
from tapestry.proving.doubles import Array, Double
from tapestry.proving.floats import CLOSE, NARROW, STEPS, FloatArithmetic, erf
from tapestry.proving.inputs import Draw
from tapestry.proving.literals import CONSTANTS, Real, meaning

DOUBLED = np.dtype([("real", np.float64), ("rest", np.float64)])
"""A float: what float64 holds of it, and the rest."""

BITS = 105
"""Bits of a number that are sure, as `np.finfo(...).nmant` counts them."""


def plain(x: Array) -> Array:
    """Floats as float64, or as they are."""
    return x["real"] if x.dtype == DOUBLED else x


def minus(x: Array, y: Array) -> Array:
    """The difference of floats of any kind, as ordinary ones; both are finite."""
    difference = plain(x) - plain(y)
    for side, sign in ((x, 1), (y, -1)):
        if side.dtype == DOUBLED:
            difference = difference + sign * side["rest"]
    return difference


def _parts(x: Array) -> Double:
    return x["real"], x["rest"]


def _packed(high: Array, low: Array) -> Array:
    made = np.empty(np.broadcast_shapes(high.shape, low.shape), DOUBLED)
    made["real"], made["rest"] = high, low
    return made


def _multiply_add(a: Double, b: Double, c: Double) -> Double:
    return doubles.add(doubles.multiply(a, b), c)


def _reciprocal_root(a: Double) -> Double:
    return doubles.divide(functions.ONE, doubles.square_root(a))


_Function = Callable[..., Double]

_FUNCTIONS: dict[type[Operation], _Function] = {
    arith.AddfOp: doubles.add,
    arith.SubfOp: doubles.subtract,
    arith.MulfOp: doubles.multiply,
    arith.DivfOp: doubles.divide,
    arith.NegfOp: doubles.negate,
    math.AbsFOp: doubles.absolute,
    math.AcosOp: functions.arc_cosine,
    math.AcoshOp: functions.area_cosine,
    math.AsinOp: functions.arc_sine,
    math.AsinhOp: functions.area_sine,
    math.AtanOp: functions.arc_tangent,
    math.Atan2Op: functions.angle,
    math.AtanhOp: functions.area_tangent,
    math.CbrtOp: functions.cube_root,
    math.CeilOp: doubles.ceiling,
    math.CosOp: functions.cosine,
    math.CoshOp: functions.hyperbolic_cosine,
    math.ErfOp: functions.error_function,
    math.ExpOp: functions.exponential,
    math.Exp2Op: functions.exponential_2,
    math.ExpM1Op: functions.exponential_less_one,
    math.FloorOp: doubles.floor,
    math.FmaOp: _multiply_add,
    math.LogOp: functions.logarithm,
    math.Log10Op: functions.logarithm_10,
    math.Log1pOp: functions.logarithm_of_one_more,
    math.Log2Op: functions.logarithm_2,
    math.PowFOp: functions.power,
    math.RoundEvenOp: doubles.round_half_even,
    math.RoundOp: doubles.round_half_away,
    math.RsqrtOp: _reciprocal_root,
    math.SinOp: functions.sine,
    math.SinhOp: functions.hyperbolic_sine,
    math.SqrtOp: doubles.square_root,
    math.TanOp: functions.tangent,
    math.TanhOp: functions.hyperbolic_tangent,
    math.TruncOp: doubles.truncate,
}

_CHOICES = (arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp)
_SUMS = (arith.AddfOp, arith.MulfOp, arith.MaximumfOp, arith.MinimumfOp)


class Doubled(FloatArithmetic):
    """Every float of a program as two float64."""

    def __init__(self, *, round_casts: bool = False) -> None:
        super().__init__(NARROW, round_casts=round_casts)

    def dtype(self, element: Attribute) -> np.dtype[Any]:
        return DOUBLED if is_float(element) else numpy_dtype(element)

    def admit(self, draw: Draw) -> Array:
        """A drawn input."""
        if not draw.is_float:
            return draw.numbers
        high, low = doubles.of_integers(draw.numbers.astype(np.int64))
        return _packed(np.ldexp(high, -draw.exponent), np.ldexp(low, -draw.exponent))

    def constant(self, value: float, element: Attribute) -> Array:
        if not is_float(element):
            return super().constant(value, element)
        found = meaning(float(value), element)
        if found is None:
            return _packed(np.asarray(value, np.float64), np.asarray(0.0))
        return _packed(*_meant(found))

    def exact(self, data: Array) -> Array:
        """Floats as they are."""
        high = data.astype(np.float64)
        return _packed(high, np.zeros_like(high))

    def compute(self, op: Operation, operands: Sequence[Array]) -> Array:
        element = op.results[0].type
        match op:
            case arith.ConstantOp(value=FloatAttr() as literal):
                return self.constant(literal.value.data, element)
            case arith.ExtFOp() | arith.TruncFOp():
                (x,) = operands
                return self.exact(plain(x).astype(numpy_dtype(element))) if self.round_casts else x
            case arith.SelectOp():
                return np.where(*operands)
            case arith.SIToFPOp() | arith.UIToFPOp():
                return self._of_integers(op, operands[0])
            case arith.CmpfOp():
                return self._compare(op, operands[0], operands[1])
            case arith.FPToSIOp() | arith.FPToUIOp():
                return self._to_integers(op, operands[0])
            case _:
                if not is_float(element) and not any(x.dtype == DOUBLED for x in operands):
                    return super().compute(op, operands)
        return self._function(op, operands)

    def _function(self, op: Operation, operands: Sequence[Array]) -> Array:
        """A function of floats: float64 says where it is not finite, or a zero."""
        with np.errstate(all="ignore"):
            values = [_parts(x) for x in operands]
            near = self._near(op, [high for high, _ in values])
            if isinstance(op, _CHOICES):
                (a, b), largest = values, isinstance(op, arith.MaximumfOp | arith.MaxnumfOp)
                first = doubles.is_less(b, a) if largest else doubles.is_less(a, b)
                high, low = doubles.where(first, a, b)
            elif isinstance(op, math.CopySignOp):
                a, b = values
                turned = np.signbit(a[0]) != np.signbit(b[0])
                high, low = doubles.where(turned, doubles.negate(a), a)
            elif type(op) in _FUNCTIONS:
                high, low = _FUNCTIONS[type(op)](*values)
            else:
                raise InvalidProgramError(
                    f"{op.name} has no meaning over the reals", location=nearest_location(op)
                )
            sure = np.isfinite(near) & np.isfinite(high) & np.isfinite(low)
            sure &= (high != 0) | (near != 0)  # a zero has float64's sign
        found = _packed(np.where(sure, high, near), np.where(sure, low, 0.0))
        if isinstance(op, STEPS):
            self._doubt_step(operands[0])
        else:
            self._doubt(op, [plain(x) for x in operands], found["real"])
        return found

    def _near(self, op: Operation, operands: Sequence[Array]) -> Array:
        """What float64 makes of it."""
        near = erf(operands[0]) if isinstance(op, math.ErfOp) else apply(op, operands)
        return np.asarray(near, np.float64)

    def _doubt_step(self, x: Array) -> None:
        """Count the numbers that are hardly beside a whole one, or a half."""
        with np.errstate(all="ignore"):
            twice = self.exact(np.rint(2 * plain(x)))
            self._doubt_close(_packed(*doubles.scaled(_parts(x), 2.0)), twice)

    def _doubt_close(self, x: Array, y: Array) -> None:
        """Count the pairs that differ, but hardly."""
        gap = np.abs(minus(x, y))
        size = np.maximum(np.abs(plain(x)), np.abs(plain(y)))
        close = (gap > 0) & (gap < CLOSE * np.maximum(size, 1e-6)) & np.isfinite(gap)
        self.doubts.close_calls += int(np.count_nonzero(close))

    def _of_integers(self, op: Operation, x: Array) -> Array:
        if x.dtype == np.bool_:
            return self.exact(x.astype(np.float64) * (-1 if isinstance(op, arith.SIToFPOp) else 1))
        unsigned = isinstance(op, arith.UIToFPOp)
        wide = x.view(f"u{x.itemsize}").astype(np.uint64) if unsigned else x.astype(np.int64)
        return _packed(*doubles.of_integers(wide))

    def _compare(self, op: arith.CmpfOp, x: Array, y: Array) -> Array:
        with np.errstate(all="ignore"):
            self._doubt_close(x, y)
        same = plain(x) == plain(y)
        a, b = (np.where(same & np.isfinite(plain(v)), v["rest"], plain(v)) for v in (x, y))
        return compare_floats(op.predicate.value.data, a, b)

    def _to_integers(self, op: Operation, x: Array) -> Array:
        self._doubt_step(x)
        whole = _packed(*doubles.truncate(_parts(x)))
        found = apply(op, [np.where(np.isfinite(plain(x)), plain(whole), plain(x))])
        # Beyond 2^53 a whole number may have a rest.
        large = (np.abs(plain(x)) > 2.0**53) & (np.abs(plain(x)) < 2.0**62)
        return found + np.where(large, whole["rest"], 0).astype(found.dtype)

    def fold(self, primitive: type[Operation], cells: Array, axes: tuple[int, ...]) -> Array | None:
        """The fold of some axes by halves; None for what is not an operation on floats."""
        if cells.dtype != DOUBLED or primitive not in _SUMS or not self.folds_whole:
            return None
        kept = [axis for axis in range(cells.ndim) if axis not in axes]
        moved = np.transpose(cells, [*axes, *kept])
        left = moved.reshape(-1, *(cells.shape[axis] for axis in kept))
        if not len(left):
            return None
        op = primitive.create(operands=[], result_types=[f64])  # its name alone is asked for
        while len(left) > 1:
            half = len(left) // 2
            joined = self._function(op, [left[:half], left[half : 2 * half]])
            left = np.concatenate([joined, left[2 * half :]])
        return left[0]


def _meant(real: Real) -> Double:
    number = doubles.exactly(real.factor)
    if real.root:
        root = doubles.square_root(doubles.absolute(number))
        number = doubles.negate(root) if real.factor < 0 else root
    if real.name is not None:
        number = doubles.multiply(number, doubles.exactly(Fraction(CONSTANTS[real.name])))
    return number
