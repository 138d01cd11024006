"""Functions of arrays that NumPy lacks, or gives another meaning.

>>> round_half_away(np.array([0.49999997, 2.5, -2.5, 8388609.0], np.float32)).tolist()
[0.0, 3.0, -3.0, 8388609.0]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapestry.algebra._error_function import error_function
from tapestry.algebra._fused import multiply_add

__all__ = [
    "as_dtype",
    "compare_floats",
    "compare_integers",
    "complex_of",
    "copied",
    "count_leading_zeros",
    "count_trailing_zeros",
    "divide_towards_zero",
    "divide_up",
    "erf",
    "larger",
    "larger_number",
    "makes_new",
    "multiply_add",
    "ordered_comparison",
    "pairs_of",
    "power",
    "reciprocal_root",
    "round_half_away",
    "saturated",
    "select",
    "shift_right",
    "smaller",
    "smaller_number",
    "takes_out",
    "writing_out",
]

Array = NDArray[Any]


_MANY = 1 << 11
"""Cells from which it pays to select by bits."""


def select(condition: Array, a: Array, b: Array) -> Array:
    """The cells of `a` where a condition holds, else those of `b`.

    Many cells are taken by their bits: NumPy's own selection branches for each of them, which takes
    ten times as long where there is no pattern in the condition.
    """
    a, b = np.asarray(a), np.asarray(b)
    plain = a.dtype == b.dtype and a.dtype.kind in "fiu" and a.itemsize <= 8
    if not plain or condition.size < _MANY or condition.dtype != np.bool_:
        return np.where(condition, a, b)
    word = np.dtype(f"i{a.itemsize}")
    x, y, chosen = a.view(word), b.view(word), condition.view(np.int8)
    if x.ndim == 0 and x == 0:
        return np.bitwise_and(np.subtract(chosen, np.int8(1)).astype(word), y).view(a.dtype)
    picked = np.negative(chosen).astype(word)
    if y.ndim == 0 and y == 0:
        return np.bitwise_and(picked, x).view(a.dtype)
    picked = np.bitwise_and(picked, np.bitwise_xor(x, y))
    return np.bitwise_xor(picked, y, out=picked).view(a.dtype)


def _has_negative_zero(x: Array) -> bool:
    """Whether some cell is -0.0: its bits are the least integer."""
    x = np.asarray(x)
    if x.itemsize > 8:  # no integer is as wide
        return bool(np.any((x == 0) & np.signbit(x)))
    bits = x.view(f"i{x.itemsize}")
    return bool(x.size) and bool(bits.min() == np.iinfo(bits.dtype).min)


def _zeros_ordered(function: np.ufunc, *, most: bool) -> Callable[..., Array]:
    """A maximum or minimum that takes 0.0 for larger than -0.0; NumPy takes either.

    The result may be written into `out`, which may be an operand.
    """

    def choose(a: Array, b: Array, out: Array | None = None) -> Array:
        if np.ndim(b) == 0 and (b != 0 or (most and not np.signbit(b))):
            # A zero is that of `a`, or with 0.0 beside it, which is the most, 0.0.
            if function is np.maximum and np.size(a) >= _MANY and a.dtype.kind == "f":
                chosen = np.clip(a, b, np.inf, out=out)  # takes a third of the time of many
            else:
                chosen = np.asarray(function(a, b, out=out))
            return chosen if b != 0 else np.add(chosen, b, out=chosen)
        chosen = np.asarray(function(a, b))
        # A maximum is wrong only where it is -0.0; a minimum, where an operand is.
        if any(_has_negative_zero(one) for one in ((chosen,) if most else (a, b))):
            zero = chosen == 0
            # The sign is that of the zeros: what is beside one may be a NaN.
            kept = [(one == 0) & (np.signbit(one) != most) for one in (a, b)]
            negative = ~(kept[0] | kept[1]) if most else kept[0] | kept[1]
            signed = select(negative, a.dtype.type(-0.0), a.dtype.type(0.0))
            chosen = select(zero, signed, chosen)
        return chosen

    return choose


larger = _zeros_ordered(np.maximum, most=True)
smaller = _zeros_ordered(np.minimum, most=False)
larger_number = _zeros_ordered(np.fmax, most=True)
smaller_number = _zeros_ordered(np.fmin, most=False)


def copied(x: Array, out: Array | None = None) -> Array:
    """The same cells, in `out`, or on memory of their own."""
    if out is None:
        return np.array(x)
    np.copyto(out, x)
    return out


def erf(x: Array, out: Array | None = None) -> Array:
    """The error function; the result may be written into `out`, which may be the operand."""
    if x.dtype == np.float32:
        return error_function(x, out)
    from scipy.special import erf as scipy_erf  # pyright: ignore[reportMissingTypeStubs]

    return scipy_erf(x, out=out)


_INTO: set[Callable[..., Any]] = {
    larger, smaller, larger_number, smaller_number, erf, copied
}  # fmt: skip


def writing_out(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function that can write its result into `out`, which may be an operand."""
    _INTO.add(function)
    return function


def takes_out(function: Callable[..., Any]) -> bool:
    """Whether a function of arrays can write its result into one of them (`out`)."""
    return isinstance(function, np.ufunc) or function in _INTO


def makes_new(function: Callable[..., Any]) -> bool:
    """Whether the result of a function of arrays is on memory of its own."""
    return takes_out(function) or function is select


def round_half_away(x: Array) -> Array:
    """The nearest whole number, halves away from zero."""
    whole = np.trunc(x)
    # x + 0.5 would round where it is not exact; what truncation leaves is exact.
    away = np.abs(x - whole) >= x.dtype.type(0.5)
    return np.copysign(np.abs(whole) + away.astype(x.dtype), x)


