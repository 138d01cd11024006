"""Programs over the reals, to the precision of one float type for every float of the program.

A `FloatArithmetic` runs every float, whatever its type, in `float64` or a wider type. Casts between
floats are the identity, or really round. Integers are those of their types. What could make a
result untrustworthy (overflow, underflow, comparisons too close to call) is counted as it happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute, Operation

from tapestry.algebra.dtypes import is_float, numpy_dtype
from tapestry.algebra.scalars import apply
from tapestry.proving.literals import CONSTANTS, Real, meaning
from tapestry.runtime.executor import Array

WIDE = np.dtype(np.longdouble)
"""The widest float of this machine: 80 bits on x86, more or less elsewhere."""

NARROW = np.dtype(np.float64)

HAS_WIDE = np.finfo(WIDE).nmant > np.finfo(NARROW).nmant
"""Whether there is a float wider than float64 at all."""

CLOSE = 1e-13
"""A comparison of numbers that differ by less than this share of them is too close to call."""

STEPS = (math.FloorOp, math.CeilOp, math.RoundOp, math.RoundEvenOp, math.TruncOp, arith.FPToSIOp)
"""Operations that jump where a number is whole, or half of one."""

_VANISHING = (math.ExpOp, math.Exp2Op, arith.MulfOp, arith.DivfOp)


@dataclass
class Doubts:
    """Events, by cell, after which a difference need not be one over the reals."""

    overflows: int = 0
    underflows: int = 0
    close_calls: int = 0

    def __bool__(self) -> bool:
        return bool(self.overflows or self.underflows or self.close_calls)

    def __str__(self) -> str:
        counts = {
            "overflows": self.overflows,
            "underflows": self.underflows,
            "comparisons too close to call": self.close_calls,
        }
        return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


class FloatArithmetic:
    """Every float of a program in one float type."""

    def __init__(self, real: np.dtype[Any], *, round_casts: bool = False) -> None:
        self.real = real
        self.round_casts = round_casts
        self.doubts = Doubts()
        self.folds_whole = True
        """Whether folds may be one call of NumPy's, rather than the merge point by point."""

    def dtype(self, element: Attribute) -> np.dtype[Any]:
        return self.real if is_float(element) else numpy_dtype(element)

    def constant(self, value: float, element: Attribute) -> Array:
        if not is_float(element):
            return np.asarray(value).astype(numpy_dtype(element))
        found = meaning(float(value), element)
        return np.asarray(value, self.real) if found is None else self._real(found)

    def exact(self, data: Array) -> Array:
        """Floats as they are."""
        return data.astype(self.real)

    def _real(self, real: Real) -> Array:
        kind = self.real.type
        number = kind(str(real.factor.numerator)) / kind(str(real.factor.denominator))
        if real.root:
            number = np.copysign(np.sqrt(np.abs(number)), number)
        if real.name is not None:
            number = number * kind(CONSTANTS[real.name])
        return np.asarray(number, self.real)

    def compute(self, op: Operation, operands: Sequence[Array]) -> Array:
        element = op.results[0].type
        match op:
            case arith.ConstantOp(value=FloatAttr() as literal):
                return self.constant(literal.value.data, element)
            case arith.ExtFOp() | arith.TruncFOp():
                return self._cast(operands[0], element)
            case arith.SIToFPOp() | arith.UIToFPOp():
                result = self._from_integers(op, operands[0])
            case math.ErfOp():
                result = erf(operands[0])
            case _:
                result = apply(op, operands)
        dtype = self.dtype(element)
        result = result if result.dtype == dtype else result.astype(dtype)
        self._doubt(op, operands, result)
        return result

    def _cast(self, x: Array, element: Attribute) -> Array:
        return x.astype(numpy_dtype(element)).astype(self.real) if self.round_casts else x

    def _from_integers(self, op: Operation, x: Array) -> Array:
        if x.dtype == np.bool_:
            return x.astype(self.real) * (-1 if isinstance(op, arith.SIToFPOp) else 1)
        return (x.view(f"u{x.dtype.itemsize}") if isinstance(op, arith.UIToFPOp) else x).astype(
            self.real
        )

    def _doubt(self, op: Operation, operands: Sequence[Array], result: Array) -> None:
        if isinstance(op, arith.CmpfOp):
            a, b = operands
            self.doubts.close_calls += _close(a, b)
        elif isinstance(op, STEPS):
            (x,) = operands
            self.doubts.close_calls += _close(2 * x, np.rint(2 * x))
        elif result.dtype == self.real and operands and not isinstance(op, arith.SelectOp):
            self._doubt_size(op, operands, result)

    def _doubt_size(self, op: Operation, operands: Sequence[Array], result: Array) -> None:
        infinite = np.isinf(result)
        if infinite.any():
            born = infinite & ~_pole(op, operands)
            for operand in operands:
                born &= np.isfinite(operand)
            self.doubts.overflows += int(np.count_nonzero(born))
        if isinstance(op, _VANISHING):
            gone = result == 0
            if gone.any():
                first = operands[:1] if isinstance(op, arith.DivfOp) else operands
                for operand in first:
                    gone &= np.isfinite(operand)
                    if isinstance(op, arith.MulfOp | arith.DivfOp):
                        gone &= operand != 0
                if isinstance(op, arith.DivfOp):
                    gone &= np.isfinite(operands[1])
                self.doubts.underflows += int(np.count_nonzero(gone))


def _pole(op: Operation, operands: Sequence[Array]) -> Any:
    """Where an operation is infinite over the reals, too."""
    match op:
        case arith.DivfOp():
            return operands[1] == 0
        case math.LogOp() | math.Log2Op() | math.Log10Op() | math.RsqrtOp() | math.PowFOp():
            return operands[0] == 0
        case math.Log1pOp():
            return operands[0] == -1
        case _:
            return np.False_


def _close(a: Array, b: Array) -> int:
    """How many pairs differ, but hardly."""
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore"):
        gap = np.where(finite, np.abs(a - b), 1)
    size = np.where(finite, np.maximum(np.abs(a), np.abs(b)), 0)
    return int(np.count_nonzero((gap > 0) & (gap < CLOSE * np.maximum(size, 1e-6))))


def erf(x: Array) -> Array:
    """The error function in the float type of `x`: 2/sqrt(pi) exp(-x^2) sum 2^n x^(2n+1)/(2n+1)!!.

    All terms have one sign, so nothing cancels; beyond 7 the function is 1 to 80 bits and more.
    """
    inside = np.clip(x, -7, 7)
    term = inside
    total = inside
    square = 2 * inside * inside
    for odd in range(3, 1000, 2):
        term = term * square / odd
        total = total + term
        if not np.any(np.abs(term) > np.abs(total) * np.finfo(x.dtype).eps / 4):
            break
    pi = x.dtype.type(CONSTANTS["pi"])
    inner = 2 / np.sqrt(pi) * np.exp(-inside * inside) * total
    return np.where(np.abs(x) < 7, inner, np.sign(x)).astype(x.dtype)
