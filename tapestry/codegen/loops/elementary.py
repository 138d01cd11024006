"""Exponentials and logarithms as polynomials without branches, in LLVM IR.

Each is an argument reduction and a polynomial. Coefficients interpolate at Chebyshev nodes, which
is within a small factor of the least error; what the polynomials are off by is stated below,
relative to the function. With the rounding of each step, results are within, in units in the last
place of normal numbers:

| function | by | float32 | float64 |
|---|---|---|---|
| exp | `2^n (1 + q(r))`, `r = x - n ln 2` | 1.5 | 1.5 |
| expm1 | `2^n q(r) + (2^n - 1)` | 2.5 | 2.5 |
| tanh | `t / (t + 2)`, `t = expm1(2 x)` | 3 | 3 |
| log | `k ln 2 + 2 atanh(f / (2 + f))`, `x = 2^k (1 + f)` | 1 | 1 |
| log1p | `log(u) + (x - (u - 1)) / u`, `u` the rounded `1 + x` | 2 | 2 |
| erf | `tanh(x P(x^2))`, as in `tapestry.algebra` | 5 | |

The reductions are those of P. T. P. Tang, "Table-driven implementation of the exponential function"
(1989) and "... of the expm1 function" (1992), without tables, and of W. Kahan's log1p; infinities,
NaN and signed zeros are as IEEE 754-2019 recommends (9.2.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tapestry.algebra._error_function import LARGEST, TERMS
from tapestry.codegen.loops.vectors import Value, Writer


@dataclass(frozen=True)
class _Format:
    """A type of floats: what reductions take of it, and polynomials for its precision."""

    word: str
    digits: int
    """Stored bits of the significand."""
    bias: int
    root: int
    """The bits of sqrt(1/2)."""
    lowest: float
    """Below this, exponentials are 0."""
    highest: float
    """Above this, they are infinite."""
    flat: float
    """From here on tanh is 1."""
    ln2: tuple[float, float]
    """ln 2 as a number with few bits, and the rest."""
    exp: tuple[float, ...]
    """`(exp(r) - 1 - r) / r^2` on |r| <= ln 2 / 2."""
    log: tuple[float, ...]
    """`(2 atanh(s) - 2 s) / s^3` as a polynomial in s^2, on |s| <= 3 - 2 sqrt 2."""


_SINGLE = _Format(
    "i32",
    23,
    127,
    0x3F3504F3,
    -104.0,
    89.0,
    10.0,
    (0.693145751953125, 1.4286068203094173e-06),
    # off by 5e-10
    (
        0.500000001346581,
        0.16666666681623232,
        0.041666464925285904,
        0.0083333109254809,
        0.0013933649996309251,
        0.00019890990824673654,
    ),
    # off by 2e-11
    (0.6666666655440618, 0.4000012191414928, 0.28550812382590146, 0.2333069667245578),
)

_DOUBLE = _Format(
    "i64",
    52,
    1023,
    0x3FE6A09E667F3BCD,
    -746.0,
    710.0,
    20.0,
    (0.6931471803691238, 1.9082149292705877e-10),
    # off by 5e-17
    (
        0.5000000000000001,
        0.16666666666666669,
        0.04166666666662413,
        0.008333333333330062,
        0.0013888888917213717,
        0.00019841269863053618,
        2.4801521295954376e-05,
        2.7557268459997064e-06,
        2.7620088445409746e-07,
        2.510038549551032e-08,
    ),
    # off by 5e-18
    (
        0.666666666666667,
        0.3999999999989938,
        0.28571428626031065,
        0.2222221112572281,
        0.18182889786191042,
        0.15331699633543858,
        0.14616721179861816,
    ),
)

_FORMATS = {"float": _SINGLE, "double": _DOUBLE}

_LN2 = 0.6931471805599453
_LOG2_E = 1.4426950408889634

_PER_LN = {
    2: (_LOG2_E, 2.0355273740931033e-17),
    10: (0.4342944819032518, 1.098319650216765e-17),
}
"""Of a base, the reciprocal of its natural logarithm: a float64, and the rest."""

_LOG10_2 = (0.3010299956639812, -2.8037281277851704e-18)


def exp(write: Writer, x: Value) -> Value:
    return _scaled(write, *_reduced(write, x))


def exp2(write: Writer, x: Value) -> Value:
    form, kind = _FORMATS[x.kind], x.kind
    x = _bounded(write, x, form.lowest * _LOG2_E, form.highest * _LOG2_E)
    magic = write.number(1.5 * 2.0**form.digits, kind)
    shifted = write.binary("fadd", x, magic)
    rest = write.binary("fsub", x, write.binary("fsub", shifted, magic))
    r = write.binary("fmul", rest, write.number(_LN2, kind))
    return _scaled(write, write.cast("bitcast", shifted, form.word), r)


def expm1(write: Writer, x: Value) -> Value:
    n, r = _reduced(write, x)
    high, low = _powers(write, n, x.kind)
    # In halves, as 2^n may overflow where the result does not.
    half = write.binary("fmul", low, write.number(0.5, x.kind))
    power = write.binary("fmul", high, half)
    less = write.binary("fsub", power, write.number(0.5, x.kind))
    found = write.fused(power, _grown(write, r), less)
    found = write.binary("fadd", found, found)
    # Halves of the least numbers are not exact; those are what they make, and so is -0.0.
    least = write.number(2.0 ** -(_FORMATS[x.kind].digits + 2), x.kind)
    return write.chosen(write.compared("olt", write.call("fabs", x), least), x, found)


def tanh(write: Writer, x: Value) -> Value:
    flat = write.number(_FORMATS[x.kind].flat, x.kind)
    size = write.call("fabs", x)
    size = write.chosen(write.compared("ogt", size, flat), flat, size)
    t = _moderate_expm1(write, write.binary("fadd", size, size))
    two = write.number(2.0, x.kind)
    return write.call("copysign", write.binary("fdiv", t, write.binary("fadd", t, two)), x)


def erf(write: Writer, x: Value) -> Value:
    """Of float32: `tapestry.algebra` has the terms, and where they are from."""
    square = write.binary("fmul", x, x)
    largest = write.number(LARGEST, x.kind)
    square = write.chosen(write.compared("ogt", square, largest), largest, square)
    factor = write.polynomial(square, TERMS)
    return tanh(write, write.binary("fmul", x, factor))


def log(write: Writer, x: Value) -> Value:
    k, f, half, tail = _logarithm(write, x)
    high, low = (write.number(part, x.kind) for part in _FORMATS[x.kind].ln2)
    tail = write.fused(k, low, tail)
    found = write.binary("fsub", f, write.binary("fsub", half, tail))
    return _where_defined(write, x, write.fused(k, high, found))


def log_to(write: Writer, x: Value, base: int) -> Value:
    """The logarithm to the base 2 or 10."""
    kind = x.kind
    k, f, half, tail = _logarithm(write, x)
    natural = write.binary("fsub", f, write.binary("fsub", half, tail))
    found = k
    if base != 2:
        high, low = (write.number(part, kind) for part in _parts(*_LOG10_2, kind))
        found = write.fused(k, high, write.binary("fmul", k, low))
    high, low = (write.number(part, kind) for part in _parts(*_PER_LN[base], kind))
    found = write.fused(natural, high, write.fused(natural, low, found))
    return _where_defined(write, x, found)


def _logarithm(write: Writer, x: Value) -> tuple[Value, Value, Value, Value]:
    """`k`, `f`, `half` and `tail`, of `log(x) = k ln 2 + (f - (half - tail))`."""
    form, kind = _FORMATS[x.kind], x.kind
    zero, one = write.number(0.0, kind), write.number(1.0, kind)
    # Subnormal numbers are scaled to normal ones.
    tiny = write.compared("olt", x, write.number(2.0 ** (1 - form.bias), kind))
    scaled = write.binary("fmul", x, write.number(2.0**form.digits, kind))
    bits = write.cast("bitcast", write.chosen(tiny, scaled, x), form.word)
    # The significand between sqrt(1/2) and sqrt(2), and its exponent.
    above = write.binary("sub", bits, write.number(form.root, form.word))
    exponent = write.binary("ashr", above, write.number(form.digits, form.word))
    part = write.binary("shl", exponent, write.number(form.digits, form.word))
    mantissa = write.cast("bitcast", write.binary("sub", bits, part), kind)
    k = write.cast("sitofp", exponent, kind)
    k = write.binary("fsub", k, write.chosen(tiny, write.number(float(form.digits), kind), zero))
    f = write.binary("fsub", mantissa, one)
    s = write.binary("fdiv", f, write.binary("fadd", f, write.number(2.0, kind)))
    z = write.binary("fmul", s, s)
    rest = write.binary("fmul", z, write.polynomial(z, form.log))
    half = write.binary("fmul", write.binary("fmul", f, f), write.number(0.5, kind))
    # log(1 + f) = f - (half - s (half + rest)): what is rounded most is small.
    return k, f, half, write.binary("fmul", s, write.binary("fadd", half, rest))


def _where_defined(write: Writer, x: Value, found: Value) -> Value:
    """A logarithm, also of 0, of what is less, of infinity, and NaN."""
    zero, infinite = (write.number(value, x.kind) for value in (0.0, float("inf")))
    found = write.chosen(write.compared("oeq", x, infinite), x, found)
    found = write.chosen(write.compared("oeq", x, zero), write.number(float("-inf"), x.kind), found)
    wrong = write.compared("ult", x, zero)  # or NaN
    return write.chosen(wrong, write.number(float("nan"), x.kind), found)


def _parts(high: float, low: float, kind: str) -> tuple[float, float]:
    """A number as one of a type, and what is left."""
    if kind == "double":
        return high, low
    near = float(np.float32(high))
    return near, high - near


def log1p(write: Writer, x: Value) -> Value:
    zero, one = write.number(0.0, x.kind), write.number(1.0, x.kind)
    u = write.binary("fadd", x, one)
    lost = write.binary("fsub", x, write.binary("fsub", u, one))
    found = log(write, u)
    finite = write.compared("olt", write.call("fabs", found), write.number(float("inf"), x.kind))
    exact = write.binary("fadd", found, write.binary("fdiv", lost, u))
    found = write.chosen(finite, exact, found)
    return write.chosen(write.compared("oeq", x, zero), x, found)


def _moderate_expm1(write: Writer, x: Value) -> Value:
    """The same as `expm1`, of what is not negative, nor so large that a power of two overflows."""
    form, word = _FORMATS[x.kind], _FORMATS[x.kind].word
    shifted, r = _apart(write, x)
    # Of the bits, those of n alone are left.
    high = write.binary("shl", shifted, write.number(form.digits, word))
    biased = write.binary("add", high, write.number(form.bias << form.digits, word))
    power = write.cast("bitcast", biased, x.kind)
    less = write.binary("fsub", power, write.number(1.0, x.kind))
    return write.fused(power, _grown(write, r), less)


def _reduced(write: Writer, x: Value) -> tuple[Value, Value]:
    """As `_apart`, of any number: from where exponentials are 0 or infinite, of such a one."""
    form = _FORMATS[x.kind]
    return _apart(write, _bounded(write, x, form.lowest, form.highest))


def _bounded(write: Writer, x: Value, low: float, high: float) -> Value:
    """A number, or the nearest between two."""
    lowest, highest = write.number(low, x.kind), write.number(high, x.kind)
    x = write.chosen(write.compared("olt", x, lowest), lowest, x)
    return write.chosen(write.compared("ogt", x, highest), highest, x)


def _scaled(write: Writer, n: Value, r: Value) -> Value:
    """`2^n exp(r)`, of bits whose low ones are n."""
    one = write.number(1.0, r.kind)
    high, low = _powers(write, n, r.kind)
    scaled = write.binary("fmul", write.binary("fadd", one, _grown(write, r)), high)
    return write.binary("fmul", scaled, low)


def _apart(write: Writer, x: Value) -> tuple[Value, Value]:
    """The bits of a number whose low ones are n, and `r`, where `x = n ln 2 + r`."""
    form, kind = _FORMATS[x.kind], x.kind
    # Beside so large a number there is room for a whole one only.
    magic = write.number(1.5 * 2.0**form.digits, kind)
    shifted = write.fused(x, write.number(_LOG2_E, kind), magic)
    n = write.binary("fsub", shifted, magic)
    r = x
    for part in form.ln2:
        r = write.fused(n, write.number(-part, kind), r)
    return write.cast("bitcast", shifted, form.word), r


def _grown(write: Writer, r: Value) -> Value:
    """`exp(r) - 1`."""
    square = write.binary("fmul", r, r)
    return write.fused(square, write.polynomial(r, _FORMATS[r.kind].exp), r)


def _powers(write: Writer, shifted: Value, kind: str) -> tuple[Value, Value]:
    """Two powers of two, both normal, whose product is 2^n."""
    form = _FORMATS[kind]
    word = form.word
    bits = (form.digits + form.bias << form.digits) + (1 << (form.digits - 1))
    n = write.binary("sub", shifted, write.number(bits, word))
    half = write.binary("ashr", n, write.number(1, word))
    found: list[Value] = []
    for part in (half, write.binary("sub", n, half)):
        biased = write.binary("add", part, write.number(form.bias, word))
        power = write.binary("shl", biased, write.number(form.digits, word))
        found.append(write.cast("bitcast", power, kind))
    return found[0], found[1]