def as_dtype(dtype: np.dtype[Any], x: Array) -> Array:
    """A copy in another dtype."""
    return x.astype(dtype)


def power(x: Array, y: Array) -> Array:
    """x to the y as in C."""
    result = np.power(x, y)
    # NumPy takes the power 0.5 for a square root, which differs at -0.0 and -inf.
    root = y == 0.5
    if np.any(root):
        result = np.where(root & (x == 0), x.dtype.type(0), result)
        result = np.where(root & (x == -np.inf), x.dtype.type(np.inf), result)
    return result


def complex_of(real: Array, imaginary: Array) -> Array:
    """Complex numbers of two parts, each kept as it is: infinities, NaN and signed zeros too."""
    dtype = np.result_type(real.dtype, np.complex64)
    made = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), dtype)
    made.real, made.imag = real, imaginary
    return made


def complex_product(x: Array, y: Array) -> Array:
    """`(a c - b d) + (a d + b c) i`, each operation rounded; NumPy's product may fuse some."""
    a, b, c, d = np.real(x), np.imag(x), np.real(y), np.imag(y)
    return complex_of(a * c - b * d, a * d + b * c)


def pairs_of(x: Array) -> Array:
    """Complex numbers as pairs of real ones: the parts are one more dimension, innermost."""
    part = np.dtype(f"f{x.dtype.itemsize // 2}")
    return np.ascontiguousarray(x).reshape(*x.shape, 1).view(part)


def reciprocal_root(x: Array) -> Array:
    """1 / sqrt(x)."""
    return x.dtype.type(1) / np.sqrt(x)


def divide_towards_zero(a: Array, b: Array) -> Array:
    """The quotient of signed integers, its fraction cut off."""
    quotient = np.floor_divide(a, b)
    inexact = (a % b != 0) & ((a < 0) != (b < 0))
    return quotient + inexact.astype(quotient.dtype)


def divide_up(a: Array, b: Array) -> Array:
    """The least integer that is not less than the quotient."""
    quotient = np.floor_divide(a, b)
    return quotient + (a % b != 0).astype(quotient.dtype)


def shift_right(a: Array, by: Array) -> Array:
    """Signed integers shifted right, the sign filled in; `by` is unsigned whatever its dtype."""
    width = 8 * a.dtype.itemsize
    amount = np.minimum(by.view(f"u{by.dtype.itemsize}"), width - 1)
    return np.right_shift(a, amount.astype(a.dtype))


def _width(x: Array) -> int:
    return 1 if x.dtype == np.bool_ else 8 * x.dtype.itemsize


def _bits(x: Array) -> Array:
    return x.view(f"u{x.dtype.itemsize}")


def count_leading_zeros(x: Array) -> Array:
    """How many high bits are zero, up to the width of the type."""
    bits = _bits(x)
    shift = 1
    while shift < _width(x):
        bits = bits | (bits >> bits.dtype.type(shift))
        shift *= 2
    return (_width(x) - np.bitwise_count(bits)).astype(x.dtype)


def count_trailing_zeros(x: Array) -> Array:
    """How many low bits are zero, up to the width of the type."""
    bits = _bits(x)
    below = ~bits & (bits - bits.dtype.type(1))
    return np.minimum(np.bitwise_count(below), _width(x)).astype(x.dtype)


def saturated(x: Array, dtype: np.dtype[Any], *, signed: bool) -> Array:
    """Floats truncated to integers: the nearest there is when out of range, 0 for NaN.

    Unsigned results come as the bits of a signed dtype.
    """
    width = 1 if dtype == np.bool_ else 8 * dtype.itemsize
    low = -(1 << (width - 1)) if signed else 0
    high = (1 << (width - 1 if signed else width)) - 1
    bits = np.dtype(f"{'i' if signed else 'u'}{dtype.itemsize}")
    # Both bounds are exact in float64: powers of two.
    whole = np.trunc(x.astype(np.float64))
    over, under = whole >= float(high + 1), whole < float(low)
    inside = np.where(over | under | np.isnan(whole), 0.0, whole).astype(bits)
    found = np.where(over, bits.type(high), np.where(under, bits.type(low), inside))
    return found.astype(np.bool_) if dtype == np.bool_ else found.view(dtype)


def _unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) if a is b else np.isnan(a) | np.isnan(b)


def _ordered(a: Array, b: Array) -> Array:
    return ~_unordered(a, b)


def _ordered_and_different(a: Array, b: Array) -> Array:
    return (a != b) & _ordered(a, b)


_ORDERED: dict[int, Callable[..., Any]] = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
    6: _ordered_and_different,
    7: _ordered,
}
"""cmpf predicates 1..7 are false on NaN; 8..14 are the same but true on NaN."""

_INTEGER_ORDER: tuple[Callable[..., Any], ...] = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
)


def compare_floats(predicate: int, a: Array, b: Array) -> Array:
    """`arith.cmpf` by the number of its predicate."""
    if predicate in (0, 15):
        return np.full(np.broadcast_shapes(a.shape, b.shape), predicate == 15)
    if predicate <= 7:
        return _ORDERED[predicate](a, b)
    unordered = _unordered(a, b)
    # ueq, ugt, uge, ult, ule, une, uno
    return unordered if predicate == 14 else unordered | _ORDERED[predicate - 7](a, b)


def ordered_comparison(predicate: int) -> Callable[..., Any] | None:
    """The function of an `arith.cmpf` that is one of NumPy's, by the number of its predicate."""
    return np.not_equal if predicate == 13 else _ORDERED.get(predicate)


def compare_integers(predicate: int, a: Array, b: Array) -> Array:
    """`arith.cmpi` by the number of its predicate, on operands of the signedness it asks for."""
    return _INTEGER_ORDER[predicate - 4 if predicate >= 6 else predicate](a, b)
